"""``bench threads``: the CPU loops of ladder A on 1 to all cores."""

from functools import cache, partial

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.machine import check_memory, cores, find_devices
from hybrid_nbody.benchmarks.harness.pictures import threads_figure, write
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.results import Column, digits, timing_columns
from hybrid_nbody.benchmarks.ladder.ladder import measured
from hybrid_nbody.benchmarks.ladder.ladders import (
    IN_C,
    IN_C_DOUBLE,
    PRODUCTION,
    PRODUCTION_DOUBLE,
    THREADS,
)
from hybrid_nbody.benchmarks.ladder.problems import box

LOOPS = (THREADS, IN_C, PRODUCTION[0], IN_C_DOUBLE, PRODUCTION_DOUBLE)
SEVERAL = 8
"""Cores up to which every number of threads is measured; beyond that powers of two, and all."""

COLUMNS = (
    Column("bodies", "number of bodies N"),
    Column("loop", "what was measured", "Loop", note="note"),
    Column("threads", "threads", "threads"),
    Column("note", "what the machine lacks for this loop, or how many targets a step was cut to"),
    Column("targets", "bodies moved in a step: N, or fewer where a whole step would take too long"),
    *timing_columns(" of a step", "steps"),
    Column("gflops", "GFLOP/s at 20 operations an interaction", "\nGFLOP/s", digits(3), rank=1),
    Column("speedup", "speed-up over the fewest threads measured", "speed-\nup", digits(3)),
    Column(
        "efficiency",
        "rate a thread, relative to the fewest threads measured",
        "effi-\nciency",
        "{:.0%}".format,
    ),
    Column(
        "position_error",
        "largest difference of a coordinate from the float64 reference after a step",
    ),
    Column("error_median", "median error of the accelerations, each relative to its own length"),
)


def run(arguments) -> int:
    """Carry out ``bench threads`` and return the exit code."""
    repeats = options.number("--repeats", arguments.repeats)
    counts = (
        options.numbers("--threads", arguments.threads, 1, cores())
        if arguments.threads is not None
        else _counts(cores())
    )
    sizes = options.sizes(arguments, [_size(cores())])
    devices = find_devices("cpu")
    check_memory(devices, sizes)
    tasks = [task for number in sizes for task in _tasks(number, sorted(counts), repeats, devices)]
    return carry_out(
        Plan("threads", COLUMNS, tasks, partial(write, threads_figure)), devices, arguments
    )


def _counts(most):
    return (
        range(1, most + 1)
        if most <= SEVERAL
        else [*(2**k for k in range(most.bit_length()) if 2**k < most), most]
    )


def _size(most):
    return 16384 if most <= SEVERAL else 65536


def _tasks(number, counts, repeats, devices):
    problem = cache(lambda: box(number))
    for loop in LOOPS:
        for count in counts:
            head = {"bodies": number, "loop": loop.name, "threads": count}
            section = f"Threads, {number} bodies: random in [-1, 1]^3, unit masses"
            yield Task(
                section,
                f"{loop.name}, {count}",
                partial(_row, head, loop, problem, repeats, devices),
            )


def _row(head, loop, problem, repeats, devices, rows, stop):
    missing = loop.missing(devices)
    if missing:
        return head | {"note": missing}
    row = head | measured(loop.make(CpuBackend(head["threads"]), problem()), repeats, stop)
    return row | _scaling(
        row,
        [
            other
            for other in rows
            if other["bodies"] == row["bodies"] and other["loop"] == row["loop"]
        ],
    )


def _scaling(row, earlier):
    fewest = (earlier or [row])[0]
    speedup = row["interactions_per_s"] / fewest["interactions_per_s"]
    return {"speedup": speedup, "efficiency": speedup * fewest["threads"] / row["threads"]}
