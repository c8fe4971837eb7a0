"""The state of a staggered fluid in checkpoints, whole planes in global order.

A component of the velocity has a value more along its axis than there are cells. Rows and columns
hold it: they are one longer than the grid. The velocity through the upper end of z would be one
plane more; the condition there gives it, unless that is an outlet: its plane is a field by itself.
"""

from collections.abc import Callable, Iterator

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.staggered.grid import Grid
from hybrid_nbody.fluid.staggered.state import State
from hybrid_nbody.simulation.model import Field, Role

COMPONENTS = ("u", "v", "w")
CELLS = (slice(1, -1), slice(1, -1))
WITH_LAST = (slice(1, None), slice(1, None))
"""Rows and columns of a component, its last faces among them."""

TOP = "state/top"


class Saved:
    """Reads and writes the state.

    Parameters
    ----------
    grid : Grid
    state : State
    with_history : bool
        Whether the next step needs the velocity of the last one.
    """

    def __init__(self, grid: Grid, state: State, with_history: bool) -> None:
        self.grid = grid
        self.state = state
        self.with_history = with_history
        self.has_outlet = grid.pair(2)[1].kind == "outflow"

    def fields(self) -> list[Field]:
        """Return the fields of the state."""
        fields = [self._field(*entry) for entry in self._arrays()]
        if self.has_outlet:
            fields.append(self._top())
        return fields

    def restore(self, rows: Callable[[str], np.ndarray]) -> None:
        """Take back a state, but for its ghosts: ``rows(name)`` gives this rank's rows."""
        for name, array, inner in self._arrays():
            array[1:-1, *inner] = self.grid.backend.upload(rows(name))
        if self.has_outlet:
            self._restore_top(rows(TOP))

    def _arrays(self) -> Iterator[tuple[str, Array, tuple[slice, slice]]]:
        """Yield the name of each field, its array, and the rows and columns that are saved."""
        state = self.state
        for name, field in state.scalars.items():
            yield f"state/{name}", field, CELLS
        yield "state/pressure", state.pressure, CELLS
        for name, component in zip(COMPONENTS, state.velocity, strict=True):
            yield f"state/{name}", component, WITH_LAST
        for name, component in zip(COMPONENTS, state.before, strict=self.with_history):
            yield f"state/{name}_before", component, WITH_LAST

    def _field(self, name: str, array: Array, inner: tuple[slice, slice]) -> Field:
        grid = self.grid
        nx, ny, nz = grid.cells
        more = int(inner == WITH_LAST)
        shown = array[1:-1, *inner]
        program = grid.program
        return Field(
            name=name,
            shape=(nz, ny + more, nx + more),
            dtype=np.dtype(grid.dtype),
            units="1",
            description="of every cell or face (z, y, x)",
            index=slice(grid.first, grid.first + grid.planes),
            host=lambda start, stop: grid.backend.download(shown[start:stop]),
            role=Role.INTERNAL,
            check=lambda start, stop: program.reduce("total", grid.region, array)[start:stop],
            start=lambda: grid.backend.start_download(shown),
        )

    # --- the plane of an outlet -------------------------------------------------------------------

    def _top(self) -> Field:
        """Return the velocity through the upper end of z, now and a step ago, of the rank there."""
        nx, ny, _ = self.grid.cells
        here = self.grid.ends[1]
        backend = self.grid.backend
        return Field(
            name=TOP,
            shape=(2, ny, nx),
            dtype=np.dtype(self.grid.dtype),
            units="1",
            description="w at the upper end of z (now and a step ago, y, x)",
            index=slice(0, 2) if here else slice(2, 2),
            host=lambda start, stop: np.stack(self._planes(backend.download))[start:stop],
            role=Role.INTERNAL,
        )

    def _planes(self, read: Callable[[Array], np.ndarray]) -> list[np.ndarray]:
        velocities = (self.state.velocity, self.state.before or self.state.velocity)
        return [read(velocity[2][-1, *CELLS]) for velocity in velocities]

    def _restore_top(self, planes: np.ndarray) -> None:
        if self.grid.ends[1]:
            velocities = (self.state.before or self.state.velocity, self.state.velocity)
            for velocity, plane in zip(velocities, planes[::-1], strict=True):
                velocity[2][-1, *CELLS] = self.grid.backend.upload(plane)
