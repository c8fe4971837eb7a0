"""Contents of a frame in the output: fields, planes, and every n-th cell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.downloads import Download
from hybrid_nbody.simulation.model import Field, Role

Arrays = tuple[Array, ...]
"""One array for each component."""

Source = Callable[[], Arrays]
"""Returns the components of a field, (planes + 2, ny, nx), as they are now."""

CELL = "cell (z, y, x)"

MEANINGS = {
    "density": ("density", f"density of each {CELL}", 1),
    "velocity": ("length / time", "velocity of each cell (z, y, x, component)", 3),
    "pressure": ("length^2 / time^2", f"pressure over the density of the fluid, of each {CELL}", 1),
}
"""Units, description and components of fields; another one is a scalar in units of its own."""


@dataclass(frozen=True)
class OwnPlanes:
    """The planes of a rank, as frames see them.

    Attributes
    ----------
    cells : tuple of int
        nx, ny, nz of the whole grid.
    own : slice
    dtype : str
    backend : Backend
    """

    cells: tuple[int, int, int]
    own: slice
    dtype: str
    backend: Backend


@dataclass(frozen=True)
class Frames:
    """The contents of the frames that a run writes.

    Attributes
    ----------
    names : tuple of str
        Fields to write.
    stride : int
        Every n-th cell is written along each axis.
    planes : tuple of int or None
        Planes of z to write, ascending; None for every one that the stride leaves.
    """

    names: tuple[str, ...] = ("density", "velocity")
    stride: int = 1
    planes: tuple[int, ...] | None = None

    def fields(self, planes: OwnPlanes, sources: Mapping[str, Source]) -> list[Field]:
        """Return the fields of a rank's planes.

        Parameters
        ----------
        planes : OwnPlanes
        sources : mapping of str to callable
            For each name what returns its components now.
        """
        return [self._field(name, planes, sources[name]) for name in self.names]

    def _field(self, name: str, planes: OwnPlanes, source: Source) -> Field:
        nx, ny, nz = planes.cells
        chosen = np.array(self.planes if self.planes is not None else range(0, nz, self.stride))
        start, stop = np.searchsorted(chosen, [planes.own.start, planes.own.stop])
        own = chosen[start:stop] - planes.own.start + 1
        units, description, components = _meaning(name)
        shape = len(chosen), -(-ny // self.stride), -(-nx // self.stride)
        backend = planes.backend
        return Field(
            name=f"fluid/{name}",
            shape=shape if components == 1 else (*shape, components),
            dtype=np.dtype(planes.dtype),
            units=units,
            description=description,
            index=slice(int(start), int(stop)),
            host=lambda start, stop: self._download(source(), own[start:stop], backend).rows(),
            role=Role.SHOWN,
            start=lambda: self._download(source(), own, backend),
        )

    def _download(self, arrays: Arrays, planes: np.ndarray, backend: Backend) -> Download:
        """Start to copy the chosen cells of some planes of a slab, components last."""
        return backend.start_download(*(self._planes_of(array, planes) for array in arrays))

    def _planes_of(self, array: Array, planes: np.ndarray) -> Array:
        """Return the chosen cells of some planes, as a view if these are evenly spaced."""
        thinned = array[:, :: self.stride, :: self.stride]
        steps = np.diff(planes)
        step = int(steps[0]) if len(steps) else 1
        if len(planes) == 0 or (steps != step).any():
            return thinned[planes]
        return thinned[planes[0] : planes[-1] + 1 : step]


def _meaning(name: str) -> tuple[str, str, int]:
    """Return units, description and number of components of a field."""
    return MEANINGS.get(name, (name, f"{name} of each {CELL}", 1))


def components_of(name: str) -> int:
    """Return the numbers of a field in a cell."""
    return _meaning(name)[2]
