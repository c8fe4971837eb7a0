"""Summaries of a run in words: its state on the way, and its speed at the end."""

from collections.abc import Mapping, Sequence

from hybrid_nbody.simulation.model import Work
from hybrid_nbody.simulation.timings import Timings

LEAST_SECONDS = 0.5
"""Seconds of forces and exchanges below which no other number of ranks is advised."""

LARGEST_SHARE = 0.8
"""Part of them up to which the forces of all ranks together are surely faster on one."""

OUTPUT_EVENTS = (
    "guard",
    "conditions",
    "diagnostics",
    "trajectory",
    "checkpoint",
    "progress",
    "balance",
)
"""Events of the time loop with a line of their own."""


def with_prefix(number: float) -> str:
    """Return a number with three digits and a metric prefix, for a unit to follow: ``2.42 T ``."""
    number = float(f"{number:.3g}")
    for prefix, size in ((" P", 1e15), (" T", 1e12), (" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{prefix} "
    return f"{number:.3g} "


def state_in_words(time: float, rate: float, unit: str, energy_error: float | None) -> str:
    """Return the state of a run in a few words.

    Parameters
    ----------
    time : float
        Simulated time.
    rate : float
        Work done per second; 0 as long as it is unknown.
    unit : str
        What `rate` counts, such as ``interactions``.
    energy_error : float or None
        The relative energy error of the latest diagnostics, if there is one.
    """
    parts = [f"t = {time:.4g}"]
    if rate > 0:
        parts.append(f"{with_prefix(rate)}{unit}/s")
    if energy_error is not None:
        parts.append(f"dE/E {energy_error:+.1e}")
    return "  ".join(parts)


def time_shares(
    events: Timings, parts: Mapping[str, float], total: float
) -> list[tuple[str, float]]:
    """Return the seconds of each part of a run, in the order of the table.

    Parameters
    ----------
    events : Timings
        Seconds in each event of the loop.
    parts : mapping of str to float
        Seconds in the parts of `Model.advance` that have a line of their own.
    total : float
        Seconds of the whole loop.

    Returns
    -------
    list of (str, float)
        Each part and each of `OUTPUT_EVENTS` that took time, then ``rest``, the remainder of the
        total.
    """
    rows = [(name, seconds) for name, seconds in parts.items() if seconds > 0]
    rows += [(name, events[name]) for name in OUTPUT_EVENTS if events[name] > 0]
    return [*rows, ("rest", max(total - sum(seconds for _, seconds in rows), 0.0))]


def time_table(rows: Sequence[tuple[str, float]], total: float) -> str:
    """Return `time_shares` as a table."""
    lines = [f"  {name:<12} {seconds:10.3f} s  {seconds / total:6.1%}" for name, seconds in rows]
    return "\n".join(["where the time went", *lines, f"  {'total':<12} {total:10.3f} s"])


def advice_on_ranks(computing: Sequence[float], exchanging: Sequence[float]) -> str:
    """Return the line that says that one rank would be faster, or nothing where that is not sure.

    One rank takes at most as long as all forces together: the same device is never slower with
    more bodies at once. A rank's exchanges contain waiting for others, who may have written output,
    so that the rank counts that spent the least on both.

    Parameters
    ----------
    computing, exchanging : sequence of float
        Seconds that each rank spent on forces and on exchanges; ranks have devices of one kind.
    """
    together = min(map(sum, zip(computing, exchanging, strict=True)))
    alone = sum(computing)
    if len(computing) < 2 or together < LEAST_SECONDS or alone > LARGEST_SHARE * together:
        return ""
    return (
        f"one rank would be faster: forces and exchanges took {together:.3g} s, the forces of all "
        f"{len(computing)} ranks together only {alone:.3g} s"
    )


def rate_line(work: Work, steps: int, seconds: float) -> str:
    """Return the rates of a whole run in words: work and floating-point operations per second."""
    rate = steps * work.per_step / seconds
    line = f"{steps} steps in {seconds:.3f} s: {with_prefix(rate)}{work.unit}/s"
    if not work.operations:
        return line
    operations = f"{rate * work.operations / 1e9:.4g} GFLOP/s"
    return f"{line}, {operations} at {work.operations:g} operations each"
