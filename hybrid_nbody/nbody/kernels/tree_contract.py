"""The contract of a tree of cells on a device, for the fast multipole method.

`hybrid_nbody.nbody.kernels.make_tree_sums` returns the implementation of a backend.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.parts import Essential, Parts


class TreeSums(Protocol):
    """Sums over all bodies by a tree of cells, on one device, in units of the kernels.

    A rank sums the forces on the bodies of its parts. The methods are called in the order of their
    definition for each force, and `put_back` at its end; none talks to other ranks. What a part's
    bodies get does not depend on which rank sums it.
    """

    def fill_rows(
        self, position: Array, acceleration: Array, units: tuple[float, float], rows: Array
    ) -> None:
        """Fill the rows of bodies from their positions and last accelerations, (n, 3).

        `units` are those of a length and of an acceleration. The masses, in the fourth column of
        `rows`, (n, 5), stay.
        """

    def set_accelerations(self, sums: Array, unit: float, acceleration: Array) -> None:
        """Fill accelerations from sums, both (n, 3), and the unit of an acceleration."""

    def box(self, bodies: Array) -> NDArray[np.float64] | None:
        """Return the lowest and highest coordinates of bodies, (2, 3), on the host.

        `bodies` have the columns of those of `grow`. Where there are none, the lowest are infinite,
        the highest minus infinity. None is returned if a number is not finite.
        """

    def curve(self, position: Array, cube: Cube, words: int) -> Any:
        """Return the order of bodies along the curve, by one or two words of their keys.

        `position` is an (n, 3) array, or one with more columns. The result has an attribute
        ``order``, an (n,) array of the bodies; those with the same key stay in their order.
        """

    def taken(self, rows: Array, order: Array) -> Array:
        """Return rows of float64, (n, k), in an order of their numbers, (n,)."""

    def put_back(self, rows: Array, order: Array) -> Array:
        """Return rows that are in an order as they were before `taken`."""

    def ties(self, curve: Any) -> Array:
        """Return whether a body and the next one along the curve have the same key, (n - 1,)."""

    def deepest_level(self, curve: Any) -> int:
        """Return the level below the root on which a cell may hold any number of bodies."""

    def child_bounds(
        self, curve: Any, first: NDArray[np.int32], last: NDArray[np.int32], level: int
    ) -> NDArray[np.int32]:
        """Return where the octants of C cells of a level begin, and where the last one ends.

        The bodies of cell k are those from ``first[k]`` to ``last[k] - 1`` along the curve; the
        result, (C, 9), is on the host.
        """

    def is_crowded(self, curve: Any, parts: Parts) -> bool:
        """Return whether two words are needed for the bodies of this rank's parts."""

    def grow(self, bodies: Array, curve: Any, cube: Cube, parts: Parts, rank: int) -> None:
        """Grow the cells below this rank's parts, and find their multipoles.

        `bodies` are those of the parts, which `curve` sorts: positions and masses, (m, 4), and the
        lengths of their last accelerations in a fifth column once there are any.
        """

    def part_rows(self) -> NDArray[Any]:
        """Return what all ranks must know of this rank's parts, a row each, on the host."""

    def set_parts(self, rows: NDArray[Any]) -> None:
        """Take the rows of all ranks' parts along the curve."""

    def target_rows(self) -> NDArray[Any]:
        """Return what other ranks must know of this rank's cells to find what these open."""

    def essential(self, rank: int, targets: NDArray[Any] | None) -> Essential:
        """Return the cells below this rank's parts that another rank opens.

        `targets` are its `target_rows`; all cells are returned where they are None.
        """

    def add(self, received: Sequence[tuple[int, Essential]]) -> None:
        """Add the cells that each other rank sent, in the place of earlier ones."""

    def sums(self, potentials: bool) -> Array | None:
        """Return sums of m d / r^3 or of m / r at bodies, and the work for each: (m, 4) or (m, 2).

        They are in the order of the bodies that were given to `grow`. None is returned if a cell is
        needed that another rank did not send.
        """

    def release(self) -> None:
        """Let go of the cells and bodies of the force."""
