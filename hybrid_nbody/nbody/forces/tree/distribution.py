"""A tree over the bodies of all ranks, of which each holds its parts and what these need.

Parts, cells and the order of all sums follow from the positions alone: neither the number of ranks
nor who sums the forces on which part changes a bit.
"""

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.forces.tree.travel import Travels
from hybrid_nbody.nbody.kernels.cube import Cube, cube_around
from hybrid_nbody.nbody.kernels.parts import Essential
from hybrid_nbody.nbody.kernels.tree_contract import TreeSums
from hybrid_nbody.nbody.step_timer import Timer
from hybrid_nbody.parallel.exchange.routes import Routes


class DistributedTree:
    """Sums over the bodies of all ranks on CPUs; every method is collective.

    Parameters
    ----------
    tree : TreeSums
        The tree on this rank's device.
    travels : Travels
        The way of bodies to the ranks that sum the forces on them.
    """

    def __init__(self, tree: TreeSums, travels: Travels) -> None:
        self.tree = tree
        self.travels = travels
        self.backend = travels.backend
        self.communicator = travels.communicator
        self.exchange = travels.exchange

    @property
    def alone(self) -> bool:
        """Return whether there is no other rank."""
        return self.communicator.size == 1

    def sums(self, bodies: Array, potentials: bool, timer: Timer) -> Array:
        """Return the sums at this rank's bodies.

        Parameters
        ----------
        bodies : (n, 4) or (n, 5) array of float64
            Positions, masses and, once they are known, the lengths of the last accelerations.
        potentials : bool
            Whether sums of m / r are returned, (n, 1), or those of m d / r^3, (n, 3).
        timer : Timer
            Records the parts ``exchange`` and ``force``.
        """
        box = self.tree.box(bodies)
        if self.communicator.any(box is None):  # the guard names the body
            return np.full((len(bodies), 1 if potentials else 3), np.nan)
        assert box is not None, "this rank would have said so"
        cube = self._cube(*box)
        travel = self.travels.sent(bodies, cube)
        timer.record("exchange")
        self.tree.grow(travel.rows, travel.curve, cube, travel.parts, self.communicator.rank)
        travel = travel.without_bodies()
        timer.record("force")
        self._tell_parts()
        if not self.alone:
            self._tell_cells()
        timer.record("exchange")
        results = self._walked(potentials)
        self.tree.release()
        timer.record("force")
        sums = self.travels.returned(results, travel, counted=True)
        timer.record("exchange")
        return sums

    def _cube(self, lowest: NDArray[np.float64], highest: NDArray[np.float64]) -> Cube:
        """Return a cube around the bodies of all ranks."""
        minimum, maximum = self.communicator.minimum, self.communicator.maximum
        return cube_around(minimum(lowest), maximum(highest))

    # ---- What ranks tell each other --------------------------------------------------------------

    def _tell_parts(self) -> None:
        """Let all ranks know all parts."""
        self.tree.set_parts(self.communicator.concatenate(self.tree.part_rows()))

    def _tell_cells(self, everything: bool = False) -> None:
        """Send the others the cells that theirs open, or all of this rank's."""
        targets = self.communicator.gather(self.tree.target_rows())
        del targets[self.communicator.rank]
        others = [rank for rank in range(self.communicator.size) if rank != self.communicator.rank]
        sent = [
            self.tree.essential(rank, None if everything else rows)
            for rank, rows in zip(others, targets, strict=True)
        ]
        cells = self._exchanged([essential.cells for essential in sent])
        bodies = self._exchanged([essential.bodies for essential in sent])
        pairs = zip(cells, bodies, strict=True)
        received = [Essential(*pair) for pair in pairs]
        self.tree.add(list(zip(others, received, strict=True)))

    def _exchanged(self, rows: list[Array]) -> list[Array]:
        """Return what each other rank has for this one, in exchange for the rows for each of it."""
        counts = [len(some) for some in rows]
        counts.insert(self.communicator.rank, 0)
        routes = Routes.agreed(self.backend, self.exchange.transport, self.communicator, counts)
        received = routes.there(np.concatenate(rows))
        pieces = np.split(received, np.cumsum(routes.received)[:-1])
        del pieces[self.communicator.rank]
        return pieces

    def _walked(self, potentials: bool) -> Array:
        """Return the sums at the bodies of this rank's parts, and the work for each.

        Should rounding have made a rank open a cell that it was not sent, all cells are sent.
        """
        result = self.tree.sums(potentials)
        if self.communicator.any(result is None):
            self._tell_cells(everything=True)
            result = self.tree.sums(potentials)
        assert result is not None, "all cells are here"
        return result
