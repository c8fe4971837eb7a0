"""``bench limits``: the GPU kernels of a run against what their arithmetic allows at most on this GPU."""

from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from hybrid_nbody.benchmarks.gravity.atomic import ATOMIC_KERNELS
from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.machine import check_memory, find_devices
from hybrid_nbody.benchmarks.harness.measure import timed
from hybrid_nbody.benchmarks.harness.peak import measure_peak
from hybrid_nbody.benchmarks.harness.pictures import limits_figure, write
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.results import Column, digits, times, timing_columns
from hybrid_nbody.benchmarks.ladder.problems import massive_box
from hybrid_nbody.benchmarks.ladder.production import ProductionRun
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.precision import PRECISIONS

SIZE = 131072
SINGLE_SIZES = (16384, 65536)
"""Bodies by default, and those at which the accelerations of single precision are measured, too."""

ACCELERATIONS = "accelerations"
EQUAL = "equal masses"
POTENTIAL = "potential"
JERKS = "with jerks"
ATOMIC = "atomic adds"
PACK = "pack"

# What an interaction needs at least, with d the difference of two positions, s = d^2 + eps^2 and y
# = 1 / sqrt(s):
#
#                            accelerations  equal masses  potential  with jerks
#   d; its rate of change          3              3            3         3 + 3
#   s                              3              3            3           3
#   y                              1              1            1           1
#   m y^3; of the jerk, too        3              2            -           3
#   d . v and -3 (d . v) y^2       -              -            -         3 + 2
#   v - 3 (d . v) y^2 d            -              -            -           3
#   sums                           3              3            1         3 + 3
#   issue slots in float32        13             12            8          27
#  y y is one of the products of m y^3. Mixed takes the differences of the low parts and adds them
# to those of the high parts: 6 more each. In double, y starts from an estimate, which is no
# instruction of float64; y itself then takes 5: y y, e = 1 - s y y, and 3 for its series. m y^3
# takes 7 instead of the 3 products, one less for equal masses.
INSTRUCTIONS = {
    "single": {ACCELERATIONS: 13, EQUAL: 12, POTENTIAL: 8, JERKS: 27},
    "mixed": {ACCELERATIONS: 19, EQUAL: 18, POTENTIAL: 14, JERKS: 33},
    "double": {ACCELERATIONS: 16, EQUAL: 15, POTENTIAL: 12, JERKS: 31},
}
"""Least instructions of an interaction: every issue slot in single and mixed, those of float64
alone in double.

A pair that is computed once counts as two interactions; its sums can exceed what is the ceiling of
the others."""

COLUMNS = (
    Column("precision", "of the pair force"),
    Column("bodies", "number of bodies N", "Bodies"),
    Column("kernel", "what was computed", "kernel"),
    Column(
        "times_a_pair",
        "how often the force of a pair is computed: once for both bodies, or for each",
        "a pair",
        rank=1,
    ),
    Column("targets", "targets of a lane", "targets\nof a lane", rank=1),
    *timing_columns(figures=4),
    Column(
        "instructions",
        "least instructions of an interaction; in double those of float64",
        "instruc-\ntions",
    ),
    Column(
        "ceiling",
        "interactions a second that these allow at most",
        "\nceiling",
        times(1e-9, digits(4)),
    ),
    Column("limited_by", "what the ceiling is: instructions, or reciprocal roots", rank=2),
    Column("share_of_ceiling", "rate over ceiling", "of the\nceiling", "{:.1%}".format),
)


@dataclass(frozen=True)
class Kernel:
    """One kernel to be measured.

    Attributes
    ----------
    name : str
    counts_as : str, optional
        Whose instructions it needs, by their name in `INSTRUCTIONS`; None if it has no
        interactions.
    action : callable
        Takes a `ProductionRun`, ready to sum; returns what is timed.
    equal : bool
        Whether all masses are the same.
    """

    name: str
    counts_as: str | None
    action: object
    equal: bool = False


def _accelerations(run):
    return partial(run.kernels.accelerations, run.state)


def _potential(run):
    return partial(run.kernels.potential, run.state, run.backend.zeros(run.problem.number, "f8"))


def _jerks(run):
    jerk = run.backend.zeros((run.problem.number, 3), "f8")
    return partial(run.kernels.accelerations_and_jerks, run.state, run.state.velocity, jerk)


def _atomic(run):
    kernels = ATOMIC_KERNELS[type(run.kernels)]
    run.kernels = kernels(run.backend, run.state, PairForce(run.precision, run.problem.softening))
    run.kernels.pack(run.state)
    return partial(run.kernels.accelerations, run.state)


