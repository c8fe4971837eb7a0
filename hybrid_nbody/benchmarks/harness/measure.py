"""Timing, and the columns of the tables that show it.

A device does the same in a row, again and again, the first time left out.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hybrid_nbody.backends.base import Backend

SHORTEST = 2e-3
"""Seconds that a timing lasts at least, unless `MOST_CALLS` take less: short calls are repeated
within it."""

MOST_CALLS = 200

LONGEST = 0.5
"""Seconds that a call should last at most: slower loops are timed on fewer targets, and their rows
say so."""

FIRST_TARGETS = 32

Row = dict[str, Any]
"""A row of results, by the keys of its columns."""

Action = Callable[[], Any]
Stop = Callable[[], None]
"""Queues work on a device; raises `Stopped` once a person has asked to stop."""

Show = str | Callable[[Any], str]
"""The format of a value: significant digits and a unit, as in ``3 G``, a format such as ``.1%``, or
a function that returns the text."""


class Stopped(Exception):
    """A person asked to stop; what has been measured is kept."""


@dataclass(frozen=True)
class Times:
    """Repeated timings: seconds a call in each, and the calls in a row that each is the mean of."""

    seconds: tuple[float, ...]
    calls: int = 1

    @property
    def mean(self) -> float:
        """Mean over the timings."""
        return statistics.fmean(self.seconds)

    @property
    def sd(self) -> float:
        """Standard deviation over the timings; zero for a single one."""
        return statistics.stdev(self.seconds) if len(self.seconds) > 1 else 0.0

    @property
    def median(self) -> float:
        """Median over the timings."""
        return statistics.median(self.seconds)

    @property
    def columns(self) -> Row:
        """Return the columns of a table that describe the timings."""
        return {
            "mean_s": self.mean,
            "sd_s": self.sd,
            "median_s": self.median,
            "repeats": len(self.seconds),
            "calls": self.calls,
        }


def seconds_of(backend: Backend, action: Action) -> float:
    """Return the seconds from the start of `action` to the end of its work on the device."""
    start = backend.mark()
    action()
    return backend.elapsed(start, backend.mark())


def timings(backend: Backend, batch: Action, repeats: int, stop: Stop, calls: int = 1) -> Times:
    """Time `batch`, which is warm and does `calls` calls in a row; parameters as in `timed`."""
    seconds = []
    for _ in range(repeats):
        stop()
        seconds.append(seconds_of(backend, batch) / calls)
    return Times(tuple(seconds), calls)


def timed(backend: Backend, action: Action, repeats: int, stop: Stop) -> Times:
    """Time `action` on the clock of a device (CUDA events on a GPU), after calls that do not count.

    `stop` is called before each timing.
    """
    stop()
    action()
    stop()
    calls = calls_for(seconds_of(backend, action))
    batch = BATCHES[backend.name](backend, action, calls)
    if calls > 1:  # a single call is warm by now
        stop()
        batch()
    return timings(backend, batch, repeats, stop, calls)


def calls_for(seconds: float) -> int:
    """Return the number of calls, each of that many seconds, that make a timing."""
    return min(max(1, math.ceil(SHORTEST / max(seconds, 1e-9))), MOST_CALLS)


def affordable(repeats: int, seconds: float, most_seconds: float, fewest: int = 1) -> int:
    """Return how many of `repeats` timings fit into a row's time; at least the fewest."""
    return max(min(repeats, fewest), min(repeats, int(most_seconds / max(seconds, 1e-9))))


def _one_after_another(backend: Backend, action: Action, calls: int) -> Action:
    def batch() -> None:
        for _ in range(calls):
            action()

    return batch


def _captured(backend: Any, action: Action, calls: int) -> Action:
    """Return one launch of a captured graph: the host's time to launch kernels does not count."""
    return backend.capture(_one_after_another(backend, action, calls))


BATCHES = {"cpu": _one_after_another, "gpu": _captured}


def crossing(first: dict[int, float], second: dict[int, float]) -> tuple[float, float] | None:
    """Return the size at which the ratio of two curves falls to 1, and their value there.

    Between two sizes the logarithm of the ratio is interpolated along that of the size; None if it
    does not fall to 1 between two sizes that both have.
    """
    sizes = sorted(first.keys() & second.keys())
    for low, high in zip(sizes, sizes[1:], strict=False):
        before, after = (math.log(first[size] / second[size]) for size in (low, high))
        if before > 0 >= after:
            part = before / (before - after)
            return low * (high / low) ** part, first[low] * (first[high] / first[low]) ** part
    return None


def targets_within(
    backend: Backend, step: Callable, number: int, stop: Stop, longest: float = LONGEST
) -> int:
    """Return how many of `number` targets a call of ``step(targets)`` can do in `longest` seconds.

    It compiles on the way.
    """
    step(1)
    targets = min(FIRST_TARGETS, number)
    while True:
        stop()
        seconds = seconds_of(backend, partial(step, targets))
        if targets == number or seconds > longest / 8:
            return min(number, max(1, int(targets * longest / seconds)))
        targets = min(8 * targets, number)


# --- columns --------------------------------------------------------------------------------------


