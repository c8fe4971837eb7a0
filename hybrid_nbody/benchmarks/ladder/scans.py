"""``bench threads`` and ``bench blocks``: loops of ladder A and tiles of ladder C, varied."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from rich.table import Table

from hybrid_nbody.analysis import style
from hybrid_nbody.backends.cpu import CpuBackend, usable_cores
from hybrid_nbody.benchmarks.harness import measure, options, pictures
from hybrid_nbody.benchmarks.harness.machine import Devices, check_memory, find_devices
from hybrid_nbody.benchmarks.harness.measure import Column, Row, Stop, alike, digits
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.runs import box, massive_box, measured
from hybrid_nbody.benchmarks.ladder import rungs
from hybrid_nbody.benchmarks.ladder.runs import Kernel, KernelRun
from hybrid_nbody.errors import InputError

LOOPS = (rungs.THREADS, rungs.IN_C, rungs.PRODUCTION[0], rungs.IN_C_DOUBLE, rungs.PRODUCTION_DOUBLE)
LOOP_COLOURS = (style.VERMILLION, style.BLUE, style.GREEN, style.SKY, style.BLACK)
SEVERAL = 8
"""Cores up to which every number of threads is measured; beyond that powers of two, and all."""

THREADS_COLUMNS = (
    measure.BODIES,
    Column("loop", "what was measured", "Loop", note="note"),
    Column("threads", "threads", "threads"),
    Column("note", "what the machine lacks for this loop, or how many targets a step was cut to"),
    measure.TARGETS,
    *measure.timing_columns(" of a step", "steps"),
    measure.GFLOPS,
    Column("speedup", "speed-up over the fewest threads measured", "speed-\nup", "3"),
    Column("efficiency", "rate a thread, relative to these", "effi-\nciency", ".0%"),
    *measure.CHECKS,
)


def run_threads(arguments: Namespace) -> int:
    """Carry out ``bench threads`` and return the exit code."""
    repeats = arguments.repeats
    most = usable_cores()
    counts = list(range(1, most + 1)) if most <= SEVERAL else measure.doubling(most)
    if arguments.threads is not None:
        counts = options.numbers("--threads", arguments.threads, 1, most)
    sizes = options.sizes(arguments, [16384 if most <= SEVERAL else 65536])
    devices = find_devices("cpu")
    check_memory(devices, sizes)
    tasks = [task for number in sizes for task in _threads_tasks(number, sorted(counts), repeats)]
    plan = Plan("threads", THREADS_COLUMNS, tasks, draw_threads)
    return carry_out(plan, devices, arguments)


def _threads_tasks(number: int, counts: list[int], repeats: int) -> Iterator[Task]:
    problem = cache(lambda: box(number))
    section = f"Threads, {number} bodies: random in [-1, 1]^3, unit masses"

    def row_of(loop: rungs.Rung, count: int, rows: list[Row], stop: Stop) -> Row:
        head: Row = {"bodies": number, "loop": loop.name, "threads": count}
        row = loop.row(head, Devices(CpuBackend(count), None), problem(), repeats, stop)
        if "interactions_per_s" not in row:
            return row
        fewest = next(iter(alike(rows, head, "bodies", "loop")), row)
        speedup = row["interactions_per_s"] / fewest["interactions_per_s"]
        return row | {"speedup": speedup, "efficiency": speedup * fewest["threads"] / count}

    for loop in LOOPS:
        for count in counts:
            yield Task(section, f"{loop.name}, {count}", partial(row_of, loop, count))


def draw_threads(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw rate and efficiency against threads for each loop at the largest size."""
    rows = measure.having(rows)
    number = max((row["bodies"] for row in rows), default=0)
    figure = pictures.new_figure(3.2, facts, "cpu", f"{number} bodies; ")
    left, right = figure.subplots(1, 2)
    loops = measure.groups(measure.only(rows, bodies=number), "loop")
    for ((name,), group), colour in zip(loops, LOOP_COLOURS, strict=False):
        _draw_loop(left, right, name, group, colour)
    for axes in (left, right):
        style.size_axis(axes, {row["threads"] for row in rows}, base=2)
        axes.set_xlabel("threads")
    left.set(yscale="log", ylabel=pictures.RATE)
    style.decades(left.yaxis, pictures.rate_text)
    left.margins(y=0.15)
    left.plot([], [], ":", color=style.GREY, linewidth=1, label="ideal")
    figure.legend(loc="outside lower center", ncols=4, columnspacing=1.2)
    right.axhline(1, color=style.GREY, linewidth=1, linestyle=":")
    right.set(ylim=(0, 1.15), ylabel="parallel efficiency")
    return figure


