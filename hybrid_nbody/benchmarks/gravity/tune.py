"""``bench tune``: which variants of the GPU kernels are the fastest here, kept for later runs.

A variant changes the speed of a sum and never a bit of it: see
`hybrid_nbody.nbody.kernels.gpu.layout`.
"""

from dataclasses import fields
from functools import cache, partial

from rich.table import Table
from rich.text import Text

from hybrid_nbody.backends.tuning import tuning_file
from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.machine import check_memory, find_devices
from hybrid_nbody.benchmarks.harness.measure import timed, timings
from hybrid_nbody.benchmarks.harness.pictures import tune_figure, write
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.results import Column, digits, file_errors, timing_columns
from hybrid_nbody.benchmarks.ladder.ladder import check
from hybrid_nbody.benchmarks.ladder.problems import massive_box
from hybrid_nbody.benchmarks.ladder.production import ProductionRun
from hybrid_nbody.nbody.integrators.stages import LEAPFROG, StepPlan
from hybrid_nbody.nbody.kernels.gpu.layout import DEFAULTS, MOST_FEW, Tuning, keep_tuning
from hybrid_nbody.nbody.kernels.precision import PRECISIONS
from hybrid_nbody.output.terminal import open_console

SIZES = tuple(2**k for k in range(10, 18))
TARGETS = range(1, 7)
JERK_TARGETS = range(1, 5)
FEW = (32, 64, 96, MOST_FEW)
MORE = (256, 512, 1024)
"""Bodies whose steps are timed in one block and as a graph, and as a graph alone."""

STEPS = 2000
"""Steps of a timing with a few bodies: so many that the first, which is launched kernel by kernel,
does not count."""

ACCELERATIONS = "accelerations"
JERKS = "accelerations and jerks"
STEP = "a step"
ONE_BLOCK = "one block"
GRAPH = "graph of kernels"

COLUMNS = (
    Column("precision", "of the pair force"),
    Column("sum", "what was computed"),
    Column("bodies", "number of bodies N"),
    Column("choice", "targets of a lane, or how steps of few bodies are launched"),
    *timing_columns(),
    Column("error_median", "median error of the accelerations, each relative to its own length"),
)


def run(arguments) -> int:
    """Carry out ``bench tune`` and return the exit code."""
    repeats = options.number("--repeats", arguments.repeats)
    sizes = sorted(options.sizes(arguments, SIZES))
    devices = find_devices("gpu")
    check_memory(devices, sizes)
    problem = cache(massive_box)
    tasks = [
        task
        for precision in PRECISIONS
        for task in _tasks(devices.gpu, precision, sizes, problem, repeats)
    ]
    chosen = {}
    conclude = partial(_conclusion, tasks=tasks, chosen=chosen)
    code = carry_out(
        Plan("tune", COLUMNS, tasks, partial(write, tune_figure), conclude, pivot),
        devices,
        arguments,
    )
    if not arguments.dry_run:
        _keep(chosen, devices.gpu.model)
    return code


# ---- Measuring -----------------------------------------------------------------------------------


def _tasks(backend, precision, sizes, problem, repeats):
    """Yield the rows of one precision: accelerations, jerks at the largest size, and steps of few bodies."""
    pairs = [(ACCELERATIONS, size, targets) for size in sizes for targets in TARGETS]
    pairs += [(JERKS, sizes[-1], targets) for targets in JERK_TARGETS]
    pairs += [(STEP, size, how) for size in FEW for how in (ONE_BLOCK, GRAPH)]
    pairs += [(STEP, size, GRAPH) for size in MORE]
    for what, number, choice in pairs:
        head = {"precision": precision, "sum": what, "bodies": number, "choice": str(choice)}
        heading = "" if what == STEP else ", by targets of a lane"
        section = f"{precision}, {what}{heading}: G interactions/s"
        yield Task(
            section, f"{number} bodies, {choice}", partial(_row, head, backend, problem, repeats)
        )


def _row(head, backend, problem, repeats, rows, stop):
    number = head["bodies"]
    tuning = variant(head)
    run = ProductionRun(backend, head["precision"], problem(number), symmetric=False, tuning=tuning)
    checked = {"error_median": check(run, number, stop)["error_median"]}
    taken = MEASURES[head["sum"]](run, repeats, stop)
    return head | taken.columns | {"interactions_per_s": number**2 / taken.median} | checked


def variant(row) -> Tuning:
    """Return the tuning under which a row is measured."""
    number = row["bodies"]
    choice = row["choice"]
    if row["sum"] == STEP:
        return Tuning(number if choice == ONE_BLOCK else 0, ((number, 1),), 1)
    return Tuning(
        0, ((number, int(choice)),), min(int(choice), JERK_TARGETS[-1])
    )  # so both sums share a module


