"""``bench limits``: the GPU kernels of a run against what their arithmetic allows at most.

Accelerations with plain atomic adds, whose bits differ from call to call, show what a fixed order
of the sums costs. Of a tree there are pairs of nearby bodies, and translations between cells.
"""

import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from hybrid_nbody.analysis import style
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.benchmarks.harness import machine, measure, options, pictures, runs
from hybrid_nbody.benchmarks.harness.measure import Action, Column, Row, Stop, timed
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu import kernels as gpu
from hybrid_nbody.nbody.kernels.gpu import symmetric
from hybrid_nbody.nbody.precision import PRECISIONS

SIZE = 131072
SINGLE_SIZES = (16384, 65536)
"""Bodies by default, and those at which the accelerations of single precision are measured, too."""

ACCELERATIONS = "accelerations"
EQUAL = "equal masses"
POTENTIAL = "potential"
JERKS = "with jerks"
ATOMIC = "atomic adds"
PACK = "pack"
KERNELS = (ACCELERATIONS, EQUAL, POTENTIAL, JERKS, ATOMIC, PACK)

NEAR = "near field"
FAR = "far field"
TREE_KERNELS = (NEAR, FAR)
ACCURACIES = ("1e-3", "1e-4", "1e-5")
TREE_SIZE = 1048576
"""Of trees: what is measured in single precision, and bodies by default."""

INSTRUCTIONS = {
    "single": {ACCELERATIONS: 13, EQUAL: 12, POTENTIAL: 8, JERKS: 27},
    "mixed": {ACCELERATIONS: 19, EQUAL: 18, POTENTIAL: 14, JERKS: 33},
    "double": {ACCELERATIONS: 16, EQUAL: 15, POTENTIAL: 12, JERKS: 31},
}
"""Least instructions of an interaction, of float64 alone in double: docs/benchmarks-appendix.md
derives them. A pair that is computed once counts as two, and can exceed this ceiling."""

COLUMNS = (
    measure.PRECISION,
    measure.BODIES.shown("Bodies"),
    Column("kernel", "what was computed", "kernel"),
    Column("each", "interactions for a body of a tree; of the far field, translations", rank=2),
    Column("times_a_pair", "1: a pair is computed for both bodies; 2: for each", "a pair", rank=1),
    Column("targets", "targets of a lane", "targets\nof a lane", rank=1),
    *measure.timing_columns(figures=4),
    Column("instructions", "least of an interaction; in double of float64", "instruc-\ntions"),
    Column("ceiling", "interactions/s that these allow", "\nceiling", "4 G"),
    Column("limited_by", "what the ceiling is: instructions, or reciprocal roots", rank=2),
    Column("share_of_ceiling", "rate over ceiling", "of the\nceiling", ".1%"),
)


def action_of(kernel: str, run: runs.ProductionRun) -> Action:
    """Return what is timed of a run that is ready to sum."""
    if kernel == PACK:
        return partial(run.kernels.pack, run.state)
    if kernel == POTENTIAL:
        potential = run.backend.zeros(run.problem.number, "f8")
        return partial(run.kernels.potential, run.state, potential)
    if kernel == JERKS:
        return run.jerks()
    if kernel == ATOMIC:
        make = ATOMIC_KERNELS[type(run.kernels)]
        run.kernels = make(run.backend, run.state, PairForce(run.precision, run.problem.softening))
        run.kernels.pack(run.state)
    return partial(run.kernels.accelerations, run.state)


def run(arguments: Namespace) -> int:
    """Carry out ``bench limits`` and return the exit code."""
    asked = options.sizes(arguments)
    devices = machine.find_devices("gpu")
    machine.check_memory(devices, asked or [SIZE, TREE_SIZE])
    limits = Limits(devices, arguments.repeats)
    tasks = [limits.task(*row) for row in chosen(sorted(asked))]
    trees = product(sorted(asked) or [TREE_SIZE], ACCURACIES, TREE_KERNELS)
    tasks += [limits.tree_task(*row) for row in trees]
    return carry_out(Plan("limits", COLUMNS, tasks, draw, limits.conclude), devices, arguments)


def chosen(asked: Sequence[int]) -> list[tuple[str, int, str]]:
    """Return (precision, bodies, kernel) of each row; without sizes asked for, the default ones."""
    few = [] if asked else [("single", number, ACCELERATIONS) for number in SINGLE_SIZES]
    return few + list(product(PRECISIONS, asked or [SIZE], KERNELS))


