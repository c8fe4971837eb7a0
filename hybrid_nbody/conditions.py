"""Conditions at which a run stops: of whom one holds, and who is new among them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Found = Mapping[tuple[int, ...], float]
"""Of whom a condition holds, by their identities, each with the number that it is about."""

Measured = Callable[[], Mapping[str, Any]]
"""Returns the diagnostics of the present state; all ranks call together."""


class Condition(Protocol):
    """Something that happens to a simulation, and stops it."""

    @property
    def name(self) -> str:
        """Return what has happened, in a word: the outcome of a run."""

    @property
    def measured(self) -> bool:
        """Return whether it is of the diagnostics, and looked at where a run computes these."""

    def found(self, model: Any, measured: Measured) -> Found:
        """Return of whom it holds now, the same on every rank; all ranks call together.

        Raises
        ------
        InputError
            On every rank, if the model has nothing of which it could hold.
        """

    def words(self, found: Found) -> str:
        """Say of whom it holds, and by how much; of one at least."""


@dataclass(frozen=True)
class Look:
    """A condition of a configuration, and how often it is looked at.

    Attributes
    ----------
    condition : Condition
    every_steps : int
        Steps between two looks, of a condition that is not of the diagnostics.
    """

    condition: Condition
    every_steps: int = 1


class Watch:
    """Tells when a condition begins to hold of someone.

    Of whom it held at the last look, it does not tell again before it has ceased to hold: a run
    that is resumed where it stopped goes on, as it does where nothing was stopped.

    Parameters
    ----------
    condition : Condition
    """

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.before: frozenset[tuple[int, ...]] = frozenset()

    def look(self, model: Any, measured: Measured) -> str:
        """Return what has happened since the last look, in words; empty if nothing has."""
        found = self.condition.found(model, measured)
        new = {who: found[who] for who in sorted(found) if who not in self.before}
        self.before = frozenset(found)
        return self.condition.words(new) if new else ""