def _draw_loop(left: Axes, right: Axes, name: str, rows: list[Row], colour: str) -> None:
    threads = np.array([row["threads"] for row in rows])
    rate = np.array([row["interactions_per_s"] for row in rows])
    left.plot(threads, rate, "o-", color=colour, markersize=4, label=name)
    left.plot(threads, rate[0] * threads / threads[0], ":", color=colour, linewidth=1)
    below: pictures.Look = {"xytext": (0, -11), "textcoords": "offset points", "ha": "center"}
    left.annotate(pictures.rate_text(rate[-1]), (threads[-1], rate[-1]), fontsize=7, **below)
    right.plot(threads, [row["efficiency"] for row in rows], "o-", color=colour, markersize=4)


BLOCK_SIZES = (1024, 4096, 16384, 65536)
MOST_UNROLLED = 1024

BLOCKS_COLUMNS = (
    measure.BODIES,
    Column("block", "threads of a block, p"),
    measure.UNROLL,
    Column("fills", "whether N / p is at least the number of multiprocessors"),
    Column("note", "how many targets a step was cut to"),
    *measure.timing_columns(" of a step", "steps"),
    measure.GFLOPS,
    measure.ERROR_MEDIAN,
)


def run_blocks(arguments: Namespace) -> int:
    """Carry out ``bench blocks`` and return the exit code."""
    repeats = arguments.repeats
    sizes = options.sizes(arguments, BLOCK_SIZES)
    blocks = options.numbers("--blocks", arguments.blocks)
    unrolls = options.numbers("--unrolls", arguments.unrolls, 1, MOST_UNROLLED)
    devices = find_devices("gpu")
    limit = devices.facts["threads_per_block_limit"]
    if max(blocks) > limit:
        most = f"this GPU launches at most {limit} a block"
        raise InputError(f"--blocks: {max(blocks)} threads are too many: {most}")
    check_memory(devices, sizes)
    shapes = [(block, unroll) for block in sorted(blocks) for unroll in sorted(unrolls)]
    tasks = [task for number in sizes for task in _block_tasks(number, shapes, repeats, devices)]
    plan = Plan("blocks", BLOCKS_COLUMNS, tasks, draw_blocks, best_lines, pivot)
    return carry_out(plan, devices, arguments)


def _block_tasks(number: int, shapes: list, repeats: int, devices: Devices) -> Iterator[Task]:
    problem = cache(lambda: massive_box(number))
    fewest = devices.facts["multiprocessors"]
    section = (
        f"{number} bodies: G interactions/s; "
        f"* marks fewer blocks than multiprocessors, N / p < {fewest}"
    )

    def row_of(block: int, unroll: int, rows: list[Row], stop: Stop) -> Row:
        kernel = Kernel("ladder_c.cu", "tiles", block=block, unroll=unroll, options=rungs.FLUSH)
        head = {"bodies": number, "block": block, "unroll": unroll}
        fills = {"fills": number / block >= fewest}
        return head | fills | measured(KernelRun(devices.gpu, problem(), kernel), repeats, stop)

    for block, unroll in shapes:
        yield Task(section, f"block {block}, unroll {unroll}", partial(row_of, block, unroll))


