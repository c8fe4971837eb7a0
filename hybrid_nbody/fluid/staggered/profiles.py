"""The velocity that a face of the box gives to the fluid, over the face and in time.

A value depends on its point and the time alone: ranks that hold parts of a face have the same bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.staggered.formula import Formula, Numbers
from hybrid_nbody.fluid.staggered.table import Interpolation, read_table

Vector = tuple[float, float, float]
Points = NDArray[np.float64]


class Profile(Protocol):
    """The velocity at a face."""

    @property
    def steady(self) -> bool:
        """Return whether it does not change with time."""

    def values(self, points: Points, time: float) -> Points:
        """Return the velocity at points of the face.

        Parameters
        ----------
        points : (n, 3) array of float64
            x, y and z; the longest edge of the box is 1.
        time : float

        Returns
        -------
        (n, 3) array of float64
            In edges of the box per unit of time.
        """


@dataclass(frozen=True)
class Uniform:
    """The same velocity everywhere, at any time."""

    vector: Vector
    steady: bool = True

    def values(self, points: Points, time: float) -> Points:
        """See `Profile.values`."""
        return np.tile(np.array(self.vector, dtype=np.float64), (len(points), 1))


@dataclass(frozen=True)
class Parabolic:
    """A velocity that is largest at the middle of a face and zero at its edges.

    ``4 s (1 - s)`` for each axis across which it varies, s from 0 to 1 along the edge.

    Attributes
    ----------
    vector : tuple of float
        The velocity at the middle.
    box : tuple of float
        The edges of the box along x, y and z.
    across : tuple of int
        The axes across which it varies; not those that are periodic.
    """

    vector: Vector
    box: Vector
    across: tuple[int, ...]
    steady: bool = True

    def values(self, points: Points, time: float) -> Points:
        """See `Profile.values`."""
        share = np.ones(len(points))
        for axis in self.across:
            s = points[:, axis] / self.box[axis]
            share *= 4.0 * s * (1.0 - s)
        return share[:, None] * np.array(self.vector, dtype=np.float64)


@dataclass(frozen=True)
class Stretched:
    """A profile at a face of another box, for which its own is stretched.

    Attributes
    ----------
    inner : Profile
    factors : tuple of float
        The edges of its own box over those of the other, along x, y and z.
    """

    inner: Profile
    factors: Vector

    @property
    def steady(self) -> bool:
        """See `Profile.steady`."""
        return self.inner.steady

    def values(self, points: Points, time: float) -> Points:
        """See `Profile.values`."""
        return self.inner.values(points * np.array(self.factors), time)


@dataclass(frozen=True)
class Expression:
    """A formula of x, y, z and t for each component.

    Attributes
    ----------
    components : tuple of str
        See `hybrid_nbody.fluid.staggered.formula`.

    Raises
    ------
    ValueError
        If one of them is no formula.
    """

    components: tuple[str, str, str]

    def __post_init__(self) -> None:
        assert len(self._formulas) == len(self.components)  # read now, so that faults show now

    @cached_property
    def _formulas(self) -> tuple[Formula, ...]:
        return tuple(Formula(text) for text in self.components)

    @property
    def steady(self) -> bool:
        """See `Profile.steady`."""
        return not any("t" in formula.names for formula in self._formulas)

    def values(self, points: Points, time: float) -> Points:
        """See `Profile.values`."""
        x, y, z = (np.ascontiguousarray(points[:, axis]) for axis in range(3))
        variables: Mapping[str, Numbers] = {"x": x, "y": y, "z": z, "t": np.float64(time)}
        columns = [formula(variables) for formula in self._formulas]
        return np.stack([np.broadcast_to(column, len(points)) for column in columns], axis=1)


@dataclass(frozen=True)
class Table:
    """Velocities at points of a face that a file holds, interpolated linearly.

    Beyond the points the velocity is that of the nearest place among them.

    Attributes
    ----------
    path : str
        See `hybrid_nbody.fluid.staggered.table`.
    axis : int
        The one across which the face lies.
    """

    path: str
    axis: int
    steady: bool = True

    def values(self, points: Points, time: float) -> Points:
        """See `Profile.values`.

        Raises
        ------
        ValueError, OSError
            When it is first asked, if the file cannot be read or is no table.
        """
        return self.interpolation(points)

    @cached_property
    def interpolation(self) -> Interpolation:
        """Read the file."""
        return read_table(self.path, self.axis)
