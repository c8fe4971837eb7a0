"""Timing of repeated work on a device, and the columns of the tables that show it."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.timing import seconds_of

SHORTEST = 2e-3
MOST_CALLS = 200
"""Seconds that a timing lasts at least, unless so many calls in it take less."""

LONGEST = 0.5
FIRST_TARGETS = 32
"""Seconds that a call should last at most: slower loops are timed on fewer targets."""

Row = dict[str, Any]
"""A row of results, by the keys of its columns."""

Action = Callable[[], Any]
Stop = Callable[[], None]
"""Queues work on a device; raises `Stopped` once a person has asked to stop."""

Show = str | Callable[[Any], str]
"""Digits and a unit, as in ``3 G``, a format such as ``.1%``, or a function that returns a text."""


class Stopped(Exception):
    """A person asked to stop; what has been measured is kept."""


@dataclass(frozen=True)
class Times:
    """Repeated timings: seconds a call in each, and the calls in a row that each is the mean of."""

    seconds: tuple[float, ...]
    calls: int = 1

    @property
    def mean(self) -> float:
        return statistics.fmean(self.seconds)

    @property
    def sd(self) -> float:
        """The standard deviation; zero for a single timing."""
        return statistics.stdev(self.seconds) if len(self.seconds) > 1 else 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def columns(self) -> Row:
        return {
            "mean_s": self.mean,
            "sd_s": self.sd,
            "median_s": self.median,
            "repeats": len(self.seconds),
            "calls": self.calls,
        }


def alike(rows: Iterable[Row], head: Row, *keys: str) -> list[Row]:
    """Return the rows that agree with `head` in some columns."""
    return [row for row in rows if all(row.get(key) == head.get(key) for key in keys)]


def only(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Return the rows that have these values in some columns."""
    return alike(rows, values, *values)


def groups(rows: Iterable[Row], *keys: str) -> list[tuple[tuple, list[Row]]]:
    """Return the values of some columns, in the order in which they come, and their rows."""
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(found.items())


def having(rows: Iterable[Row], key: str = "interactions_per_s") -> list[Row]:
    """Return the rows that have a figure: those that were measured."""
    return [row for row in rows if row.get(key)]


def speedup(rows: Iterable[Row], row: Row, *keys: str) -> Row:
    """Return the speed-up over the first row that agrees in some columns, of rows with a time."""
    first = next(iter(having(alike(rows, row, *keys), "median_s")), row)
    return {"speedup": first["median_s"] / row["median_s"]} if "median_s" in row else {}


def timings(backend: Backend, batch: Action, repeats: int, stop: Stop, calls: int = 1) -> Times:
    """Time `batch`, which is warm and does `calls` calls in a row; parameters as in `timed`."""
    seconds = []
    for _ in range(repeats):
        stop()
        seconds.append(seconds_of(backend, batch) / calls)
    return Times(tuple(seconds), calls)


def timed(backend: Backend, action: Action, repeats: int, stop: Stop) -> Times:
    """Time `action` on the clock of a device (events on a GPU), after calls that do not count."""
    stop()
    action()
    stop()
    calls = calls_for(seconds_of(backend, action))

    def in_a_row() -> None:
        for _ in range(calls):
            action()

    batch = backend.capture(in_a_row)  # a graph, so that launches by the host do not count
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


def expected_seconds(rows: Iterable[Row], bodies: int, unknown: float = 0.0) -> float:
    """Return how long a sum over pairs takes by the row with most bodies, if there is a row."""
    largest = max(rows, key=lambda row: row["bodies"], default=None)
    return largest["median_s"] * (bodies / largest["bodies"]) ** 2 if largest else unknown