def pivot(columns: Sequence[Column], rows: Sequence[Row], width: int) -> Table:
    """Return the rates of one size: a row a block size, a column an unroll factor."""

    def line_of(row: Row) -> str:
        return f"{row['block']}{' ' if row['fills'] else '*'}"

    best = max(rows, key=lambda row: row["interactions_per_s"])
    title_of = "unroll {unroll}".format_map
    return measure.pivot_table("block", rows, line_of, title_of, [best])


def best_lines(rows: Sequence[Row]) -> list[str]:
    """Return the best block size and unroll factor of each size, in words."""
    lines = []
    for (number,), own in measure.groups(rows, "bodies"):
        best = max(own, key=lambda row: row["interactions_per_s"])
        rate = digits(3)(best["interactions_per_s"] * 1e-9)
        shape = f"blocks of {best['block']}, unroll {best['unroll']}"
        lines.append(f"{number} bodies: best with {shape}: {rate} G interactions/s")
    return lines


def draw_blocks(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw a heat map a size, with the rule N / p >= multiprocessors marked."""
    sizes = measure.groups(rows, "bodies")
    across = min(2, len(sizes))
    down = -(-len(sizes) // across)
    figure = pictures.new_figure(0.5 + 2.9 * down, facts, "gpu", "G interactions/s; ")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes, ((size,), own) in zip(panels, sizes, strict=False):
        _draw_map(axes, own)
        _mark_rule(axes, sorted({row["block"] for row in own}), size, facts["multiprocessors"])
    for axes in panels[len(sizes) :]:
        axes.set_axis_off()
    return figure


def _draw_map(axes: Axes, rows: list[Row]) -> None:
    blocks, unrolls = (sorted({row[key] for row in rows}) for key in ("block", "unroll"))
    rates = np.ma.masked_all((len(blocks), len(unrolls)))
    for row in rows:
        place = blocks.index(row["block"]), unrolls.index(row["unroll"])
        rates[place] = row["interactions_per_s"] * 1e-9
    norm = LogNorm(rates.min() * 0.999, rates.max() * 1.001)
    axes.imshow(rates, norm=norm, cmap="viridis", aspect="auto", origin="lower")
    best = np.unravel_index(rates.argmax(), rates.shape)
    for y, x in np.argwhere(~np.ma.getmaskarray(rates)):
        _label_cell(axes, (x, y), rates[y, x], norm(rates[y, x]) < 0.6, best=(y, x) == best)
    axes.set_xticks(range(len(unrolls)), unrolls)
    axes.set_yticks(range(len(blocks)), blocks)
    axes.tick_params(length=0)
    axes.set(xlabel="unroll factor", ylabel="block size p")
    axes.set_title(f"{rows[0]['bodies']} bodies", loc="left")


def _label_cell(axes: Axes, place: tuple[int, int], value: float, dark: bool, best: bool) -> None:
    colour = "white" if dark else style.BLACK
    text = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    weight = "bold" if best else "normal"
    axes.text(*place, text, ha="center", va="center", fontsize=6.5, color=colour, weight=weight)
    if best:
        axes.plot(*place, "o", markersize=20, mfc="none", mec=colour, mew=1.2)


def _mark_rule(axes: Axes, blocks: list[int], number: int, multiprocessors: int) -> None:
    """Draw a line above the last block size that gives every multiprocessor a block."""
    filling = sum(number / block >= multiprocessors for block in blocks)
    axes.axhline(filling - 0.5, color=style.VERMILLION, linewidth=2.5, clip_on=False)
    rule = f"N/p {'≥' if filling else '<'} {multiprocessors}"
    where = "below the line" if 0 < filling < len(blocks) else "everywhere"
    axes.set_title(f"{rule} {where}", loc="right", fontsize=7, color=style.VERMILLION)
