"""The rows of ``bench scaling``: how each is measured, and what its columns mean."""

import numpy as np

from hybrid_nbody.benchmarks.harness.measure import Times
from hybrid_nbody.benchmarks.harness.pictures import rate_text
from hybrid_nbody.benchmarks.harness.results import Column, digits, times
from hybrid_nbody.benchmarks.scaling.runs import Parts, Team, parts_of_a_step, timed_steps


def each(scale: float, show):
    """Return a function that shows the range of a list, one number a rank."""

    def text(values) -> str:
        low, high = (show(value * scale) for value in (min(values), max(values)))
        return low if low == high else f"{low}-{high}"

    return text


def most(scale: float, show):
    """Return a function that shows the largest of a list."""
    return lambda values: show(max(values) * scale)


COLUMNS = (
    Column("ranks", "ranks that took part", "Ranks", "{}".format),
    Column("model", "gravity or fluid"),
    Column("kind", "strong: one problem on more ranks; weak: as much work a rank"),
    Column("exchange", "how ranks see each other's data"),
    Column("transport", "what carries it"),
    Column("size", "bodies, or cells along an edge, on one rank"),
    Column("bodies", "number of bodies", "bodies", "{}".format, rank=1),
    Column("cells", "cells along x, y and z", "cells", rank=1),
    Column("sweeps", "red-black iterations of a solve"),
    Column(
        "median_s",
        "median time of a step on the slowest rank in s",
        "step\nms",
        times(1e3, digits(4)),
    ),
    Column("mean_s", "mean time of a step on the slowest rank in s"),
    Column(
        "sd_s", "standard deviation of the timings in s", "s.d.\nms", times(1e3, digits(2)), rank=4
    ),
    Column("repeats", "timings"),
    Column(
        "calls", "steps in a row that a timing is the mean of; the same on all numbers of ranks"
    ),
    Column("work", "interactions or cells of a step, of all ranks"),
    Column("largest_share", "the same of the rank that has most"),
    Column("rate", "interactions or cells a second, of all ranks", "a second", rate_text, rank=2),
    Column(
        "efficiency",
        "rate of a rank over that on the fewest ranks measured",
        "effi-\nciency",
        "{:.1%}".format,
    ),
    Column(
        "watched_s",
        "time of a step with a watched transport on the slowest rank in s, which the parts add up to",
        "watched\nms",
        times(1e3, digits(3)),
        rank=2,
    ),
    Column(
        "compute_s",
        "what each rank does by itself in s, a list",
        "compute\nms",
        each(1e3, digits(3)),
    ),
    Column(
        "exchange_s",
        "what the exchange takes of a rank that waits for nobody in s",
        "exchange\nms",
        times(1e3, digits(3)),
    ),
    Column(
        "wait_s",
        "what each rank waits for others in s, a list",
        "wait\nms, most",
        most(1e3, digits(2)),
    ),
    Column(
        "exchanges",
        "exchanges of a step, on the rank that has most",
        "exch.",
        "{:g}".format,
        rank=3,
    ),
    Column("reductions", "numbers of a step that all ranks agree on"),
    Column(
        "messages", "messages of a step that a rank receives", "mess-\nages", "{:g}".format, rank=3
    ),
    Column("bytes", "bytes of a step that a rank receives", "MB", times(1e-6, digits(3)), rank=3),
)

SAME_SERIES = ("model", "kind", "exchange", "size", "sweeps")

SAME_RUN = ("ranks", "model", "size", "sweeps")
"""On one rank: there the kinds of scaling are the same, and nothing is exchanged."""


def measured(settings, series, team: Team, rows, stop) -> dict:
    """Return the row of a problem on a team, the same on every rank.

    Parameters
    ----------
    settings : Settings
    series : Gravity or Fluid
    team : Team
        Every rank of all calls together.
    rows : list of dict
        Those before it, the same on every rank.
    stop : callable
        Raises `Stopped` on all ranks when one was asked to stop.
    """
    head = problem(series, team.ranks)
    if team.ranks == 1 and (same := alike(rows, head, SAME_RUN)):
        return same[0] | head
    earlier = alike(rows, head, SAME_SERIES)
    values = settings.values(series, team.ranks)
    known = earlier[0]["calls"] if earlier else None
    transport, taken = timed_steps(team, values, known, settings.repeats, stop)
    if team.ranks > 1:
        parts = parts_of_a_step(team, values, taken.calls, settings.repeats, stop)
    else:
        parts = team.do(lambda: whole(taken))
    row = team.do(
        lambda: head | {"transport": transport} | figures(series, team.ranks, taken, parts, earlier)
    )
    return team.world.broadcast(row)


def problem(series, ranks: int) -> dict:
    """Return the columns that say what is computed."""
    head = {name: getattr(series, name) for name in ("model", "kind", "exchange", "size")}
    return {"ranks": ranks} | head | series.columns(ranks)


def alike(rows, head: dict, keys) -> list[dict]:
    """Return the rows that agree with `head` in some columns."""
    return [row for row in rows if all(row.get(key) == head.get(key) for key in keys)]


def whole(taken: Times) -> Parts:
    """Return the parts of a step on a rank that exchanges nothing."""
    return Parts(np.array([taken.median]), np.zeros(1))


def figures(series, ranks: int, taken: Times, parts: Parts, earlier) -> dict:
    """Return the numbers of a row; `earlier` are the rows of the same problem on fewer ranks."""
    return taken.columns | speed_figures(series, ranks, taken.median, earlier) | part_figures(parts)


def speed_figures(series, ranks: int, seconds: float, earlier) -> dict:
    """Return what is computed in a step of so many seconds, and how well the ranks do it."""
    rate = series.work(ranks) / seconds
    first = earlier[0] if earlier else {"rate": rate, "ranks": ranks}
    return {
        "work": series.work(ranks),
        "largest_share": series.share(ranks),
        "rate": rate,
        "efficiency": rate / ranks / (first["rate"] / first["ranks"]),
    }


def part_figures(parts: Parts) -> dict:
    """Return what a step is made of."""
    return {
        "watched_s": float(parts.total.max()),
        "compute_s": parts.compute.tolist(),
        "exchange_s": parts.transfer,
        "wait_s": parts.wait.tolist(),
        "exchanges": parts.exchanges,
        "reductions": parts.reductions,
        "messages": parts.messages,
        "bytes": parts.bytes,
    }
