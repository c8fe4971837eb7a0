"""``bench blocks``: the tiles of ladder C, block size against unroll factor."""

from functools import cache, partial

from rich.table import Table
from rich.text import Text

from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.machine import check_memory, find_devices
from hybrid_nbody.benchmarks.harness.pictures import blocks_figure, write
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.results import Column, digits, timing_columns
from hybrid_nbody.benchmarks.ladder.gpu_rungs import Kernel, KernelRun
from hybrid_nbody.benchmarks.ladder.ladder import measured
from hybrid_nbody.benchmarks.ladder.ladders import FLUSH
from hybrid_nbody.benchmarks.ladder.problems import massive_box
from hybrid_nbody.errors import InputError

SIZES = (1024, 4096, 16384, 65536)
MOST_UNROLLED = 1024

COLUMNS = (
    Column("bodies", "number of bodies N"),
    Column("block", "threads of a block, p"),
    Column("unroll", "unroll factor"),
    Column("fills", "whether N / p is at least the number of multiprocessors"),
    Column("note", "how many targets a step was cut to"),
    *timing_columns(" of a step", "steps"),
    Column("gflops", "GFLOP/s at 20 operations an interaction"),
    Column("error_median", "median error of the accelerations, each relative to its own length"),
)


def run(arguments) -> int:
    """Carry out ``bench blocks`` and return the exit code."""
    repeats = options.number("--repeats", arguments.repeats)
    sizes = options.sizes(arguments, SIZES)
    blocks = options.numbers("--blocks", arguments.blocks)
    unrolls = options.numbers("--unrolls", arguments.unrolls, 1, MOST_UNROLLED)
    devices = find_devices("gpu")
    check_blocks(blocks, devices.facts["threads_per_block_limit"])
    check_memory(devices, sizes)
    tasks = [
        task
        for number in sizes
        for task in _tasks(number, sorted(blocks), sorted(unrolls), repeats, devices)
    ]
    plan = Plan(
        "blocks", COLUMNS, tasks, partial(write, blocks_figure), conclude=best_lines, tabulate=pivot
    )
    return carry_out(plan, devices, arguments)


def check_blocks(blocks, limit: int) -> None:
    """Check that the device can launch blocks of these sizes.

    Raises
    ------
    InputError
        If it cannot, naming its limit.
    """
    if max(blocks) > limit:
        raise InputError(
            f"--blocks: {max(blocks)} threads are too many: this GPU launches at most {limit} a block"
        )


def _tasks(number, blocks, unrolls, repeats, devices):
    problem = cache(lambda: massive_box(number))
    fewest = devices.facts["multiprocessors"]
    section = f"{number} bodies: G interactions/s; * marks fewer blocks than multiprocessors, N / p < {fewest}"
    for block in blocks:
        for unroll in unrolls:
            head = {
                "bodies": number,
                "block": block,
                "unroll": unroll,
                "fills": number / block >= fewest,
            }
            yield Task(
                section,
                f"block {block}, unroll {unroll}",
                partial(_row, head, problem, repeats, devices),
            )


def _row(head, problem, repeats, devices, rows, stop):
    kernel = Kernel(
        "ladder_c.cu", "tiles", block=head["block"], unroll=head["unroll"], options=FLUSH
    )
    return head | measured(KernelRun(devices.gpu, kernel, problem()), repeats, stop)


def pivot(columns, rows, width: int) -> Table:
    """Return the rates of one size: a row a block size, a column an unroll factor."""
    unrolls = sorted({row["unroll"] for row in rows})
    rates = {(row["block"], row["unroll"]): row["interactions_per_s"] * 1e-9 for row in rows}
    best = max(rates, key=rates.get)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("block", *(f"unroll {unroll}" for unroll in unrolls)):
        table.add_column(title, justify="right")
    for block, fills in sorted({(row["block"], row["fills"]) for row in rows}):
        cells = [_cell(rates.get((block, unroll)), (block, unroll) == best) for unroll in unrolls]
        table.add_row(f"{block}{' ' if fills else '*'}", *cells)
    return table


def _cell(rate, best):
    return Text("" if rate is None else digits(3)(rate), "bold" if best else "")


def best_lines(rows) -> list[str]:
    """Return the best block size and unroll factor of each size, in words."""
    lines = []
    for number in dict.fromkeys(row["bodies"] for row in rows):
        best = max(
            (row for row in rows if row["bodies"] == number),
            key=lambda row: row["interactions_per_s"],
        )
        rate = digits(3)(best["interactions_per_s"] * 1e-9)
        lines.append(
            f"{number} bodies: best with blocks of {best['block']}, unroll {best['unroll']}: {rate} G interactions/s"
        )
    return lines
