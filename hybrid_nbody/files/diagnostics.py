"""The diagnostics of a run, as a mapping from the names of quantities to arrays."""

from collections.abc import Mapping

import numpy as np


class Diagnostics(Mapping):
    """The diagnostics of a run as arrays: ``diagnostics["total_energy"]`` or ``diagnostics.total_energy``.

    Every array is read when it is asked for: (D,) or (D, 3) float64, `step` (D,) int64. The rows
    are not the frames: their times are ``diagnostics.time``.

    Attributes
    ----------
    number_of_rows : int
        D, the complete rows when the run was opened or last refreshed.
    """

    def __init__(self, read, names, number_of_rows):
        self._read = read
        self._names = names
        self.number_of_rows = number_of_rows

    def __getitem__(self, name) -> np.ndarray:
        if name not in self._names:
            raise KeyError(f"no diagnostics '{name}'; there are {', '.join(self._names) or 'none'}")
        return self._read(f"diagnostics/{name}", slice(0, self.number_of_rows))

    def row(self, index) -> dict[str, np.ndarray]:
        """Read one row of every quantity.

        Parameters
        ----------
        index : int
            Negative rows count from the end.

        Returns
        -------
        dict
            From the name of a quantity to its value, an array of no dimension or of shape (3,).

        Raises
        ------
        IndexError
            There is no such row.
        """
        count = self.number_of_rows
        if not -count <= index < count:
            raise IndexError(f"row {index}: there are {count} rows of diagnostics")
        return {name: np.asarray(self._read(f"diagnostics/{name}", index % count)) for name in self}

    def __getattr__(self, name) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __dir__(self):
        return [*super().__dir__(), *self._names]

    def __repr__(self):
        return f"Diagnostics of {self.number_of_rows} rows: {', '.join(self._names) or 'nothing'}"
