"""``bench fmm``: the fast multipole method, its rate against its error, beside the direct sum.

The tree is that of a run on one rank, sorted and grown anew for each force. Errors are those of
some bodies against a sum in float64, relative to the rms of the accelerations.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hybrid_nbody.analysis import style
from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.backends.timing import Spans, seconds_of
from hybrid_nbody.benchmarks.harness import machine, measure, options, pictures, runs
from hybrid_nbody.benchmarks.harness.measure import Column, Row, Stop, alike
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.nbody.forces.speed import SPEEDS
from hybrid_nbody.nbody.forces.tree.force import TreeForce
from hybrid_nbody.nbody.kernels.expansions import LARGEST, SMALLEST
from hybrid_nbody.nbody.step_timer import NullTimer, StepTimer
from hybrid_nbody.progress import duration

SIZES = {"cpu": (4096, 16384, 65536), "gpu": (32768, 131072, 1048576, 4194304)}
SPHERE = "sphere"
CHECKED = 512
MOST_ERRORS = 99.9
PROMISED = 10.0
"""Bodies that are checked; the per cent of them, and how many times the accuracy bounds these."""

ROW_SECONDS = 1.5
FEWEST = 3
LONGEST_ROW = 60.0
"""Seconds that timings of a row may take, the fewest, and when a direct sum is left out."""

ERRORS = ("error_rms", "error_most")
WATCHED = 3
"""Forces that tell what each phase takes."""

SAME_BODIES = ("device", "bodies", "method")
DIRECT = "direct"
REST = "rest"
TREE_METHODS = ("child_bounds", "grow", "set_parts")
ON_HOST = {"curve": "sort", "sums": "sums"} | dict.fromkeys(TREE_METHODS, "tree")
"""The phase of a method of a tree. On a CPU each cell finds and sums its sources in one go."""

PHASES = ("sort", "tree", "lists", "far", "near", "sums", REST)

COLUMNS = (
    measure.DEVICE,
    Column("distribution", "where the bodies are"),
    measure.BODIES.shown("Bodies", note="note"),
    Column("note", "why a row was not measured"),
    Column("method", "direct, or fmm and its accuracy", "method"),
    Column("accuracy", "asked for: rms error over the rms acceleration"),
    Column("order", "of the expansions", "order", rank=2),
    Column("capacity", "most bodies of a leaf", "leaf", rank=3),
    *measure.timing_columns(" of a force", "forces")[:-1],
    Column("rate", "bodies/s at the median", "M bodies\n/s", "3 M"),
    Column("against_direct", "speed over the direct sum", "×\ndirect", "3"),
    Column("error_rms", "rms error over the rms acceleration", "rms\nerror", ".1e"),
    Column("error_most", "the same at 99.9 % of the bodies at most", "\n99.9 %", ".1e", 1),
    *(Column(f"{phase}_s", f"{phase} in s", f"{phase}\nms", "3 ms", rank=1) for phase in PHASES),
    Column("bytes_per_body", "held once the sums are known", "bytes a\nbody", "3"),
)

DISTRIBUTIONS: dict[str, Callable[[int], runs.Problem]] = {
    SPHERE: runs.plummer_sphere,
    "clumps": runs.clumps,
    "galaxies": runs.galaxies,
    "disc": runs.disc,
}


class Case(NamedTuple):
    """Bodies of a distribution on a device, and true accelerations of some of them."""

    problem: runs.Problem
    checked: NDArray
    truth: NDArray

    @classmethod
    def of(cls, backend: Backend, distribution: str, number: int) -> "Case":
        problem = DISTRIBUTIONS[distribution](number)
        count = min(number, CHECKED)
        checked = np.random.default_rng(0).choice(number, count, replace=False)
        return cls(problem, checked, true_accelerations(backend, problem, checked))

    def errors(self, backend: Backend, acceleration: Array) -> Row:
        """Return the errors of accelerations of all bodies."""
        found = backend.download(acceleration[backend.upload(self.checked)])
        scale = np.sqrt(np.mean(np.sum(self.truth**2, axis=1)))
        error = np.linalg.norm(found - self.truth, axis=1) / scale
        most = float(np.percentile(error, MOST_ERRORS))
        return {"error_rms": float(np.sqrt(np.mean(error**2))), "error_most": most}


def true_accelerations(backend: Backend, problem: runs.Problem, targets: NDArray) -> NDArray:
    """Return accelerations in float64, summed on the device, (len(targets), 3)."""
    position = backend.upload(problem.position.astype("f8"))
    mass = backend.upload(problem.mass.astype("f8"))
    result = backend.zeros((len(targets), 3), "f8")
    for k, target in enumerate(targets):
        difference = position - position[target]
        square = (difference * difference).sum(axis=1) + problem.softening**2
        weight = mass / (square * backend.xp.sqrt(square))
        result[k] = (weight[:, None] * difference).sum(axis=0)
    return np.asarray(backend.download(result))


def run(arguments: Namespace) -> int:
    """Carry out ``bench fmm`` and return the exit code."""
    names = options.words("--distributions", arguments.distributions, tuple(DISTRIBUTIONS))
    accuracies = options.list_of(float, "--accuracies", arguments.accuracies, SMALLEST, LARGEST)
    asked = options.sizes(arguments)
    devices = machine.find_devices(arguments.backend)
    sweep = Sweep(arguments.precision, arguments.repeats, accuracies)
    backends = devices.wanted(arguments.backend)
    sizes = {one.name: sorted(asked or SIZES[one.name]) for one in backends}
    machine.check_memory(devices, [max(some) for some in sizes.values()])
    tasks = [
        task
        for backend, name in product(backends, names)
        for task in sweep.tasks(backend, name, sizes[backend.name])
    ]
    summary = lambda rows: {"crossovers": crossovers(rows)}  # noqa: E731
    plan = Plan("fmm", COLUMNS, tasks, draw, conclude, summarise=summary)
    return carry_out(plan, devices, arguments)


class Sweep:
    """All rows: for each size the direct sum, and trees of every accuracy."""

    def __init__(self, precision: str, repeats: int, accuracies: Sequence[float]):
        self.precision = precision
        self.repeats = repeats
        self.accuracies = sorted(accuracies, reverse=True)
        self.case = lru_cache(maxsize=1)(Case.of)

    def tasks(self, backend: Backend, name: str, sizes: Sequence[int]) -> Iterator[Task]:
        section = f"{name} on {backend.description}: a force, {self.precision} precision"
        for number in sizes:
            head: Row = {"device": backend.name, "distribution": name, "bodies": number}
            direct = head | {"method": DIRECT}
            yield Task(section, f"{number} bodies, direct", partial(self._direct, direct, backend))
            for accuracy in self.accuracies:
                method = f"fmm {np.format_float_scientific(accuracy, trim='-', exp_digits=1)}"
                tree = head | {"method": method, "accuracy": accuracy}
                label = f"{number} bodies, {method}"
                yield Task(section, label, partial(self._tree, tree, backend))

    def _direct(self, head: Row, backend: Backend, rows: list[Row], stop: Stop) -> Row:
        """Measure the direct sum once for each size: it takes the same wherever the bodies are."""
        if same := alike(rows, head, *SAME_BODIES):
            return same[0] | head | dict.fromkeys(ERRORS)
        expected = expected_seconds(head, rows, self.precision)
        if expected > LONGEST_ROW:
            return head | {"note": f"left out: about {duration(expected)}"}
        case = self.case(backend, head["distribution"], head["bodies"])
        run = runs.ProductionRun(backend, case.problem, self.precision)
        row = head | self._times(backend, run.force, head["bodies"], stop)
        return row | case.errors(backend, run.state.acceleration)

    def _tree(self, head: Row, backend: Backend, rows: list[Row], stop: Stop) -> Row:
        number = head["bodies"]
        case = self.case(backend, head["distribution"], number)
        stop()
        force = runs.tree_force(backend, case.problem, self.precision, head["accuracy"])
        action = partial(force.accelerations, NullTimer())
        row = head | self._times(backend, action, number, stop)
        row |= {"order": force.expansion.order, "capacity": force.expansion.capacity}
        row |= case.errors(backend, force.bodies.acceleration)
        row["bytes_per_body"] = bytes_held_by(force) / number
        direct = measure.having(alike(rows, head | {"method": DIRECT}, *SAME_BODIES), "median_s")
        if direct:
            row["against_direct"] = direct[-1]["median_s"] / row["median_s"]
        stop()
        return row | phases_of(backend, force)

    def _times(self, backend: Backend, action: Callable[[], None], number: int, stop: Stop) -> Row:
        """Return the times and the rate of a force, which the host launches."""
        action()
        stop()
        seconds = seconds_of(backend, action)
        repeats = measure.affordable(self.repeats, seconds, ROW_SECONDS, FEWEST)
        taken = measure.timings(backend, action, repeats, stop)
        return taken.columns | {"rate": number / taken.median}


def expected_seconds(head: Row, rows: Sequence[Row], precision: str) -> float:
    """Return how long the timings of a direct sum take, by one of fewer bodies if there is one."""
    usual = SPEEDS[head["device"]].seconds_of_pairs(head["bodies"], precision)
    earlier = measure.having(alike(rows, head, "device", "method"), "median_s")
    return (FEWEST + 2) * measure.expected_seconds(earlier, head["bodies"], usual)


def phases_of(backend: Backend, force: TreeForce) -> Row:
    """Return what each phase of a force takes, the mean of some; the rest is beside the tree."""
    watched = _phases_on_host if backend.shares_host_memory else _phases_on_device
    seconds = watched(backend, force)
    return {f"{phase}_s": taken / WATCHED for phase, taken in seconds.items()}


def _phases_on_device(backend: Backend, force: TreeForce) -> dict[str, float]:
    """Return the seconds of each phase of some forces, which the tree records."""
    tree: Any = force.tree.tree
    timer = StepTimer(backend)
    tree.watch(timer)
    for _ in range(WATCHED):
        force.accelerations(NullTimer())
    timer.record(REST)
    tree.watch(None)
    return {phase: timer.seconds(phase) for phase in dict.fromkeys(timer.parts)}


def _phases_on_host(backend: Backend, force: TreeForce) -> dict[str, float]:
    """Return the seconds of each phase of some forces: of methods of the tree."""
    spans = {phase: Spans(backend) for phase in ON_HOST.values()}
    tree = force.tree.tree
    for name, phase in ON_HOST.items():
        setattr(tree, name, spans[phase].span()(getattr(tree, name)))
    whole = Spans(backend)
    with whole.span():
        for _ in range(WATCHED):
            force.accelerations(NullTimer())
    seconds = {phase: own.seconds() for phase, own in spans.items()}
    seconds[REST] = max(0.0, whole.seconds() - sum(seconds.values()))
    return seconds


def bytes_held_by(force: TreeForce) -> int:
    """Return the bytes of all arrays that a force holds before its tree, on a CPU, lets go."""
    tree: Any = force.tree.tree
    found = [0]
    tree.release = lambda: found.append(bytes_of(force, set()))
    force.accelerations(NullTimer())
    del tree.release
    return max(found[-1], bytes_of(force, set()))


def bytes_of(thing: Any, seen: set[int]) -> int:
    """Return the bytes of all arrays that a force holds; `seen` has what was counted before."""
    if id(thing) in seen or isinstance(thing, type):
        return 0
    seen.add(id(thing))
    if hasattr(thing, "nbytes"):
        return int(thing.nbytes)
    parts: list[Any] = []
    if isinstance(thing, dict):
        parts = list(thing.values())
    elif isinstance(thing, tuple | list):
        parts = list(thing)
    elif type(thing).__module__.startswith("hybrid_nbody.nbody."):
        parts = list(vars(thing).values())
    return sum(bytes_of(part, seen) for part in parts)


LINE = ("device", "distribution", "method")


def crossovers(rows: Sequence[Row]) -> list[Row]:
    """Return the bodies from which each tree is faster than the direct sum, where they cross."""
    lines = measure.groups(measure.having(rows, "rate"), *LINE)
    seconds = {head: {row["bodies"]: row["median_s"] for row in own} for head, own in lines}
    found = []
    for (*bodies, method), tree in seconds.items():
        least = faster_from(tree, seconds.get((*bodies, DIRECT), {}))
        if method != DIRECT and least:
            head = dict(zip(LINE, (*bodies, method), strict=True))
            found.append(head | {"bodies": least})
    return found


def faster_from(tree: dict[int, float], direct: dict[int, float]) -> int | None:
    """Return the bodies from which a tree is faster, given the seconds of both by bodies."""
    sizes = sorted(tree.keys() & direct.keys())
    if sizes and tree[sizes[0]] <= direct[sizes[0]]:
        return sizes[0]
    crossing = measure.crossing(tree, direct)
    return round(crossing[0]) if crossing else None


def conclude(rows: Sequence[Row]) -> list[str]:
    """Return in words where trees become faster than the direct sum, and what is less exact."""
    lines = []
    for (device, distribution), own in measure.groups(crossovers(rows), "device", "distribution"):
        points = ", ".join(f"{row['method']} from {row['bodies']} bodies" for row in own)
        lines.append(f"{distribution}, {device.upper()}: faster than direct: {points}")
    trees = measure.having(rows, "accuracy")
    wrong = [row for row in trees if not keeps_promise(row)]
    lines.append(f"{len(trees) - len(wrong)} of {len(trees)} trees are as exact as promised")
    for row in wrong:
        error = f"{row['error_rms']:.1e}, {row['error_most']:.1e} at 99.9 %"
        where = f"{row['distribution']}, {row['bodies']} bodies, {row['method']}"
        lines.append(f"  LESS exact than promised: {where}: {error}")
    return lines


def keeps_promise(row: Row) -> bool:
    """Return whether a tree's errors are within what ``gravity.accuracy`` promises."""
    accuracy = row["accuracy"]
    return bool(row["error_rms"] <= accuracy and row["error_most"] <= PROMISED * accuracy)


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw the rate against bodies for the first distribution, and against errors for all."""
    rows = measure.having(rows, "rate")
    rows = alike(rows, rows[-1], "device") if rows else []
    figure = pictures.new_figure(3.8, facts, rows[0]["device"] if rows else "")
    left, right = figure.subplots(1, 2, sharey=True)
    if rows:
        _draw_sizes(left, alike(rows, rows[0], "distribution"))
        _draw_errors(right, measure.having(rows, "accuracy"))
    return figure


def _draw_sizes(axes: Axes, rows: list[Row]) -> None:
    """Draw the rate against bodies, a line for the direct sum and for each accuracy."""
    colours = (style.BLACK, *style.BODY_COLOURS)
    for ((method,), own), colour in zip(measure.groups(rows, "method"), colours, strict=False):
        pictures.draw_line(axes, own, "bodies", "rate", color=colour, label=method)
    style.size_axis(axes, {row["bodies"] for row in rows}, base=2)
    axes.tick_params(axis="x", labelsize=6)
    axes.set(yscale="log", xlabel="bodies", ylabel="bodies/s")
    style.decades(axes.yaxis, pictures.rate_text)
    axes.set_title(rows[0]["distribution"], loc="left")
    axes.legend(fontsize=7)


def _draw_errors(axes: Axes, rows: list[Row]) -> None:
    """Draw the rate against the error at the largest size, a line for each distribution."""
    largest = max((row["bodies"] for row in rows), default=0)
    lines = measure.groups(measure.only(rows, bodies=largest), "distribution")
    for ((name,), own), colour in zip(lines, style.BODY_COLOURS, strict=False):
        pictures.draw_line(axes, own, "error_rms", "rate", color=colour, label=name)
    axes.set(xscale="log", xlabel="rms error over the rms acceleration")
    style.decades(axes.xaxis, "{:.0e}".format)
    axes.set_title(f"{largest} bodies", loc="left")
    axes.legend(fontsize=7)