def _pack(run):
    return partial(run.kernels.pack, run.state)


KERNELS = (
    Kernel(ACCELERATIONS, ACCELERATIONS, _accelerations),
    Kernel(EQUAL, EQUAL, _accelerations, equal=True),
    Kernel(POTENTIAL, POTENTIAL, _potential),
    Kernel(JERKS, JERKS, _jerks),
    Kernel(ATOMIC, ACCELERATIONS, _atomic),
    Kernel(PACK, None, _pack),
)


def run(arguments) -> int:
    """Carry out ``bench limits`` and return the exit code."""
    repeats = options.number("--repeats", arguments.repeats)
    asked = options.sizes(arguments)
    devices = find_devices("gpu")
    check_memory(devices, asked or [SIZE])
    peak = cache(lambda: measure_peak(devices.gpu))
    problem = cache(massive_box)
    tasks = [
        Task(
            f"{precision}: random in [-5, 5]^3, masses in [1, 10]",
            f"{number} bodies, {kernel.name}",
            partial(_row, devices.gpu, precision, kernel, number, problem, repeats, peak),
        )
        for precision, number, kernel in chosen(sorted(asked) if asked else None)
    ]
    conclude = partial(_conclusion, peak=peak)
    return carry_out(
        Plan("limits", COLUMNS, tasks, partial(write, limits_figure), conclude), devices, arguments
    )


def chosen(asked) -> list:
    """Return (precision, bodies, kernel) of each row: all kernels at the sizes asked for, or what suits."""
    few = [] if asked else [("single", number, KERNELS[0]) for number in SINGLE_SIZES]
    return few + [
        (precision, number, kernel)
        for precision in PRECISIONS
        for number in asked or [SIZE]
        for kernel in KERNELS
    ]


def _row(backend, precision, kernel, number, problem, repeats, peak, rows, stop):
    ready = ProductionRun(backend, precision, _with_masses(problem(number), kernel.equal))
    ready.force()
    taken = timed(backend, kernel.action(ready), repeats, stop)
    targets = ready.kernels.jerk_targets if kernel.name == JERKS else ready.kernels.targets
    head = {"precision": precision, "bodies": number, "kernel": kernel.name}
    if kernel.counts_as is None:
        return head | taken.columns
    reached = _against_ceiling(number**2 / taken.median, peak(), precision, kernel.counts_as)
    return (
        head
        | {"times_a_pair": ready.kernels.times_a_pair, "targets": targets}
        | taken.columns
        | reached
    )


def _with_masses(problem, equal):
    return replace(problem, mass=np.ones_like(problem.mass)) if equal else problem


def _against_ceiling(rate, peak, precision, kernel):
    """Return the columns that compare a rate with its ceiling."""
    most, limited_by = ceiling(peak, precision, kernel)
    return {
        "interactions_per_s": rate,
        "instructions": INSTRUCTIONS[precision][kernel],
        "ceiling": most,
        "limited_by": limited_by,
        "share_of_ceiling": rate / most,
    }


def ceiling(peak, precision: str, kernel: str) -> tuple[float, str]:
    """Return the interactions a second that the arithmetic of a kernel allows at most, and what limits them."""
    instructions = (peak.double if precision == "double" else peak.single) / INSTRUCTIONS[
        precision
    ][kernel]
    return min((instructions, "instructions"), (peak.roots, "reciprocal roots"))


def _conclusion(rows, peak):
    """Return the peak of the GPU, what a fixed order costs and what pack takes, in words."""
    if not rows:
        return []
    seconds = {(row["precision"], row["bodies"], row["kernel"]): row["median_s"] for row in rows}
    lines = [peak().description]
    for precision, number in dict.fromkeys(key[:2] for key in seconds):
        lines += costs(
            precision, number, *(seconds.get((precision, number, name)) for name in COMPARED)
        )
    return lines


COMPARED = (ACCELERATIONS, ATOMIC, PACK)


def costs(precision, number, fixed, atomic, pack) -> list[str]:
    """Return in words what a fixed order of summation costs, and packing; nothing of what was not measured."""
    head = f"{precision}, {number} bodies:"
    lines = []
    if fixed and atomic:
        lines.append(
            f"{head} a fixed order of the sums costs {fixed / atomic - 1:+.1%} over atomic adds"
        )
    if fixed and pack:
        lines.append(f"{head} pack takes {pack / fixed:.1%} of the time of the accelerations")
    return lines
