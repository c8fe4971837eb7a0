"""A tree over the bodies of all ranks, of which each holds its parts and what these need.

Bodies stay with the ranks that own their rows. For a force their positions travel along the curve
to the rank that sums the forces on their part, and the forces travel back. Parts, cells and the
order of all sums follow from the positions alone: neither the number of ranks nor who sums the
forces on which part changes a bit.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.forces.tree.parts import PartFinder
from hybrid_nbody.nbody.kernels.contract import TreeSums
from hybrid_nbody.nbody.kernels.cube import Cube, cube_around
from hybrid_nbody.nbody.kernels.parts import Essential, Parts
from hybrid_nbody.nbody.step_timer import Timer
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.base import Exchange
from hybrid_nbody.parallel.exchange.routes import Routes


class DistributedTree:
    """Sums over the bodies of all ranks; every method is collective.

    Parameters
    ----------
    tree : TreeSums
        The tree on this rank's device.
    capacity : int
        Most bodies of a leaf.
    backend : Backend
        The device.
    communicator : Communicator
    exchange : Exchange
        Its partition says which rank owns which rows, and how work is shared out.

    Attributes
    ----------
    costs : (n,) array of int64
        The work that each of this rank's bodies took last.
    """

    def __init__(
        self,
        tree: TreeSums,
        capacity: int,
        backend: Backend,
        communicator: Communicator,
        exchange: Exchange,
    ) -> None:
        self.tree = tree
        self.capacity = capacity
        self.backend = backend
        self.communicator = communicator
        self.exchange = exchange
        self.costs = np.ones(exchange.own.stop - exchange.own.start, np.int64)
        self.words = 1

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
        finite = bool(self.backend.xp.isfinite(bodies).all())
        if self.communicator.any(not finite):  # the guard names the body
            return np.full((len(bodies), 1 if potentials else 3), np.nan)
        cube = self._cube(bodies[:, :3])
        travel = self._sent(bodies, cube)
        timer.record("exchange")
        own = travel.rows[travel.curve.order]
        self.tree.plant(own, travel.curve, cube, travel.parts, self.communicator.rank)
        timer.record("force")
        self._tell_parts()
        if not self.alone:
            self._tell_cells()
        timer.record("exchange")
        sums, work = self._walked(potentials)
        timer.record("force")
        costs = self._costs(travel.parts, work)
        results = self._returned(np.column_stack([sums, costs]), travel)
        self.costs = results[:, -1].astype(np.int64)
        timer.record("exchange")
        return results[:, :-1]

    def _cube(self, position: Array) -> Cube:
        """Return a cube around the bodies of all ranks."""
        lowest = position.min(axis=0, initial=np.inf)
        highest = position.max(axis=0, initial=-np.inf)
        minimum, maximum = self.communicator.minimum, self.communicator.maximum
        return cube_around(minimum(lowest), maximum(highest))

    # ---- There and back --------------------------------------------------------------------------

    def _sent(self, bodies: Array, cube: Cube) -> "Travel":
        """Send the bodies to the owners of their parts.

        A second word of the keys is used if it is needed and only then: what is tried first, one
        word or two, does not matter.
        """
        while True:
            travel = self._sent_by_keys(bodies, cube)
            crowded = self.tree.is_crowded(travel.curve, travel.parts)
            words = 1 + self.communicator.any(crowded)
            if words == self.words:
                return travel
            self.words = words

    def _sent_by_keys(self, bodies: Array, cube: Cube) -> "Travel":
        """Send the bodies in the order of keys of some words."""
        curve = self.tree.curve(bodies[:, :3], cube, self.words)
        finder = PartFinder(self.tree, curve, self.communicator.sum)
        finder.find(self.capacity)
        parts, taken = finder.shared_out(self.costs[curve.order], self.exchange.partition)
        if self.alone:
            return Travel(parts, None, curve.order, bodies, curve)
        routes = Routes(self.backend, self.exchange.transport, self.communicator, taken)
        rows = routes.there(bodies[curve.order])
        return Travel(parts, routes, curve.order, rows, self.tree.curve(rows, cube, self.words))

    def _returned(self, results: Array, travel: "Travel") -> Array:
        """Return the results at this rank's own bodies."""
        unsorted = np.empty_like(results)
        unsorted[travel.curve.order] = results
        if travel.routes is None:
            return unsorted
        back = np.empty((len(travel.order), results.shape[1]))
        back[travel.order] = travel.routes.back(unsorted)
        return back

    def _costs(self, parts: Parts, work: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the work for each body of this rank's parts, at least 1."""
        sizes = parts.cells["size"][parts.of(self.communicator.rank)]
        return np.repeat(np.ceil((work + 1) / sizes), sizes)

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
        routes = Routes(self.backend, self.exchange.transport, self.communicator, counts)
        received = routes.there(np.concatenate(rows))
        pieces = np.split(received, np.cumsum(routes.received)[:-1])
        del pieces[self.communicator.rank]
        return pieces

    def _walked(self, potentials: bool) -> tuple[Array, NDArray[np.float64]]:
        """Return the sums at the bodies of this rank's parts, and the work for each part.

        Should rounding have made a rank open a cell that it was not sent, all cells are sent.
        """
        result = self.tree.sums(potentials)
        if self.communicator.any(result is None):
            self._tell_cells(everything=True)
            result = self.tree.sums(potentials)
        assert result is not None, "all cells are here"
        return result


class Travel(NamedTuple):
    """Bodies on the ranks that sum the forces on their parts.

    Attributes
    ----------
    parts : Parts
    routes : Routes or None
        The way from the owners of rows; None where there is one rank.
    order : (n,) array of int32
        The bodies of this rank's rows along the curve, as they were sent.
    rows : (m, …) array of float64
        The bodies of this rank's parts, as they arrived.
    curve
        Their order along the curve; see `TreeSums.curve`.
    """

    parts: Parts
    routes: Routes | None
    order: Array
    rows: Array
    curve: Any
