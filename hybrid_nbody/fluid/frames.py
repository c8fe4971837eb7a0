"""Contents of a frame in the output: fields, planes, and every n-th cell."""

from dataclasses import dataclass

import numpy as np

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.downloads import Download
from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.step_memory import State
from hybrid_nbody.simulation.model import Field, Role

Arrays = tuple[Array, ...]
"""One array for each component."""

DESCRIPTIONS = {
    "density": ("density", "density of each cell (z, y, x)"),
    "velocity": ("length / time", "velocity of each cell (z, y, x, component)"),
}


@dataclass(frozen=True)
class Frames:
    """The contents of the frames that a run writes.

    Attributes
    ----------
    names : tuple of {"density", "velocity"}
        Fields to write.
    stride : int
        Every n-th cell is written along each axis.
    planes : tuple of int or None
        Planes of z to write, ascending; None for every one that the stride leaves.
    """

    names: tuple[str, ...] = ("density", "velocity")
    stride: int = 1
    planes: tuple[int, ...] | None = None

    def fields(self, slab: Slab, state: State, backend: Backend) -> list[Field]:
        """Return the fields of a rank's slab."""
        arrays = {"density": (state.density,), "velocity": state.velocity}
        return [self._field(name, arrays[name], slab, backend) for name in self.names]

    def _field(self, name: str, arrays: Arrays, slab: Slab, backend: Backend) -> Field:
        nx, ny, nz = slab.cells
        chosen = np.array(self.planes if self.planes is not None else range(0, nz, self.stride))
        start, stop = np.searchsorted(chosen, [slab.first, slab.first + slab.planes])
        own = chosen[start:stop] - slab.first + 1
        units, description = DESCRIPTIONS[name]
        shape = len(chosen), -(-ny // self.stride), -(-nx // self.stride)
        return Field(
            name=f"fluid/{name}",
            shape=shape if len(arrays) == 1 else (*shape, len(arrays)),
            dtype=np.dtype(arrays[0].dtype),
            units=units,
            description=description,
            index=slice(int(start), int(stop)),
            host=lambda start, stop: self._download(arrays, own[start:stop], backend).rows(),
            role=Role.SHOWN,
            start=lambda: self._download(arrays, own, backend),
        )

    def _download(self, arrays: Arrays, planes: np.ndarray, backend: Backend) -> Download:
        """Start to copy the chosen cells of some planes of a slab, components last."""
        return backend.start_download(*(self._planes_of(array, planes) for array in arrays))

    def _planes_of(self, array: Array, planes: np.ndarray) -> Array:
        """Return the chosen cells of some planes, as a view if these are evenly spaced."""
        thinned = array[:, :: self.stride, :: self.stride]
        steps = np.unique(np.diff(planes))
        if len(planes) == 0 or len(steps) > 1:
            return thinned[planes]
        step = int(steps[0]) if len(steps) else 1
        return thinned[planes[0] : planes[-1] + 1 : step]
