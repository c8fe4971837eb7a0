"""Bodies that travel along the curve to the ranks that sum the forces on them, and back.

Within one host bodies return to the ranks that own their rows after each force. On several hosts,
between which bytes are slow, they stay where they have travelled to until someone asks for their
rows: few of them travel for a force then. Parts and the order of bodies in them follow from
positions and rows alone: neither the number of ranks, nor who takes which part or holds which body,
changes a bit.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.forces.tree.parts import Divider, PartFinder
from hybrid_nbody.nbody.forces.tree.ties import order_ties
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.parts import Parts
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.base import Exchange
from hybrid_nbody.parallel.exchange.routes import Routes


class Curves(Divider, Protocol):
    """What a device knows of the curve; see `hybrid_nbody.nbody.kernels.tree_contract.TreeSums`."""

    def curve(self, position: Array, cube: Cube, words: int) -> Any:
        """Return the order of bodies along the curve."""

    def ties(self, curve: Any) -> Array:
        """Return whether a body and the next one along the curve have the same key."""

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
        The way from the ranks that hold bodies; None where there is one rank.
    order : (n,) array of int
        The bodies that this rank holds in the order in which they were sent.
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


class Way(NamedTuple):
    """The way of bodies to where they are now along the curve.

    Attributes
    ----------
    routes : Routes
    sent : (n,) array of int
        The bodies in the order in which they were sent.
    arrived : (m,) array of int
        Those that arrived, along the curve.
    """

    routes: Routes
    sent: Array
    arrived: Array


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
    numbers : (n,) array of int64 or None
        The rows of this rank's bodies, on the device; None while they are those that it owns.
    may_settle : bool
        Whether bodies may stay where they have travelled to; not at first.
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
        self.numbers: Array | None = None
        self.may_settle = False
        self._way: Way | None = None

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
        costs = self._taken(self.costs, curve.order)
        parts, taken = finder.shared_out(costs, self.exchange.partition)
        routes = Routes.agreed(self.backend, self.exchange.transport, self.communicator, taken)
        rows = routes.there(self.curves.taken(bodies, curve.order))
        cuts = finder.cuts(parts, self.communicator.size)
        return self.arrived(Travel(parts, routes, curve.order, rows, None, cuts), cube, self.words)

    def arrived(self, travel: Travel, cube: Cube, words: int) -> Travel:
        """Return a travel with the order of the bodies that have arrived along the curve.

        Those of the same key are in the order of their rows, whichever ranks they come from.
        """
        curve = self.curves.curve(travel.rows, cube, words)
        routes = travel.routes
        assert routes, "there are other ranks"
        if self.numbers is not None:
            numbers = routes.there(self._taken(self.numbers, travel.order))
            order_ties(self.backend.xp, self.curves.ties(curve), curve.order, numbers)
        if self.may_settle:
            self._way = Way(routes, travel.order, curve.order)
        return travel._replace(curve=curve)

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

    # ---- Where bodies stay -----------------------------------------------------------------------

    @property
    def share_away(self) -> float:
        """Return the share of all bodies that were elsewhere for the last force."""
        return self._way.routes.share_away if self._way else 0.0

    def settle(self, arrays: Sequence[Array]) -> list[Array]:
        """Let bodies stay where they were for the last force, along the curve.

        Parameters
        ----------
        arrays : sequence of (n, k) array of float64
            What belongs to this rank's bodies; that of the bodies that are here now is returned.
        """
        way = self._way
        assert way, "there was a force"
        if self.numbers is None:
            own = self.exchange.own
            self.numbers = self.backend.xp.arange(own.start, own.stop, dtype="i8")
        self.numbers = self._there(self.numbers, way)
        self.costs = self._there(self.costs, way)
        self._way = None
        return [self._there(array, way) for array in arrays]

    def _there(self, rows: Array, way: Way) -> Array:
        """Return rows of the bodies that are here after their way."""
        return self._taken(way.routes.there(self._taken(rows, way.sent)), way.arrived)

    def bring_home(self, arrays: Sequence[Array]) -> list[Array]:
        """Bring bodies back to the ranks that own their rows; parameters as in `settle`."""
        numbers = self.numbers
        assert numbers is not None, "they have settled"
        order = self.backend.xp.argsort(numbers).astype("i4")
        routes = self._routes_home(numbers[order])
        arrived = routes.there(self._taken(numbers, order))
        places = (arrived - self.exchange.own.start).astype("i4")
        self.costs, *brought = [
            self._put_back(routes.there(self._taken(array, order)), places)
            for array in (self.costs, *arrays)
        ]
        self.numbers = None
        self._way = None
        return brought

    def _routes_home(self, numbers: Array) -> Routes:
        """Return the way of rows, whose ascending numbers are given, to the ranks that own them."""
        offsets = self.backend.upload(np.array(self.exchange.partition.offsets))
        ends = self.backend.download(self.backend.xp.searchsorted(numbers, offsets))
        counts = np.diff(ends).tolist()
        return Routes.agreed(self.backend, self.exchange.transport, self.communicator, counts)

    def _taken(self, rows: Array, order: Array) -> Array:
        """Return rows of eight bytes or several times that in an order."""
        return _like(self.curves.taken(_columns(rows), order), rows)

    def _put_back(self, rows: Array, order: Array) -> Array:
        """Return rows that are in an order as they were before."""
        return _like(self.curves.put_back(_columns(rows), order), rows)


def _columns(rows: Array) -> Array:
    """Return rows as columns of float64."""
    return rows.view("f8").reshape(len(rows), int(np.prod(rows.shape[1:], dtype=int)))


def _like(columns: Array, rows: Array) -> Array:
    """Return columns in the type and the number of dimensions of rows."""
    return columns.view(rows.dtype).reshape(len(columns), *rows.shape[1:])