def _time_accelerations(run, repeats, stop):
    return timed(run.backend, run.force, repeats, stop)


def _time_jerks(run, repeats, stop):
    state = run.state
    jerk = run.backend.zeros((run.problem.number, 3), "f8")
    both = partial(run.kernels.accelerations_and_jerks, state, state.velocity, jerk)
    return timed(run.backend, both, repeats, stop)


def _time_steps(run, repeats, stop):
    """Time whole batches as a run does them: they launch graphs of their own, which no graph can capture."""
    batch = partial(run.kernels.run, run.state, StepPlan(LEAPFROG, run.problem.dt), STEPS)
    batch()
    return timings(run.backend, batch, repeats, stop, STEPS)


MEASURES = {ACCELERATIONS: _time_accelerations, JERKS: _time_jerks, STEP: _time_steps}


# ---- Choosing ------------------------------------------------------------------------------------


def fastest(rows, what: str) -> dict[int, str]:
    """Return the fastest choice for each size, ascending, from the rows of a precision."""
    rows = sorted((row for row in rows if row["sum"] == what), key=lambda row: row["median_s"])
    best = {row["bodies"]: row["choice"] for row in reversed(rows)}
    return dict(sorted(best.items()))


def choose(rows) -> Tuning:
    """Return the tuning that the rows of a precision show to be the fastest."""
    few = 0
    for number, choice in fastest(rows, STEP).items():
        if choice != ONE_BLOCK:
            break
        few = number
    (jerk_targets,) = fastest(rows, JERKS).values()
    return Tuning(few, _merged(fastest(rows, ACCELERATIONS)), int(jerk_targets))


def _merged(choices):
    """Return pairs (bodies, targets), one for neighbouring sizes with the same choice."""
    pairs = []
    for number, choice in choices.items():
        if pairs and pairs[-1][1] == int(choice):
            pairs.pop()
        pairs.append((number, int(choice)))
    return tuple(pairs)


def differences(found: Tuning, default: Tuning) -> list[str]:
    """Return in words how a tuning differs from the default one."""
    changed = [
        f"{TITLES[field.name]} {_shown(getattr(found, field.name))} (default: {_shown(getattr(default, field.name))})"
        for field in fields(Tuning)
        if getattr(found, field.name) != getattr(default, field.name)
    ]
    return changed or ["as the defaults"]


TITLES = {
    "few": "bodies in one block:",
    "targets": "targets of a lane:",
    "jerk_targets": "targets with jerks:",
}


def _shown(value):
    return (
        ", ".join(f"{targets} up to {most}" for most, targets in value)
        if isinstance(value, tuple)
        else str(value)
    )


def finished(rows, tasks) -> dict[str, Tuning]:
    """Return what was chosen for each precision of which no row is missing."""
    found = {}
    for precision in PRECISIONS:
        mine = [row for row in rows if row["precision"] == precision]
        if len(mine) == sum(task.section.startswith(f"{precision},") for task in tasks):
            found[precision] = choose(mine)
    return found


def _conclusion(rows, tasks, chosen):
    """Note what was chosen, and say how it differs from the defaults."""
    chosen |= finished(rows, tasks)
    lines = []
    for precision, default in DEFAULTS.items():
        done = precision in chosen
        words = (
            differences(chosen[precision], default)
            if done
            else ["not finished, so nothing is chosen"]
        )
        lines += [f"{precision}: {text}" for text in words]
    return lines


def _keep(chosen, model):
    """Keep what was chosen for later runs, and say where."""
    with file_errors(tuning_file(model)):
        paths = {keep_tuning(model, precision, found) for precision, found in chosen.items()}
    for path in paths:
        open_console().print(f"kept for runs on {model}: {path}", highlight=False, soft_wrap=True)


# ---- Showing -------------------------------------------------------------------------------------


def pivot(columns, rows, width: int) -> Table:
    """Return the rates of a section: a row a size, a column a choice, the fastest of each row in bold."""
    choices = list(dict.fromkeys(row["choice"] for row in rows))
    best = fastest(rows, rows[0]["sum"])
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("bodies", *choices):
        table.add_column(title, justify="right")
    for number in dict.fromkeys(row["bodies"] for row in rows):
        rates = {
            row["choice"]: row["interactions_per_s"] * 1e-9
            for row in rows
            if row["bodies"] == number
        }
        table.add_row(str(number), *(_cell(rates, choice, best[number]) for choice in choices))
    return table


def _cell(rates, choice, best):
    return Text(
        digits(3)(rates[choice]) if choice in rates else "", "bold" if choice == best else ""
    )