class Limits:
    """The rows, and what they say of the GPU."""

    def __init__(self, devices: machine.Devices, repeats: int):
        self.backend = devices.gpu
        self.repeats = repeats
        self.peak = cache(lambda: machine.measure_peak(devices.gpu))
        self.problem = cache(runs.massive_box)
        self.sphere = cache(runs.plummer_sphere)

    def task(self, precision: str, number: int, kernel: str) -> Task:
        section = f"{precision}: random in [-5, 5]^3, masses in [1, 10]"
        head = {"precision": precision, "bodies": number, "kernel": kernel}
        return Task(section, f"{number} bodies, {kernel}", partial(self._row, head))

    def _row(self, head: Row, rows: list[Row], stop: Stop) -> Row:
        precision = head["precision"]
        number = head["bodies"]
        kernel = head["kernel"]
        problem = self.problem(number)
        if kernel == EQUAL:
            problem = replace(problem, mass=np.ones_like(problem.mass))
        run = runs.ProductionRun(self.backend, problem, precision)
        run.force()
        taken = timed(self.backend, action_of(kernel, run), self.repeats, stop)
        row = head | taken.columns
        if kernel == PACK:
            return row
        counts_as = ACCELERATIONS if kernel == ATOMIC else kernel
        row["times_a_pair"] = run.kernels.times_a_pair
        row["targets"] = run.kernels.jerk_targets if kernel == JERKS else run.kernels.targets
        most = ceiling(self.peak(), precision, counts_as)
        return row | against(number**2 / taken.median, INSTRUCTIONS[precision][counts_as], most)

    def tree_task(self, number: int, accuracy: str, kernel: str) -> Task:
        section = "trees: Plummer spheres, single precision; of the far field, translations"
        head = {"precision": "single", "bodies": number, "kernel": f"{kernel}, {accuracy}"}
        measured = partial(self._tree_row, head, kernel, float(accuracy))
        return Task(section, f"{number} bodies, {head['kernel']}", measured)

    def _tree_row(
        self, head: Row, kernel: str, accuracy: float, rows: list[Row], stop: Stop
    ) -> Row:
        """Time a kernel of a tree whose lists are there; its sums are of no use afterwards."""
        force = runs.tree_force(self.backend, self.sphere(head["bodies"]), "single", accuracy)
        tree: Any = force.tree.tree
        if kernel == NEAR:
            number = pairs_of(tree)
            name = "add_nearby_accelerations"
            action = partial(tree.launches.on_blocks, "near_field", name, tree.memory.own)
            least = INSTRUCTIONS["single"][ACCELERATIONS]
        else:
            number = translations_of(tree)
            name = "add_far_field"
            action = partial(tree.launches.on_own_cells, "far_field", name, tree.memory.own)
            least = instructions_of_translation(force.expansion.order)
        taken = timed(self.backend, action, self.repeats, stop)
        most = self.peak().ceiling(least)
        row = head | taken.columns | {"each": number / head["bodies"]}
        return row | against(number / taken.median, least, (most, "instructions"))

    def conclude(self, rows: Sequence[Row]) -> list[str]:
        """Return the peak of the GPU, what a fixed order costs and what pack takes, in words."""
        if not rows:
            return []
        lines = [self.peak().description]
        for (precision, number), group in measure.groups(rows, "precision", "bodies"):
            seconds = {row["kernel"]: row["median_s"] for row in group}
            compared = (seconds.get(name) for name in (ACCELERATIONS, ATOMIC, PACK))
            lines += costs(f"{precision}, {number} bodies:", *compared)
        return lines


def against(rate: float, instructions: int, most: tuple[float, str]) -> Row:
    """Return the columns that compare a rate with a ceiling and what limits it."""
    return {
        "interactions_per_s": rate,
        "instructions": instructions,
        "ceiling": most[0],
        "limited_by": most[1],
        "share_of_ceiling": rate / most[0],
    }


def ceiling(peak: machine.Peak, precision: str, kernel: str) -> tuple[float, str]:
    """Return the interactions/s that a kernel's arithmetic allows, and what limits them."""
    slots = peak.double if precision == "double" else peak.single
    allowed = slots / INSTRUCTIONS[precision][kernel]
    return min((allowed, "instructions"), (peak.roots, "reciprocal roots"))


def pairs_of(tree: Any) -> float:
    """Return the pairs of bodies in nearby leaves of a tree, each body with itself included."""
    work = tree.backend.zeros(tree.memory.bodies, "f8")
    own = tree.memory.own
    tree.launches.on_own_cells("sharing", "count_work", own, np.float64(0), work)
    return float((work - 1).sum())


