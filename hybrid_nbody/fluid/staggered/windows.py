"""Planes of other ranks that paths reach: windows of a field, deeper than its halo."""

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.staggered.grid import Grid
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.partition import Partition

BEYOND = 2
"""Planes that interpolation reads beyond the end of a path, on a staggered field."""


class Windows:
    """Makes windows of fields.

    Where z is not periodic, the outermost planes of the box have ghosts beyond them, which travel
    with them.

    Parameters
    ----------
    grid : Grid

    Attributes
    ----------
    needed : bool
        Whether fields alone do not do: there are other ranks, or z is periodic. In the latter case
        paths must not be wrapped, which would round them in another way than on several ranks.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.halo = grid.halo
        self.below, self.above = (int(end) for end in grid.ends)
        self.needed = grid.periodic[2] or not grid.halo.alone
        if isinstance(grid.halo, HaloExchange) and not grid.periodic[2]:
            self.halo = self._with_ghosts(grid.halo)

    def _with_ghosts(self, halo: HaloExchange) -> HaloExchange:
        """Return an exchange of planes in which ghosts beyond the box belong to the outer ranks."""
        offsets = [offset + 1 for offset in halo.partition.offsets]
        offsets[0] = 0
        offsets[-1] += 1
        partition = Partition(tuple(offsets))
        return HaloExchange(halo.transport, partition, halo.communicator, False)

    def depth(self, cells: float) -> int:
        """Return the planes that a window has beyond each end, for paths of some cells."""
        most = self.grid.cells[2]
        return BEYOND + (int(cells) + 1 if cells < most else most)

    def shift(self, depth: int) -> int:
        """Return what is added to a plane of a field for the same one of its window."""
        return depth - 1 + self.below if self.needed else 0

    def empty(self, depth: int) -> Array:
        """Return an array for a window."""
        planes, rows, columns = self.grid.shape
        own = planes - 2 + self.below + self.above
        return self.grid.backend.zeros((own + 2 * depth, rows, columns), self.grid.dtype)

    def of(self, array: Array, depth: int, out: Array | None) -> Array:
        """Return the window of a field, in an array that is for it; or the field where that does.

        Parameters
        ----------
        array : array
            Its ghosts are valid.
        depth : int
        out : array
            Of `empty`.
        """
        if not self.needed or out is None:
            return array
        own = array[1 - self.below : len(array) - 1 + self.above]
        self.halo.window(own, depth, out)
        return out
