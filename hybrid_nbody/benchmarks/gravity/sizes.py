"""``bench sizes``: the kernels of a run against the number of bodies, in every precision and on every backend."""

import math
from functools import cache, partial

from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.machine import check_memory, find_devices
from hybrid_nbody.benchmarks.harness.measure import timed
from hybrid_nbody.benchmarks.harness.peak import measure_peak
from hybrid_nbody.benchmarks.harness.pictures import sizes_figure, write
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.results import Column, digits, timing_columns
from hybrid_nbody.benchmarks.ladder.ladder import check
from hybrid_nbody.benchmarks.ladder.problems import OPERATIONS, massive_box
from hybrid_nbody.benchmarks.ladder.production import ProductionRun
from hybrid_nbody.nbody.kernels.precision import PRECISIONS
from hybrid_nbody.progress import duration

SIZES = tuple(2**k for k in range(6, 21))
LONGEST_ROW = 60.0
"""Seconds: a row that would take longer is left out, unless its size was asked for."""

COLUMNS = (
    Column("device", "cpu or gpu"),
    Column("precision", "of the pair force"),
    Column("bodies", "number of bodies N", "Bodies", note="note"),
    Column("note", "why a row was not measured"),
    *timing_columns(" of a force", "forces"),
    Column("gflops", "GFLOP/s at 20 operations an interaction", "\nGFLOP/s", digits(3)),
    Column(
        "share_of_ceiling",
        "share of the issue-slot ceiling of single precision on this GPU",
        "of the\nceiling",
        "{:.1%}".format,
    ),
    Column(
        "error_median",
        "median error of the accelerations, each relative to its own length",
        "relative\nerror",
        "{:.0e}".format,
    ),
    Column("error_max", "largest error of the accelerations", "\nlargest", "{:.0e}".format, rank=1),
)


def run(arguments) -> int:
    """Carry out ``bench sizes`` and return the exit code."""
    repeats = options.number("--repeats", arguments.repeats)
    asked = options.sizes(arguments)
    devices = find_devices(arguments.backend)
    check_memory(devices, asked or SIZES[:1])
    ceiling = cache(lambda: measure_peak(devices.gpu)) if devices.gpu else None
    longest = math.inf if asked else LONGEST_ROW
    backends = [
        backend
        for backend in (devices.cpu, devices.gpu)
        if backend and arguments.backend in ("auto", backend.kind)
    ]
    problem = cache(massive_box)
    tasks = [
        task
        for precision in PRECISIONS
        for backend in backends
        for task in _tasks(
            backend,
            precision,
            sorted(asked or SIZES),
            problem,
            repeats,
            longest,
            ceiling if (backend, precision) == (devices.gpu, "single") else None,
        )
    ]
    conclude = partial(_conclusion, peak=ceiling)
    return carry_out(
        Plan("sizes", COLUMNS, tasks, partial(write, sizes_figure), conclude), devices, arguments
    )


def _tasks(backend, precision, sizes, problem, repeats, longest, peak):
    section = f"{precision} on {backend.description}: pack and force, random in [-5, 5]^3, masses in [1, 10]"
    for number in sizes:
        head = {"device": backend.kind, "precision": precision, "bodies": number}
        yield Task(
            section,
            f"{number} bodies",
            partial(_row, head, backend, problem, repeats, longest, peak),
        )


def _row(head, backend, problem, repeats, longest, peak, rows, stop):
    expected = expected_seconds(head, rows, repeats)
    if expected > longest:
        return head | {"note": f"left out: about {duration(expected)}"}
    run = ProductionRun(backend, head["precision"], problem(head["bodies"]))
    checked = check(run, head["bodies"], stop)
    taken = timed(backend, run.force, repeats, stop)
    rate = head["bodies"] ** 2 / taken.median
    row = (
        head
        | taken.columns
        | checked
        | {"interactions_per_s": rate, "gflops": rate * OPERATIONS * 1e-9}
    )
    return row | ({"share_of_ceiling": rate / peak().ceiling()} if peak else {})


def expected_seconds(head, rows, repeats: int) -> float:
    """Return how long a row will take, by the largest size before it on the same device; zero for the first."""
    earlier = series(rows, head["device"], head["precision"])
    if not earlier:
        return 0.0
    force = earlier[-1]["median_s"] * (head["bodies"] / earlier[-1]["bodies"]) ** 2
    return force * (repeats + 3)


def series(rows, device: str, precision: str) -> list[dict]:
    """Return the measured rows of a device and a precision, in the order of their sizes."""
    return [
        row
        for row in rows
        if (row["device"], row["precision"]) == (device, precision) and "interactions_per_s" in row
    ]


def crossover(rows, precision: str) -> tuple[float, float] | None:
    """Return the number of bodies from which the GPU is faster than the CPU, and the rate there.

    Between two sizes the logarithm of the ratio of rates is interpolated along that of the size;
    None if the GPU is faster, or slower, at all sizes that both have.
    """
    cpu, gpu = (
        {row["bodies"]: row["interactions_per_s"] for row in series(rows, d, precision)}
        for d in ("cpu", "gpu")
    )
    common = sorted(cpu.keys() & gpu.keys())
    for low, high in zip(common, common[1:], strict=False):
        before, after = (math.log(gpu[size] / cpu[size]) for size in (low, high))
        if before < 0 <= after:
            part = -before / (after - before)
            return low * (high / low) ** part, cpu[low] * (cpu[high] / cpu[low]) ** part
    return None


def _conclusion(rows, peak):
    """Return the peak of the GPU and the crossovers, in words."""
    lines = (
        [peak().description] if peak and any(row.get("share_of_ceiling") for row in rows) else []
    )
    for precision in PRECISIONS:
        if series(rows, "cpu", precision) and series(rows, "gpu", precision):
            found = crossover(rows, precision)
            text = (
                f"is faster than the CPU from about {found[0]:.0f} bodies on"
                if found
                else "and the CPU do not cross"
            )
            lines.append(f"{precision}: the GPU {text}")
    return lines