def translations_of(tree: Any) -> int:
    """Return the distant sources of all cells of a tree."""
    arrays = tree.memory.arrays
    pool = arrays["pool"]
    segments = arrays["distant"][: tree.whole.cells]
    number = 0
    while len(segments := segments[segments >= 0]):  # the next segment, and the length of this one
        number += int(pool[segments, 1].sum())
        segments = pool[segments, 0]
    return number


def instructions_of_translation(order: int) -> int:
    """Return the least instructions that take an expansion to another cell, one for each term."""
    products = math.comb(order + 6, 6)
    derivatives = sum(math.comb(k + 3, 3) - 1 for k in range(1, order + 1))
    return products + derivatives


def costs(head: str, fixed: float | None, atomic: float | None, pack: float | None) -> list[str]:
    """Return in words what a fixed order of the sums costs, and packing, if both were measured."""
    lines = []
    if fixed and atomic:
        cost = fixed / atomic - 1
        lines.append(f"{head} a fixed order of the sums costs {cost:+.1%} over atomic adds")
    if fixed and pack:
        lines.append(f"{head} pack takes {pack / fixed:.1%} of the time of the accelerations")
    return lines


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw the rate of each kernel as a bar, and its ceiling as a line across."""
    rows = measure.having(rows)
    figure = pictures.new_figure(1.0 + 0.2 * len(rows), facts, "gpu")
    axes = figure.subplots()
    names: dict[int, str] = {}
    for y, row in enumerate(rows):
        rate = row["interactions_per_s"]
        colour = pictures.PRECISION_COLOURS[row["precision"]]
        text = f"{pictures.rate_text(rate)}, {row['share_of_ceiling']:.0%}"
        pictures.draw_bar(axes, y, rate, colour, text, row["ceiling"])
        names[y] = f"{row['precision']}, {row['kernel']}, {row['bodies']}"
    pictures.name_bars(axes, names, len(rows) - 0.4)
    axes.margins(x=0.15)
    style.ticks_from_zero(axes.xaxis, pictures.rate_text)
    axes.set_xlabel(f"{pictures.RATE} (line: what the instructions allow at most)")
    return figure


KEPT = "partial[row * targets.number + first + k * RUN] = total[k][c];"
ADDED = (
    "atomicAdd(partial + (size_t)targets.bodies[first + k * RUN] * Sum::components + c, "
    "total[k][c]);"
)
EXACT = (
    "add_exactly<Sum>(value, sums, sums.rows + (size_t)component * Sum::words * sums.slots + slot);"
)
ROUNDED = "atomicAdd(sums.rows + (size_t)component * Sum::words * sums.slots + slot, value);"


class AtomicSource(NamedTuple):
    """A ``.cu`` file with one statement in the place of another, which must stand there once."""

    file: Path
    old: str
    new: str

    def read_text(self) -> str:
        text = self.file.read_text()
        if text.count(self.old) != 1:
            name = self.file.name
            raise RuntimeError(f"{name} does not hold, once, the statement that adds: {self.old}")
        return text.replace(self.old, self.new)


PAIR_FORCE: Any = AtomicSource(gpu.SOURCE, KEPT, ADDED)
"""The parts of a target added up at once, in any order."""

SYMMETRIC: Any = AtomicSource(symmetric.SOURCE, EXACT, ROUNDED)
"""Sums of tiles rounded as they are added to a body, in any order."""


class AtomicKernels(gpu.Kernels):
    """Accelerations of softened bodies of unequal masses, with G = 1."""

    def __init__(self, backend, state, pair_force):
        super().__init__(backend, state, pair_force)
        number = len(state.mass)
        macros = gpu.defines(pair_force.precision, self.layout, self.tuning, number, number)
        self.module = CudaModule(backend, PAIR_FORCE, macros, gpu.OPTIONS)

    def accelerations(self, state) -> None:
        """Fill ``state.acceleration``, after `pack`."""
        self.result = state.acceleration
        self.result.fill(0)
        super().accelerations(state)

    def _partial(self, components):
        return self.result

    def _combine(self, state, scale, partial, result) -> None:
        """Do nothing: the parts are added up already."""


class AtomicSymmetricKernels(symmetric.Kernels):
    """The same of a symmetric force."""

    def __init__(self, backend, state, pair_force):
        super().__init__(backend, state, pair_force)
        self.symmetric = CudaModule(backend, SYMMETRIC, symmetric.defines(), symmetric.OPTIONS)


ATOMIC_KERNELS = {gpu.Kernels: AtomicKernels, symmetric.Kernels: AtomicSymmetricKernels}
"""With plain atomic adds, by the kernels that they stand beside."""