def digits(count: int) -> Callable[[float], str]:
    """Return a function that shows that many significant digits, and never powers of ten."""

    def show(value: float) -> str:
        exponent = int(f"{value:.{count - 1}e}".split("e")[1]) if value else 0
        return f"{value:.{min(max(count - 1 - exponent, 0), 9)}f}"

    return show


UNITS = {"": 1, "ms": 1e3, "M": 1e-6, "G": 1e-9}


def shown(value: Any, how: Show) -> str:
    """Return the text of a value, or of the range of a list; see `Show`."""
    if callable(how):
        return how(value)
    if isinstance(value, list):
        low, high = shown(min(value), how), shown(max(value), how)
        return low if low == high else f"{low}-{high}"
    count, _, unit = how.partition(" ")
    return digits(int(count))(value * UNITS[unit]) if count.isdecimal() else format(value, how)


@dataclass(frozen=True)
class Column:
    """A column of a benchmark's results.

    Attributes
    ----------
    key, meaning : str
        Its name in CSV and JSON, and what it is, with its unit.
    title : str
        Its head in the terminal's table; a column without one is left out there.
    show : str or callable
        See `Show`.
    rank : int
        Where a terminal is too narrow, columns of the highest rank are left out first.
    note : str
        Key of what is added to the text in brackets, if the row has it.
    """

    key: str
    meaning: str
    title: str = ""
    show: Show = ""
    rank: int = 0
    note: str = ""

    def cell(self, row: Row) -> str:
        """Return the text of a row in this column."""
        value = row.get(self.key)
        text = "" if value is None or value == "" else shown(value, self.show)
        return f"{text} ({row[self.note]})" if row.get(self.note) else text

    def shown(self, title: str, show: Show = "", rank: int = 0, note: str = "") -> "Column":
        """Return the same column with a head in the table."""
        return replace(self, title=title, show=show, rank=rank, note=note)


BODIES = Column("bodies", "number of bodies N")
DEVICE = Column("device", "cpu or gpu")
PRECISION = Column("precision", "of the pair force")
BLOCK = Column("block", "threads of a block")
UNROLL = Column("unroll", "unroll factor")
TARGETS = Column("targets", "bodies moved in a step: N, or fewer where a step would take too long")
GFLOPS = Column("gflops", "GFLOP/s at 20 operations an interaction")
CHECKED = Column("checked", "bodies compared with the float64 reference")
WITHIN = Column("within_tolerance", "share of them that a step moved to within 0.005 of it")
POSITION_ERROR = Column("position_error", "largest difference of their coordinates after a step")
ERROR_MEDIAN = Column("error_median", "median error of accelerations, each relative to its length")
ERROR_MAX = Column("error_max", "largest error of accelerations, relative to its length")
"""Columns that several benchmarks have."""


def timing_columns(
    of: str = "", several: str = "calls", rank: int = 3, figures: int = 3
) -> tuple[Column, ...]:
    """Return the columns of `Times` and of the rate at their median.

    What was timed is said as in ``" of a step"``, and what a timing is the mean of as in ``steps``;
    `rank` is that of the mean, and the rate has some significant figures.
    """
    return (
        Column("mean_s", f"mean time{of} in s", "mean\nms", "4 ms", rank),
        Column("sd_s", "standard deviation of the timings in s", "s.d.\nms", "2 ms", 2),
        Column("median_s", f"median time{of} in s", "median\nms", "4 ms"),
        Column("repeats", "timings"),
        Column("calls", f"{several} in a row that a timing is the mean of"),
        Column(
            "interactions_per_s",
            "interactions/s at the median",
            "G inter-\nactions/s",
            f"{figures} G",
        ),
    )


def table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> Table:
    """Return the table of some rows, with the columns for which `width` characters have room."""
    shown = [column for column in columns if column.title and any(column.cell(row) for row in rows)]
    while _width(result := _table(shown, rows)) > width and max(column.rank for column in shown):
        shown.remove(max(reversed(shown), key=lambda column: column.rank))
    return result


def _width(result: Table) -> int:
    return Console(width=1000).measure(result).maximum


def _table(shown: Sequence[Column], rows: Sequence[Row]) -> Table:
    result = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for k, column in enumerate(shown):
        result.add_column(
            column.title, justify="right" if k else "left", no_wrap=k > 0, vertical="bottom"
        )
    for row in rows:
        cells = [Text(column.cell(row)) for column in shown]
        result.add_row(*cells, style="" if row.get("median_s") else "dim")
    return result


def pivot_table(first: str, titles: Sequence[object], lines: Sequence[Sequence]) -> Table:
    """Return a table of rates in two dimensions.

    A line has a name, rates by the titles of columns, and the title of the rate that stands out.
    """
    result = Table(box=None, pad_edge=False, header_style="bold")
    for title in (first, *titles):
        result.add_column(str(title), justify="right")
    for name, rates, best in lines:
        texts = [digits(3)(rates[title] * 1e-9) if title in rates else "" for title in titles]
        styles = ["bold" if title == best else "" for title in titles]
        result.add_row(name, *map(Text, texts, styles))
    return result
