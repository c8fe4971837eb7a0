"""``bench ladder``: every rung of the ladders A, C and E in order, timed and checked."""

from functools import cache, partial

from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.copies import COPIES, copy_row
from hybrid_nbody.benchmarks.harness.machine import check_memory, find_devices
from hybrid_nbody.benchmarks.harness.measure import targets_within, timed
from hybrid_nbody.benchmarks.harness.pictures import ladder_figure, write
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.results import Column, digits, times, timing_columns
from hybrid_nbody.benchmarks.ladder.ladders import LADDERS
from hybrid_nbody.benchmarks.ladder.problems import OPERATIONS

COLUMNS = (
    Column("ladder", "ladder: A, C or E"),
    Column("bodies", "number of bodies N"),
    Column("rung", "what was measured", "Rung", note="note"),
    Column("device", "cpu or gpu"),
    Column("note", "what the machine lacks for this rung, or how many targets a step was cut to"),
    Column("targets", "bodies moved in a step: N, or fewer where a whole step would take too long"),
    *timing_columns(" of a step", "steps", rank=4),
    Column("gflops", "GFLOP/s at 20 operations an interaction", "\nGFLOP/s", digits(3), rank=1),
    Column(
        "speedup_before",
        "speed-up over the rung before; production: over the last on its device",
        "× rung\nbefore",
        digits(3),
    ),
    Column("speedup_serial", "speed-up over the serial loop", "×\nserial", digits(3)),
    Column("checked", "bodies compared with the float64 reference"),
    Column(
        "within_tolerance",
        "share of them that a step moved to within 0.005 of it",
        "within\n0.005",
        "{:.1%}".format,
        rank=3,
    ),
    Column(
        "position_error",
        "largest difference of their coordinates after a step",
        "largest\ndiff.",
        "{:.0e}".format,
        rank=5,
    ),
    Column(
        "error_median",
        "median error of their accelerations, each relative to its own length",
        "relative\nerror",
        "{:.0e}".format,
    ),
    Column(
        "error_max",
        "largest error of their accelerations, relative to its own length",
        "\nlargest",
        "{:.0e}".format,
        rank=5,
    ),
    Column("kernel", "function and file of a GPU rung"),
    Column("block", "threads of a block"),
    Column("unroll", "unroll factor"),
    Column("options", "more options of the CUDA compiler"),
    Column("bytes_per_s", "bytes copied a second", "GB/s", times(1e-9, digits(3))),
    Column(
        "share_of_step",
        "time of the copy over that of a step of the last rung on the GPU",
        "of a\nstep",
        "{:.1%}".format,
    ),
)


def run(arguments) -> int:
    """Carry out ``bench ladder`` and return the exit code."""
    repeats = options.number("--repeats", arguments.repeats)
    names = options.words("--ladders", arguments.ladders, tuple(LADDERS))
    asked = options.sizes(arguments)
    devices = find_devices(arguments.backend)
    chosen = [
        (LADDERS[name], number)
        for name in names
        for number in asked or _sizes(LADDERS[name], devices)
    ]
    check_memory(devices, [number for _, number in chosen])
    tasks = [
        task
        for ladder, number in chosen
        for task in _tasks(ladder, number, devices, repeats, arguments.backend)
    ]
    return carry_out(
        Plan("ladder", COLUMNS, tasks, partial(write, ladder_figure)), devices, arguments
    )


def _sizes(ladder, devices):
    return ladder.gpu_sizes if devices.gpu else ladder.cpu_sizes


def _tasks(ladder, number, devices, repeats, asked):
    """Yield a task a rung, and those of the copies."""
    section = f"Ladder {ladder.name}, {number} bodies: {ladder.title}"
    problem = cache(lambda: ladder.problem(number))
    head = {"ladder": ladder.name, "bodies": number}
    for rung in ladder.rungs:
        if asked != "gpu" or rung.device == "gpu" or rung is ladder.rungs[0]:
            measure = partial(_rung_row, head, rung, problem, devices, repeats)
            yield Task(section, rung.name, measure)
    if ladder.name == "A" and devices.gpu:
        section = f"Copies, {number} bodies: 28 bytes each, beside a step of the fastest kernel of ladder A"
        for copy in COPIES:
            yield Task(section, copy.name, partial(_copied_row, head, copy, devices, repeats))


def _rung_row(head, rung, problem, devices, repeats, rows, stop):
    row = head | {"rung": rung.name, "device": rung.device, **_how(rung.kernel)}
    missing = rung.missing(devices)
    if missing:
        return row | {"note": missing}
    row |= measured(rung.make(getattr(devices, rung.device), problem()), repeats, stop)
    return row | _speedups(row["interactions_per_s"], rung, _peers(rows, head))


def _copied_row(head, copy, devices, repeats, rows, stop):
    step = min(row["median_s"] for row in _peers(rows, head) if row["device"] == "gpu")
    return head | copy_row(copy, devices.gpu, head["bodies"], repeats, step, stop)


def _peers(rows, head):
    """Return the rungs of the same ladder and size that have been measured."""
    return [row for row in rows if head.items() <= row.items() and "interactions_per_s" in row]


def _speedups(rate, rung, peers):
    before = [row for row in peers if not rung.production or row["device"] == rung.device]
    return {
        "speedup_before": rate / before[-1]["interactions_per_s"] if before else None,
        "speedup_serial": rate / peers[0]["interactions_per_s"] if peers else 1.0,
    }


def measured(run, repeats, stop) -> dict:
    """Return times, rates and check of a run, such as `hybrid_nbody.benchmarks.ladder.cpu_rungs.LoopRun`."""
    number = run.problem.number
    targets = targets_within(run.backend, run.step, number, stop) if run.divisible else number
    checked = check(run, targets, stop)
    taken = timed(run.backend, lambda: run.step(targets), repeats, stop)
    rate = run.interactions(targets) / taken.median
    return {
        "targets": targets,
        "note": f"{targets} targets" if targets < number else "",
        **taken.columns,
        "interactions_per_s": rate,
        "gflops": rate * OPERATIONS * 1e-9,
        **checked,
    }


def _how(kernel):
    if kernel is None:
        return {}
    options = " ".join(kernel.options)
    return {
        "kernel": f"{kernel.name} in {kernel.source}",
        "block": kernel.block,
        "unroll": kernel.unroll,
        "options": options,
    }


def check(run, targets, stop) -> dict:
    """Do one step of the bodies at rest, compare it with the reference, and put the bodies back."""
    stop()
    run.restart()
    run.step(targets)
    run.backend.synchronize()
    result = run.problem.check(*run.result(), targets)
    run.restart()
    return result
