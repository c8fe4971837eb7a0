"""What lies behind the six faces of the box, and the velocity that is given at them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.errors import NumericalError
from hybrid_nbody.fluid.staggered.faces import NAMES, Face
from hybrid_nbody.fluid.staggered.grid import AXES, Grid, Vector

COMPONENTS = 3


Signs = tuple[float, float, float, float, float, float]
"""Of the ghosts behind the six faces, those of x first, low before high."""


@dataclass(frozen=True)
class Kind:
    """A kind of field, by what it is behind faces: ``sign * cell + offset``.

    Attributes
    ----------
    number : int
        Of its values in the tables of faces.
    axis : int or None
        The axis whose faces it is at; None for a field at the centres of cells.
    signs : tuple of float
        -1 where its value is given at the face, 1 where it has no gradient there.
    """

    number: int
    axis: int | None
    signs: Signs


class Ghosts:
    """Fills ghosts, and gives faces of the box their velocity.

    Parameters
    ----------
    grid : Grid
    scalars : sequence of str
        Their names.

    Attributes
    ----------
    velocity : tuple of Kind
        Of the three components.
    scalar : dict of Kind
        By name.
    bound : dict of Kind
        The same, but behind inlets with what enters, which no value beside them can exceed.
    inlets : bool
        Whether there are any.
    pressure : Kind
        It is 0 at outlets.
    free : Kind
        Of a field at centres that has no gradient at any face.
    """

    def __init__(self, grid: Grid, scalars: Sequence[str]) -> None:
        self.grid = grid
        self.scalars = tuple(scalars)
        self.velocity = tuple(Kind(c, c, _signs(grid, _given(c))) for c in AXES)
        of_scalars = _signs(grid, ("inflow",))
        self.scalar = {
            name: Kind(COMPONENTS + i, None, of_scalars) for i, name in enumerate(self.scalars)
        }
        bounds = [0.0 if sign < 0.0 else 1.0 for sign in of_scalars]
        first = COMPONENTS + len(self.scalars)
        self.bound = {
            name: Kind(first + i, None, _six(bounds)) for i, name in enumerate(self.scalars)
        }
        self.inlets = min(of_scalars) < 0.0
        self.count = COMPONENTS + 2 * len(self.scalars)
        self.nothing = 2 * self.count
        self.pressure = Kind(self.nothing, None, _signs(grid, ("outflow",)))
        self.free = Kind(self.nothing, None, _signs(grid, ()))
        self.steady = grid.faces.steady
        self.tables = self._tables(0.0)

    def at(self, time: float) -> None:
        """Give the faces the values of a time."""
        if not self.steady:
            self.tables = self._tables(time)

    def fill_velocity(self, velocity: Vector) -> None:
        """Give the faces of the box their velocity, and fill the ghosts; ranks exchange once."""
        pairs = list(zip(velocity, self.velocity, strict=True))
        for array, kind in pairs:
            self._fill_own(array, kind, homogeneous=False)
        self.grid.fill_planes(*velocity)
        for array, kind in pairs:
            self._reflect_planes(array, kind, homogeneous=False)

    def fill(self, array: Array, kind: Kind, homogeneous: bool = False) -> None:
        """Fill the ghosts of a field.

        Parameters
        ----------
        array : array
        kind : Kind
        homogeneous : bool
            Whether all given values are 0, as for a difference of two fields.
        """
        self._fill_own(array, kind, homogeneous)
        self.grid.fill_planes(array)
        self._reflect_planes(array, kind, homogeneous)

    def _fill_own(self, array: Array, kind: Kind, homogeneous: bool) -> None:
        """Fill what needs no other rank: rows, columns and the faces of the box across z."""
        for axis in (0, 1):
            if not self.grid.periodic[axis]:
                self._fill_axis(array, kind, axis, homogeneous)
        self.grid.wrap(array)
        if kind.axis == 2 and not homogeneous:
            self._impose_planes(array)

    def _fill_axis(self, array: Array, kind: Kind, axis: int, homogeneous: bool) -> None:
        """Fill the ghosts at both ends of x or y."""
        planes, rows, columns = self.grid.shape
        region = ((1, planes, 1, rows, 0, 1), (1, planes, 0, 1, 0, columns))[axis]
        letter = "xy"[axis]
        if kind.axis != axis:
            low, high = kind.signs[2 * axis : 2 * axis + 2]
            numbers = self._numbers(kind, homogeneous)
            given = (low, high, self.tables[axis], *numbers)
            self.grid.program.run(f"reflect_{letter}", region, array, *given)
        elif not homogeneous:
            self._impose(array, axis, region, letter)

    def _impose(
        self, array: Array, axis: int, region: tuple[int, int, int, int, int, int], letter: str
    ) -> None:
        """Give a component its velocity at the faces across x or y."""
        program = self.grid.program
        last = self.grid.cells[axis] + 1
        low, high = self.grid.pair(axis)
        if low.kind == "outflow":
            program.run(f"copy_outwards_{letter}", region, array)
        else:
            program.run(f"impose_{letter}", region, array, 1, self.tables[axis], axis)
        if high.kind != "outflow":
            number = self.count + axis
            program.run(f"impose_{letter}", region, array, last, self.tables[axis], number)

    def _reflect_planes(self, array: Array, kind: Kind, homogeneous: bool) -> None:
        """Fill the ghosts below and above the box of a field that is not at the faces of z."""
        if kind.axis == 2:
            return
        planes, rows, columns = self.grid.shape
        numbers = self._numbers(kind, homogeneous)
        cells = (1, planes - 2)
        for end, ghost in enumerate((0, planes - 1)):
            region = (ghost, ghost + 1, 0, rows, 0, columns)
            given = (cells[end], kind.signs[4 + end], self.tables[2], numbers[end])
            if self.grid.ends[end]:
                self.grid.program.run("reflect_z", region, array, *given)

    def _impose_planes(self, array: Array) -> None:
        """Give w its velocity at the lowest and the highest faces of the box."""
        for end in (0, 1):
            if self.grid.ends[end]:
                self._impose_plane(array, end)

    def _impose_plane(self, array: Array, end: int) -> None:
        """Give w its velocity at the lowest or the highest faces of the box."""
        planes, rows, columns = self.grid.shape
        k = (1, planes - 1)[end]
        region = (k, k + 1, 0, rows, 0, columns)
        if self.grid.pair(2)[end].kind != "outflow":
            given = (self.tables[2], 2 + end * self.count)
            self.grid.program.run("impose_z", region, array, *given)
        elif end == 0:
            self.grid.program.run("copy_outwards_z", region, array)

    def _numbers(self, kind: Kind, homogeneous: bool) -> tuple[int, int]:
        """Return which tables hold the offsets of a field, low and high."""
        if homogeneous or kind.number == self.nothing:
            return self.nothing, self.nothing
        return kind.number, kind.number + self.count

    # --- values at faces --------------------------------------------------------------------------

    def _tables(self, time: float) -> tuple[Array, Array, Array]:
        """Return the values at the faces of x, y and z at a time, on the device.

        Raises
        ------
        NumericalError
            On every rank, if one of them is not a finite number.
        """
        tables = [self._table(axis, time) for axis in AXES]
        self._check(tables, time)
        x, y, z = map(self.grid.backend.upload, tables)
        return x, y, z

    def _check(self, tables: Sequence[np.ndarray], time: float) -> None:
        """Check that all values at faces are finite; all ranks call together."""
        ends = [end for table in tables for end in (table[: self.count], table[self.count :])]
        bad = [number for number, end in enumerate(ends, 1) if not np.isfinite(end).all()]
        found = int(self.grid.halo.largest(float(max(bad, default=0))))
        if found:
            raise NumericalError(
                f"fluid.boundary.{NAMES[found - 1]}: what is given at this face is not everywhere "
                f"a finite number of type {np.dtype(self.grid.dtype)} at time {time:g}; look at "
                "its formula, and at when the run ends"
            ).on_all_ranks()

    def _table(self, axis: int, time: float) -> np.ndarray:
        """Return the values of all fields at both faces of an axis.

        That of the component across the face, else twice the value: the offset of a ghost.
        """
        points = self._points(axis)
        table = np.zeros((2 * self.count + 1, *points.shape[1:3]))
        for end in (0, 1):
            face = self.grid.pair(axis)[end]
            along = points[end].reshape(-1, 3)
            values = self._velocity(face, along, time).T.reshape(3, *points.shape[1:3])
            factors = np.where(np.arange(3) == axis, 1.0, 2.0)[:, None, None]
            start = end * self.count
            table[start : start + 3] = factors * values
            for name in self.scalars:
                given = face.scalars.get(name, 0.0)
                table[start + self.scalar[name].number] = 2.0 * given
                table[start + self.bound[name].number] = given
        with np.errstate(over="ignore"):  # infinity is refused
            return table.astype(self.grid.dtype)

    def _velocity(self, face: Face, points: np.ndarray, time: float) -> np.ndarray:
        """Return the velocity that a face gives to points of it."""
        if face.velocity is None:
            return np.zeros_like(points)
        return face.velocity.values(points, time)

    def _points(self, axis: int) -> np.ndarray:
        """Return the centres (2, a, b, 3) of the faces at both ends of an axis, in the box."""
        grid = self.grid
        h = grid.spacing
        nx, ny, nz = grid.cells
        box = np.array(grid.cells) * h
        x = (np.arange(nx + 2) - 0.5) * h
        y = (np.arange(ny + 2) - 0.5) * h
        z = (np.arange(grid.planes + 2) + grid.first - 0.5) * h
        first, second = ((z, y), (z, x), (y, x))[axis]
        points = np.zeros((2, len(first), len(second), 3))
        axes = ((2, 1), (2, 0), (1, 0))[axis]
        points[..., axes[0]] = first[:, None]
        points[..., axes[1]] = second[None, :]
        points[1, ..., axis] = box[axis]
        return np.clip(points, 0.0, box)


def _given(component: int) -> tuple[str, ...]:
    """Return the kinds of faces along which a component is given."""
    return "no-slip", "inflow"


def _signs(grid: Grid, given: Sequence[str]) -> Signs:
    """Return -1 for faces at which a field is given, else 1."""
    faces = [face for axis in AXES for face in grid.pair(axis)]
    return _six([-1.0 if face.kind in given else 1.0 for face in faces])


def _six(signs: Sequence[float]) -> Signs:
    """Return the signs of the six faces."""
    a, b, c, d, e, f = signs
    return a, b, c, d, e, f
