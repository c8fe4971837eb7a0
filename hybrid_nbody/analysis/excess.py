"""Diagnostics beyond their limits, as the warnings of a run tell of them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WARNING = re.compile(r"(?:warning: )?(\w+) is (\S+), beyond (\S+): (.*)")
"""What `output.limits.Limits` writes."""

MOST_NAMES = 8
"""Most runs that a line names."""


@dataclass(frozen=True)
class Excess:
    """A diagnostic beyond its limit.

    Attributes
    ----------
    name : str
        Of the quantity.
    value, limit : str
        As the warning has them.
    advice : str
        What it means, and what to do.
    """

    name: str
    value: str
    limit: str
    advice: str

    @property
    def size(self) -> float:
        """Return the absolute value."""
        return abs(float(self.value))


def excess_of(warning: str) -> Excess | None:
    """Return the diagnostic that a warning is about; None if it is about something else."""
    found = WARNING.fullmatch(warning)
    return Excess(*found.groups()) if found else None


def worst_of(warnings: Iterable[str]) -> dict[str, Excess]:
    """Return the worst excess of each quantity by its name, in the order of the warnings."""
    worst: dict[str, Excess] = {}
    for excess in filter(None, map(excess_of, warnings)):
        before = worst.get(excess.name, excess)
        worst[excess.name] = max(before, excess, key=lambda one: one.size)
    return worst


def each_once(warnings: Sequence[str]) -> list[str]:
    """Return warnings with a single one for each quantity: the worst."""
    worst = worst_of(warnings)
    kept: dict[str, str] = {}
    for warning in warnings:
        excess = excess_of(warning)
        if excess is None:
            kept[warning] = warning
        elif excess == worst[excess.name]:
            kept[excess.name] = warning
    return list(kept.values())


def lines_of(found: Mapping[str, Mapping[str, Excess]]) -> list[str]:
    """Return a line for each quantity: which of several runs exceed its limit, and what to do.

    Parameters
    ----------
    found : mapping of str to mapping of str to Excess
        By the name of each run, the result of `worst_of`.
    """
    quantities = dict.fromkeys(name for excesses in found.values() for name in excesses)
    return [_line(name, found) for name in quantities]


def _line(name: str, found: Mapping[str, Mapping[str, Excess]]) -> str:
    beyond = {run: excesses[name] for run, excesses in found.items() if name in excesses}
    runs = [f"{run} ({excess.value})" for run, excess in beyond.items()]
    more = [f"and {len(runs) - MOST_NAMES} more"] if len(runs) > MOST_NAMES else []
    named = ", ".join([*runs[:MOST_NAMES], *more])
    one = max(beyond.values(), key=lambda excess: excess.size)
    of = f"{len(runs)} of {len(found)} runs exceed |{name.replace('_', ' ')}| = {one.limit}"
    return f"{of}: {named}; {one.advice}"
