"""A program that computes nothing and notes which functions of a cell are called."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from hybrid_nbody.backends.cells import Reduction, Region
from hybrid_nbody.backends.cells.translation import CellFunction

SUM = 1e-9
"""A sum over a plane in a rehearsal: something, but too little to be refused."""

LARGEST = 1.0
"""A largest result in a rehearsal: more than any limit at which a solver stops."""


class Rehearsal:
    """Notes what is called; see `hybrid_nbody.backends.cells.Program`.

    Parameters
    ----------
    functions : mapping of CellFunction
        By name.

    Attributes
    ----------
    names : list of str
        The functions that have been called, each once, in the order of their first calls.
    """

    def __init__(self, functions: Mapping[str, CellFunction]) -> None:
        self.functions = functions
        self.names: list[str] = []
        self._in_sequence = False

    def compile(self, names: Sequence[str], width: int) -> None:
        """Do nothing."""

    def run(self, name: str, region: Region, *arguments: Any, parity: int = 0) -> None:
        """Note a function."""
        assert not self._in_sequence or self.functions[name].in_sequences, name
        if name not in self.names:
            self.names.append(name)

    def reduce(self, name: str, region: Region, *arguments: Any) -> np.ndarray:
        """Note a function, and return what lets solvers go on."""
        self.run(name, region)
        value = SUM if self.functions[name].role == "plane_sum" else LARGEST
        return np.full(max(region[1] - region[0], 0), value)

    def reduce_each(self, *calls: Reduction) -> list[np.ndarray]:
        """Note some functions; see `reduce`."""
        return [self.reduce(*call) for call in calls]

    def reduce_ahead(self, *calls: Reduction) -> Callable[[], list[np.ndarray]]:
        """Return what notes them; see `reduce`."""
        return partial(self.reduce_each, *calls)

    def plane_sums(self, call: Reduction, own: slice, number: int) -> np.ndarray:
        """Note a function, and return what lets solvers go on."""
        self.run(*call)
        return np.full((number, 1), SUM)

    def total_of(self, sums: np.ndarray) -> float:
        """Return the sum."""
        return float(sums.sum())

    @contextmanager
    def sequence(self) -> Iterator[None]:
        """Refuse functions that are not marked for sequences."""
        self._in_sequence = True
        try:
            yield
        finally:
            self._in_sequence = False
