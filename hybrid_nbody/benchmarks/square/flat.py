"""``bench flat``: gravity in a plane by N threads and by N x N threads, in the memories and layouts of a course."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.machine import check_memory, find_devices
from hybrid_nbody.benchmarks.harness.pictures import write
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.results import Column, digits, timing_columns
from hybrid_nbody.benchmarks.ladder.ladder import measured
from hybrid_nbody.benchmarks.ladder.production import ProductionRun
from hybrid_nbody.benchmarks.square.pictures import flat_figure
from hybrid_nbody.benchmarks.square.runs import (
    LAYOUTS,
    MEMORIES,
    MOST_BODIES,
    Kernel,
    KernelRun,
    LoopRun,
    square,
)

SIZES = "250,500,1000,3000,5000"
COMPARED = "500,700,900,1100"
BLOCKS = (16, 32, 64)
UNROLLS = (1, 4, 16)
ONE_THREAD = "CPU, one thread"
ALL_THREADS = "CPU, all threads"

COLUMNS = (
    Column("part", "memory, blocks or devices"),
    Column("bodies", "number of bodies N"),
    Column("rung", "what was measured", "Rung", note="note"),
    Column("device", "cpu or gpu"),
    Column("note", "what the machine lacks for this rung"),
    Column("threads", "threads of a GPU rung: N, one a body, or N x N, one a pair"),
    Column("layout", "structs: an array of structs; arrays: a struct of arrays"),
    Column(
        "memory", "where sources are read from; shared with N x N threads: where results are staged"
    ),
    Column("block", "threads of a block"),
    Column("unroll", "unroll factor"),
    Column("targets", "bodies moved in a step: N"),
    *timing_columns(" of a step", "steps", rank=4),
    Column("gflops", "GFLOP/s at 20 operations an interaction"),
    Column(
        "speedup", "speed-up over the first rung of the same part and size", "×\nfirst", digits(3)
    ),
    Column("checked", "bodies compared with the float64 reference"),
    Column("within_tolerance", "share of them that a step moved to within 0.005 of it"),
    Column("position_error", "largest difference of their coordinates after a step"),
    Column(
        "error_median",
        "median error of their accelerations, each relative to its own length",
        "relative\nerror",
        "{:.0e}".format,
    ),
    Column(
        "error_max", "largest error of their accelerations", "\nlargest", "{:.0e}".format, rank=5
    ),
)


@dataclass(frozen=True)
class Rung:
    """One row: what it is called, on which device, what makes its run, and the kernel where it has one."""

    name: str
    device: str
    make: Callable
    kernel: Kernel | None = None


def run(arguments) -> int:
    """Carry out ``bench flat`` and return the exit code."""
    repeats = options.number("--repeats", arguments.repeats)
    sizes = options.numbers("--sizes", arguments.sizes or SIZES, 2, MOST_BODIES)
    compared = options.numbers("--compare", arguments.compare, 2, MOST_BODIES)
    devices = find_devices(arguments.backend)
    check_memory(devices, [*sizes, *compared])
    tasks = [
        *_tasks_of_sizes(sizes, devices, repeats),
        *_tasks_of("devices", compared, RUNGS, devices, repeats),
    ]
    plan = Plan("flat", COLUMNS, tasks, partial(write, flat_figure), conclude, summarise=summary)
    return carry_out(plan, devices, arguments)


# --- the rungs ------------------------------------------------------------------------------------


def on_gpu(name, **how) -> Rung:
    """Return a rung that is a kernel of ``flat.cu``."""
    kernel = Kernel(**how)
    return Rung(name, "gpu", lambda backend, problem: KernelRun(backend, kernel, problem), kernel)


def on_cpu(name, function, alone=False) -> Rung:
    """Return a rung that is a loop of ``flat_loops``, on one thread or on all."""
    return Rung(
        name,
        "cpu",
        lambda backend, problem: LoopRun(CpuBackend(1) if alone else backend, function, problem),
    )


def _production(device):
    make = lambda backend, problem: ProductionRun(backend, "single", problem)  # noqa: E731
    return Rung(f"{device.upper()}, as a run computes", device, make)


MEMORY_RUNGS = tuple(
    on_gpu(f"{threads} threads, {layout}, {memory}", threads=threads, layout=layout, memory=memory)
    for threads in ("N", "N x N")
    for layout in LAYOUTS
    for memory in MEMORIES
)
BLOCK_RUNGS = (
    *(
        on_gpu(f"N threads, {memory}, block {block}, unroll {unroll}", **how)
        for memory in ("read-only", "shared")
        for block in BLOCKS
        for unroll in UNROLLS
        for how in [{"threads": "N", "memory": memory, "block": block, "unroll": unroll}]
    ),
    *(
        on_gpu(
            f"N x N threads, {memory}, block {block}", threads="N x N", memory=memory, block=block
        )
        for memory in ("read-only", "shared")
        for block in BLOCKS
    ),
)
RUNGS = (
    on_cpu(ONE_THREAD, "serial", alone=True),
    on_cpu(ALL_THREADS, "threads"),
    _production("cpu"),
    on_gpu("GPU, N threads", threads="N", memory="texture"),
    on_gpu("GPU, N x N threads", threads="N x N"),
    _production("gpu"),
)

TITLES = {
    "memory": "{} bodies: threads, layout and memory, blocks of 64",
    "blocks": "{} bodies: block size and unrolling, struct of arrays",
    "devices": "{} bodies: one thread, all threads and a GPU",
}


def _tasks_of_sizes(sizes, devices, repeats):
    for number in sizes:
        yield from _tasks_of("memory", [number], MEMORY_RUNGS, devices, repeats)
        yield from _tasks_of("blocks", [number], BLOCK_RUNGS, devices, repeats)


def _tasks_of(part, sizes, rungs, devices, repeats):
    for number in sizes:
        problem = cache(partial(square, number))
        for rung in rungs:
            head = {"part": part, "bodies": number, "rung": rung.name, "device": rung.device}
            yield Task(
                TITLES[part].format(number),
                rung.name,
                partial(_row, head, rung, problem, devices, repeats),
            )


def _row(head, rung, problem, devices, repeats, rows, stop):
    row = head | (vars(rung.kernel) if rung.kernel else {})
    if rung.device == "gpu" and devices.gpu is None:
        return row | {"note": "needs a GPU"}
    row |= measured(rung.make(getattr(devices, rung.device), problem()), repeats, stop)
    devices.cpu.use()  # one rung takes a single thread
    peers = [
        peer for peer in rows if (peer["part"], peer["bodies"]) == (row["part"], row["bodies"])
    ]
    first = next((peer["median_s"] for peer in peers if peer.get("median_s")), row["median_s"])
    return row | {"speedup": first / row["median_s"]}


# --- the conclusion -------------------------------------------------------------------------------


def fastest(rows, threads: str) -> dict[int, float]:
    """Return the seconds of the fastest rung with N, or with N x N threads, by the number of bodies.

    The comparison of devices is left out: it times one rung of each, another at each size would be
    the fastest.
    """
    found = {}
    for row in rows:
        if row["part"] != "devices" and row.get("threads") == threads and row.get("median_s"):
            found[row["bodies"]] = min(row["median_s"], found.get(row["bodies"], math.inf))
    return dict(sorted(found.items()))


def crossover(rows) -> float | None:
    """Return the number of bodies above which N threads are faster than N x N threads; None if there is no such one.

    Between two sizes the logarithm of the ratio of times is interpolated along that of the size.
    """
    bodies = fastest(rows, "N")
    pairs = fastest(rows, "N x N")
    sizes = sorted(bodies.keys() & pairs.keys())
    for low, high in zip(sizes, sizes[1:], strict=False):
        before, after = (math.log(bodies[size] / pairs[size]) for size in (low, high))
        if before > 0 >= after:
            return low * (high / low) ** (before / (before - after))
    return None


def conclude(rows) -> list[str]:
    """Return where N x N threads stop to pay, and what threads and a GPU bring, in words."""
    return [_crossing(rows), *_gains(rows)]


def summary(rows) -> dict:
    """Return the same for the JSON."""
    return {"crossover_bodies": crossover(rows), "conclusions": conclude(rows)}


def _crossing(rows):
    bodies = fastest(rows, "N")
    pairs = fastest(rows, "N x N")
    if not bodies or not pairs:
        return "N threads against N x N threads: not measured, it needs a GPU"
    found = crossover(rows)
    if found:
        return f"N x N threads are faster up to about {found:.0f} bodies, N threads above; the course found about 1000"
    size = max(bodies.keys() & pairs.keys())
    faster = "N threads" if bodies[size] <= pairs[size] else "N x N threads"
    return f"no crossover: {faster} are faster at {size} bodies; the course found one near 1000"


def _gains(rows):
    rows = [row for row in rows if row["part"] == "devices" and row.get("median_s")]
    number = max((row["bodies"] for row in rows), default=0)
    for row in rows:
        if row["bodies"] == number and row["rung"] != ONE_THREAD:
            yield f"{number} bodies: {row['rung']}: {digits(3)(row['speedup'])} times as fast as one thread"
