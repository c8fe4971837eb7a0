"""Bodies that travel along the curve to the ranks that sum the forces on them, and back.

Bodies stay with the ranks that own their rows. Parts and the order of bodies in them follow from
the positions alone: neither the number of ranks nor who takes which part changes a bit.
"""

from typing import Any, NamedTuple, Protocol

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.forces.tree.parts import Divider, PartFinder
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.parts import Parts
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.base import Exchange
from hybrid_nbody.parallel.exchange.routes import Routes


class Curves(Divider, Protocol):
    """What a device knows of the curve; see `hybrid_nbody.nbody.kernels.contract.TreeSums`."""

    def curve(self, position: Array, cube: Cube, words: int) -> Any:
        """Return the order of bodies along the curve."""

    def is_crowded(self, curve: Any, parts: Parts) -> bool:
        """Return whether two words of the keys are needed for the bodies of this rank's parts."""

    def taken(self, rows: Array, order: Array) -> Array:
        """Return rows in an order."""

    def put_back(self, rows: Array, order: Array) -> Array:
        """Return rows that are in an order as they were before."""


class Travel(NamedTuple):
    """Bodies on the ranks that sum the forces on their parts.

    Attributes
    ----------
    parts : Parts
    routes : Routes or None
        The way from the owners of rows; None where there is one rank.
    order : (n,) array of int
        The bodies of this rank's rows along the curve, as they were sent.
    rows : (m, …) array of float64 or None
        The bodies of this rank's parts, as they arrived; None once they are sorted.
    curve
        Their order along the curve, or None; see `Curves.curve`.
    cuts : list of int
        The keys at which the shares of all ranks but the first begin.
    """

    parts: Parts
    routes: Routes | None
    order: Array
    rows: Array
    curve: Any
    cuts: list[int]

    def without_bodies(self) -> "Travel":
        """Return the same without bodies and their curve, so that their memory is free."""
        return self._replace(rows=None, curve=None)


class Travels:
    """Sends bodies there and results back; every method is collective.

    Parameters
    ----------
    curves : Curves
        Of this rank's device.
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
        The work that each of this rank's bodies took last, on the device; empty on a single rank.
    """

    def __init__(
        self,
        curves: Curves,
        capacity: int,
        backend: Backend,
        communicator: Communicator,
        exchange: Exchange,
    ) -> None:
        self.curves = curves
        self.capacity = capacity
        self.backend = backend
        self.communicator = communicator
        self.exchange = exchange
        number = exchange.own.stop - exchange.own.start
        self.costs = backend.zeros(number if communicator.size > 1 else 0, "i8")
        self.costs += 1
        self.words = 1

    def sent(self, bodies: Array, cube: Cube) -> Travel:
        """Send the bodies to the owners of their parts.

        A second word of the keys is used if it is needed and only then: what is tried first, one
        word or two, does not matter.
        """
        while True:
            travel = self._sent_by_keys(bodies, cube)
            crowded = self.curves.is_crowded(travel.curve, travel.parts)
            words = 1 + self.communicator.any(crowded)
            if words == self.words:
                return travel
            self.words = words

    def _sent_by_keys(self, bodies: Array, cube: Cube) -> Travel:
        """Send the bodies in the order of keys of some words."""
        curve = self.curves.curve(bodies, cube, self.words)
        finder = PartFinder(self.curves, curve, self.backend, self.communicator.sum)
        finder.find(self.capacity)
        if self.communicator.size == 1:
            return Travel(finder.all_of_one_rank(), None, curve.order, bodies, curve, [])
        parts, taken = finder.shared_out(self.costs[curve.order], self.exchange.partition)
        routes = Routes.agreed(self.backend, self.exchange.transport, self.communicator, taken)
        rows = routes.there(self.curves.taken(bodies, curve.order))
        sorted_rows = self.curves.curve(rows, cube, self.words)
        cuts = finder.cuts(parts, self.communicator.size)
        return Travel(parts, routes, curve.order, rows, sorted_rows, cuts)

    def returned(self, results: Array, travel: Travel, counted: bool) -> Array:
        """Return the sums at this rank's own bodies, and note their work if it was counted.

        Parameters
        ----------
        results : (m, k) array of float64
            Sums in the order in which bodies arrived; in the last column the work for each of them,
            at least 1, where that was counted.
        travel : Travel
        counted : bool
        """
        own = self._back(results, travel)
        if not counted:
            return own
        if travel.routes:
            self.costs = own[:, -1].astype("i8")
        return own[:, :-1]

    def _back(self, rows: Array, travel: Travel) -> Array:
        """Return rows in the order of this rank's own bodies."""
        if travel.routes is None:
            return rows
        return self.curves.put_back(travel.routes.back(rows), travel.order)