def crossing(first: dict[int, float], second: dict[int, float]) -> tuple[float, float] | None:
    """Return the size at which the ratio of two curves falls to 1, and their value there.

    Logarithms are interpolated; None if it does not fall to 1 between two sizes that both have.
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
    """Compile; return how many targets ``step(targets)`` can do in `longest` seconds."""
    step(1)
    targets = min(FIRST_TARGETS, number)
    while True:
        stop()
        seconds = seconds_of(backend, partial(step, targets))
        if targets == number or seconds > longest / 8:
            return min(number, max(1, int(targets * longest / seconds)))
        targets = min(8 * targets, number)


def digits(count: int) -> Callable[[float], str]:
    """Return a function that shows that many significant digits, and never powers of ten."""

    def show(value: float) -> str:
        exponent = int(f"{value:.{count - 1}e}".split("e")[1]) if value else 0
        return f"{value:.{min(max(count - 1 - exponent, 0), 9)}f}"

    return show


def counted(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number} {noun}{'s' if number > 1 else ''}"


def doubling(most: int) -> list[int]:
    """Return 1, 2, 4, … and `most`."""
    return [*(2**k for k in range(most.bit_length()) if 2**k < most), most]


UNITS = {"": 1, "ms": 1e3, "µs": 1e6, "M": 1e-6, "G": 1e-9}


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

    `key` is its name in CSV and JSON, and `meaning` says what it is, with its unit. A terminal's
    table shows those with a `title`; where it is too narrow, columns of the highest `rank` are left
    out first. `note` is the key of what is added to the text in brackets, if the row has it.
    """

    key: str
    meaning: str
    title: str = ""
    show: Show = ""
    rank: int = 0
    note: str = ""

    def cell(self, row: Row) -> str:
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
GFLOPS = Column("gflops", "GFLOP/s at 20 operations an interaction", "\nGFLOP/s", "3", rank=1)
ERROR_MEDIAN = Column(
    "error_median", "median relative error of accelerations", "relative\nerror", ".0e"
)
CHECKS = (
    Column("checked", "bodies compared with the float64 reference"),
    Column("within_tolerance", "share that is within 0.005 of it", "within\n0.005", ".1%", 3),
    Column("position_error", "largest error of a coordinate", "largest\ndiff.", ".0e", 5),
    ERROR_MEDIAN,
    Column("error_max", "largest relative error of accelerations", "\nlargest", ".0e", 5),
)
"""Columns that several benchmarks have."""


def timing_columns(
    of: str = "", several: str = "calls", rank: int = 3, figures: int = 3
) -> tuple[Column, ...]:
    """Return the columns of `Times`, `rank` that of the mean, and of the rate at their median."""
    rate = Column("interactions_per_s", "interactions/s at the median")
    return (
        Column("mean_s", f"mean time{of} in s", "mean\nms", "4 ms", rank),
        Column("sd_s", "standard deviation of the timings in s", "s.d.\nms", "2 ms", 2),
        Column("median_s", f"median time{of} in s", "median\nms", "4 ms"),
        Column("repeats", "timings"),
        Column("calls", f"{several} in a row that a timing is the mean of"),
        rate.shown("G inter-\nactions/s", f"{figures} G"),
    )


def table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> Table:
    """Return the table of some rows, with the columns for which `width` characters have room."""
    shown = [column for column in columns if column.title and any(column.cell(row) for row in rows)]
    most = Console(width=1000).measure
    while most(result := _filled(shown, rows)).maximum > width and any(one.rank for one in shown):
        shown.remove(max(reversed(shown), key=lambda column: column.rank))
    return result


def _filled(shown: Sequence[Column], rows: Sequence[Row]) -> Table:
    result = new_table([column.title for column in shown], left=1)
    for row in rows:
        cells = [Text(column.cell(row)) for column in shown]
        result.add_row(*cells, style="" if row.get("median_s") else "dim")
    return result


def new_table(titles: Iterable[str], left: int = 0) -> Table:
    """Return an empty table; its first columns, as many as `left`, are of words."""
    result = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for k, title in enumerate(titles):
        justify: Any = "left" if k < left else "right"
        result.add_column(title, justify=justify, no_wrap=k > 0, vertical="bottom")
    return result


def pivot_table(
    first: str,
    rows: Sequence[Row],
    line_of: Callable[[Row], str],
    title_of: Callable[[Row], str],
    best: Sequence[Row],
) -> Table:
    """Return a table of rates: each row in the line and column of these names, the best in bold."""
    titles = list(dict.fromkeys(map(title_of, rows)))
    cells: dict[str, dict[str, Text]] = {}
    for row in rows:
        text = Text(shown(row["interactions_per_s"], "3 G"), "bold" if row in best else "")
        cells.setdefault(line_of(row), {})[title_of(row)] = text
    result = new_table([first, *titles])
    for name, found in cells.items():
        result.add_row(name, *(found.get(title, "") for title in titles))
    return result
