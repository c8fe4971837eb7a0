"""The frames and the diagnostics of a run, read from its file when they are accessed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hybrid_nbody.files.run import Run

Array = NDArray[Any]


class Diagnostics(Mapping[str, Array]):
    """The diagnostics of a run: ``diagnostics["total_energy"]`` or ``diagnostics.total_energy``.

    Every array is read when it is asked for: (D,) or (D, 3) float64, `step` (D,) int64. Rows have
    their own times, ``diagnostics.time``, which are not those of the frames.

    Attributes
    ----------
    number_of_rows : int
        D, the number of complete rows when the run was opened or last refreshed.
    """

    def __init__(
        self, read: Callable[[str, Any], Array], names: Sequence[str], number_of_rows: int
    ):
        self._read = read
        self._names = names
        self.number_of_rows = number_of_rows

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(f"no diagnostics '{name}'; there are {', '.join(self._names) or 'none'}")
        return self._read(f"diagnostics/{name}", slice(0, self.number_of_rows))

    def row(self, index: int) -> dict[str, Array]:
        """Read one row of every quantity.

        Parameters
        ----------
        index : int
            Negative rows count from the end.

        Returns
        -------
        dict
            From the name of a quantity to its value, an array of shape () or (3,).

        Raises
        ------
        IndexError
            There is no such row.
        """
        count = self.number_of_rows
        if not -count <= index < count:
            raise IndexError(f"row {index}: there are {count} rows of diagnostics")
        return {name: np.asarray(self._read(f"diagnostics/{name}", index % count)) for name in self}

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names]

    def __repr__(self) -> str:
        return f"Diagnostics of {self.number_of_rows} rows: {', '.join(self._names) or 'nothing'}"


@dataclass(frozen=True, eq=False)
class Frame:
    """One frame of a run; its arrays are read when they are accessed.

    Attributes
    ----------
    run : Run
        The run.
    index : int
        Number of the frame, from 0.
    time : float
        In the units of time.
    step : int
        Steps taken since the initial state.
    """

    run: "Run"
    index: int
    time: float
    step: int

    @property
    def positions(self) -> Array:
        """(N, 3) float64, in the units of length."""
        return self.run.positions(self.index)

    @property
    def velocities(self) -> Array:
        """(N, 3) float64, in the units of velocity."""
        return self.run.velocities(self.index)

    def field(self, name: str) -> Array:
        """Return a field of the frame by its name, see `Run.fields`."""
        return self.run.field(name, self.index)

    def __repr__(self) -> str:
        return f"Frame {self.index}: time {self.time:g}, step {self.step}"
