"""Reading a trajectory of format version 1: one HDF5 file, with neither parts nor digests."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.files.hdf5 import Rows, attributes, check_format, open_hdf5, reading
from hybrid_nbody.files.listing import CLOCK, DIAGNOSTICS
from hybrid_nbody.files.names import TRAJECTORY


class SingleFile:
    """A trajectory in one file, as `Run` reads it; attributes as of `SealedTrajectory`."""

    def __init__(self, path: Path):
        self.path = path
        self.damage: list[str] = []
        self._file: Any = None
        self.refresh()

    def refresh(self) -> None:
        """Open the file again and count its complete frames and rows; raises `FileError`."""
        self.close()
        try:
            with reading(self.path):
                self._file = open_hdf5(self.path)
                check_format(self._file, self.path, TRAJECTORY)
                self._count()
        except BaseException:
            self.close()
            raise

    def _count(self) -> None:
        self.shapes = _shapes_of(self._file)
        rows = [name for name in self.shapes if name.startswith(DIAGNOSTICS)]
        # A field has an axis of frames, one of bodies or cells, and at least one more.
        self.fields = sorted(
            name
            for name, shape in self.shapes.items()
            if len(shape) >= 3 and not name.startswith(DIAGNOSTICS)
        )
        clock_of_rows = [DIAGNOSTICS + name for name in CLOCK]
        self.number_of_frames = self._common_length([*CLOCK, *self.fields])
        self.number_of_rows = self._common_length([*clock_of_rows, *rows])

    def _common_length(self, names: list[str]) -> int:
        """Return the number of rows that all data sets have: a writer may have stopped between."""
        return min((self.shapes.get(name) or (0,))[0] for name in names)

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the file."""
        with reading(self.path):
            return attributes(self._file)

    def attributes_of(self, name: str) -> dict[str, Any]:
        """Return the attributes of a data set."""
        with reading(self.path):
            return attributes(self._file[name])

    def intact(self, frames: Iterable[int]) -> tuple[list[int], list[str]]:
        """Return all of some frames: a file of this kind has no digest."""
        return list(frames), []

    def keep(self, frames: Sequence[int]) -> None:
        """Keep all frames: none is found damaged."""

    def read(self, name: str, rows: Rows) -> NDArray[Any]:
        """Read rows of a data set; raises `FileError` if they are damaged."""
        with reading(self.path):
            return np.asarray(self._file[name][rows])


def _shapes_of(file: h5py.File) -> dict[str, tuple[int, ...]]:
    """Return the shape of every data set of a file by its path."""
    shapes: dict[str, tuple[int, ...]] = {}

    def visit(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            shapes[name] = node.shape

    file.visititems(visit)
    return shapes
