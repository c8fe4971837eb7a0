"""Work of a step that a device with a queue repeats as one launch.

Small grids take a GPU less time than the host needs to launch every function of a cell.
"""

from collections.abc import Callable, Hashable

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.replays import Replays
from hybrid_nbody.fluid.staggered.ghosts import Ghosts
from hybrid_nbody.fluid.staggered.grid import Grid
from hybrid_nbody.fluid.staggered.solids import Solids


class Repeats:
    """Repeats work where it follows from arrays and numbers alone.

    Not so where hosts exchange planes, the values at faces change with time, or obstacles move; and
    a host repeats nothing.

    Parameters
    ----------
    grid : Grid
    ghosts : Ghosts
    solids : Solids
    """

    def __init__(self, grid: Grid, ghosts: Ghosts, solids: Solids) -> None:
        self.replays = Replays(grid.backend)
        follows = grid.halo.recordable and ghosts.steady and not solids.moving
        self.possible = grid.backend.runs_ahead and follows

    def do(self, action: Callable[[], None], arrays: tuple[Array, ...], *others: Hashable) -> None:
        """Do what `action` does.

        Parameters
        ----------
        action : callable
            Queues work that follows from the arguments below alone, waits for nothing, and changes
            nothing on the host.
        arrays : tuple of array
            What it reads and changes, of arrays that are not always the same.
        *others : hashable
            Its name, and numbers.
        """
        if self.possible:
            self.replays.repeat(action, arrays, *others)
        else:
            action()
