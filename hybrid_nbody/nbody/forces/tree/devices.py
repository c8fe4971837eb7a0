"""A tree over the bodies of all ranks on their devices.

Where the ranks have GPUs of one host and few bodies, each has the whole tree; see `shares`.

Else every rank makes the cells that start at bodies of its parts and tells the others of them, so
that all know all cells: about 15 bytes for a body, of the five hundred or so that its owner has.
The bodies of others that a rank needs follow from its lists of sources: those of nearby leaves,
which travel while it computes the far field.

While the host waits for numbers from its device or from other ranks, the device works on what does
not depend on them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.forces.tree.cuts import Cuts
from hybrid_nbody.nbody.forces.tree.resharing import Resharing
from hybrid_nbody.nbody.forces.tree.shares import SumsByShares
from hybrid_nbody.nbody.forces.tree.travel import Travel, Travels
from hybrid_nbody.nbody.kernels.cube import Cube, cube_around
from hybrid_nbody.nbody.kernels.device_tree import MOST_BOUNDS, DeviceTree, WantedBodies
from hybrid_nbody.nbody.kernels.share import share_of
from hybrid_nbody.nbody.step_timer import Timer
from hybrid_nbody.parallel.exchange.routes import Routes, pieces
from hybrid_nbody.parallel.transport.base import Message, Messages

CELLS_OF_A_PIECE = 1 << 17
"""Cells of a rank that travel at a time, about: their way takes many times what it takes to begin a
message."""

Box = NDArray[np.float64]
"""The lowest and highest coordinates of bodies, (2, 3)."""


class Divided(NamedTuple):
    """Bodies of this rank, divided where shares began in the last force.

    Attributes
    ----------
    cuts : Cuts
        Where they began.
    order : (n,) array of int
        The bodies, by the ranks that take them.
    rows : (n, …) array of float64
        The same in that order.
    between : (T,) array of int
        How many have keys from each bound of the cuts to the next.
    """

    cuts: Cuts
    order: Array
    rows: Array
    between: NDArray[np.int64]


class TreeOnDevices:
    """Sums over the bodies of all ranks, each with a device; every method is collective.

    Parameters
    ----------
    tree : DeviceTree
        The tree on this rank's device.
    travels : Travels
        The way of bodies to the ranks that sum the forces on them.
    by_shares : SumsByShares or None
        The sums, where all ranks have the whole tree and no body travels.
    """

    def __init__(
        self, tree: DeviceTree, travels: Travels, by_shares: SumsByShares | None = None
    ) -> None:
        self.tree = tree
        self.by_shares = by_shares
        self.travels = travels
        self.backend = travels.backend
        self.communicator = travels.communicator
        self.exchange = travels.exchange
        self.cuts: Cuts | None = None
        self.resharing = Resharing()

    def sums(self, bodies: Array, potentials: bool, timer: Timer) -> Array:
        """Return the sums at this rank's bodies; see `DistributedTree.sums`."""
        if self.communicator.size == 1:
            sums = self.tree.sums_alone(bodies, potentials)
            timer.record("force")
            return sums
        if self.by_shares:
            return self.by_shares.sums(bodies, potentials, timer)
        sent = self.send(bodies)
        if sent is None:  # the guard names the body
            return self.backend.xp.full((len(bodies), 1 if potentials else 3), np.nan)
        travel, cube = sent
        timer.record("exchange")
        self._find_far_field(travel, cube, potentials, timer)
        results = self.tree.sums(potentials)
        counted = self.resharing.counts_work
        if counted:
            results = self.backend.xp.concatenate([results, self.tree.work()], axis=1)
        timer.record("force")
        sums = self.travels.returned(results, travel, counted)
        timer.record("exchange")
        self.resharing.go_on()
        return sums

    # ---- Where shares begin ----------------------------------------------------------------------

    def send(self, bodies: Array) -> tuple[Travel, Cube] | None:
        """Send bodies to the ranks of their parts; return also the cube around them.

        Nothing is sent, and None returned, if a coordinate is not finite.
        """
        box = self._begin_box(bodies)
        divide = self._begin_to_divide(bodies)
        lowest, highest = box()
        divided = divide()
        if not np.isfinite(highest - lowest).all():
            return None
        cube = cube_around(lowest, highest)
        if divided and divided.cuts.cube == cube:
            travel = self._travel_again(divided)
            if travel:
                return travel, cube
        del divide, divided  # their rows
        return self._travel_anew(bodies, cube), cube

    def _begin_to_divide(self, bodies: Array) -> Callable[[], Divided | None]:
        """Begin to divide bodies where shares began in the last force.

        What is returned waits for that, and gives None where work is shared out anew. It is
        discarded if the cube around the bodies, which is not known yet, has changed.
        """
        cuts = self.cuts
        if cuts is None or self.resharing.is_due:
            return _nothing
        keys = self.tree.keys(bodies, cuts.cube)
        counted = self.tree.count_between(keys, cuts.bounds)
        order = self.tree.split(keys, cuts.keys)
        rows = self.tree.taken(bodies, order)
        return lambda: Divided(cuts, order, rows, counted())

    def _travel_anew(self, bodies: Array, cube: Cube) -> Travel:
        """Find parts anew, and send bodies to their ranks."""
        travel = self.travels.sent(bodies, cube)
        capacity = self.travels.capacity
        cuts = Cuts(travel.cuts, self.tree.levels - 1, cube, capacity)
        self.cuts = cuts if len(cuts.bounds) <= MOST_BOUNDS else None
        self.resharing.forget()
        return travel

    def _travel_again(self, divided: Divided) -> Travel | None:
        """Send bodies where the shares begin at some cuts; None if one lies within a leaf."""
        cuts = divided.cuts
        table = self.communicator.gather_integers(*map(int, divided.between))
        parts = cuts.parts(table.sum(axis=0))
        if parts is None:
            return None
        ranks = (self.backend, self.exchange.transport, self.communicator.rank)
        taken = cuts.taken(table)
        self.resharing.note(taken.sum(axis=0))
        routes = Routes(*ranks, taken)
        rows = routes.there(divided.rows)
        travel = Travel(parts, routes, divided.order, rows, None, cuts.keys.tolist())
        return self.travels.arrived(travel, cuts.cube, 1)

    def _find_far_field(self, travel: Travel, cube: Cube, potentials: bool, timer: Timer) -> None:
        """Find the far field at the bodies of this rank's parts, and bring nearby bodies here."""
        cells_of_ranks = self._make_cells(travel, cube)
        timer.record("force")
        self._tell_cells(cells_of_ranks)
        timer.record("exchange")
        self._find_sources()
        timer.record("force")
        wanted = self.tree.wanted(self.communicator.size)
        flags = self._begin_to_tell(wanted)
        timer.record("exchange")
        self.tree.find_expansions()
        timer.record("force")
        flags.finish()
        counted = self.tree.count_messages(wanted)
        timer.record("exchange")
        self.tree.hand_down_expansions()
        timer.record("force")
        bodies_of_others = self._begin_bodies(counted)
        timer.record("exchange")
        self.tree.evaluate_expansions(potentials)
        timer.record("force")
        bodies_of_others.finish()
        timer.record("exchange")

    def _find_sources(self) -> None:
        """Find the sources of this rank's cells."""
        self.tree.find_sources()
        while not self.tree.found_all():
            self.tree.find_sources()

    def _begin_box(self, bodies: Array) -> Callable[[], Box]:
        """Begin to find the box around the bodies of all ranks; what is returned is collective."""
        own = self.tree.box(bodies) if len(bodies) else _empty_box
        return lambda: self._over_ranks(own())

    def _over_ranks(self, box: Box) -> Box:
        """Return the box around the bodies of all ranks, from those around each rank's."""
        signed = np.stack([box[0], -box[1]])
        broken = np.isnan(signed)  # how MPI compares NaN is not defined
        least = self.communicator.minimum(np.where(broken, -np.inf, signed))
        return np.stack([least[0], -least[1]])

    def _make_cells(self, travel: Travel, cube: Cube) -> NDArray[np.int64]:
        """Make the cells of this rank, with numbers that follow from those of all ranks.

        How many start on each rank is returned, (S,).
        """
        size = self.communicator.size
        share = share_of(travel.parts, self.communicator.rank, size, self.tree.levels)
        counts = self.tree.count_cells(travel.rows, travel.curve, cube, share)
        table = self.communicator.gather_integers(*map(int, counts))
        self.tree.make_cells(table)
        cells_of_ranks: NDArray[np.int64] = table.sum(axis=1)
        return cells_of_ranks

    def _tell_cells(self, cells_of_ranks: NDArray[np.int64]) -> None:
        """Let all ranks know all cells: some travel while others are packed, or taken."""
        begun = [self._begin_to_tell_some(some) for some in _pieces_of(cells_of_ranks)]
        for received, messages in begun:
            messages.finish()
            self.tree.add_cells(received)
        self.tree.link_cells()

    def _begin_to_tell_some(self, some: list[slice]) -> tuple[Array, Messages]:
        """Begin to let all ranks know some cells of each; return also where they arrive."""
        rank = self.communicator.rank
        rows = self.tree.cell_rows(some[rank])
        counts = [piece.stop - piece.start for piece in some]
        counts[rank] = 0
        received = self.backend.xp.empty((sum(counts), rows.shape[1]), "u1")
        return received, self._begin(([rows] * len(counts), pieces(received, counts)))

    def _begin_to_tell(self, wanted: Array) -> Messages:
        """Begin to let all ranks know which bodies each of them wants."""
        return self._begin(([wanted[self.communicator.rank]] * len(wanted), list(wanted)))

    def _begin_bodies(self, wanted: WantedBodies) -> Messages:
        """Begin to send the bodies that other ranks want, and to receive those wanted here."""
        sent, places, sent_counts, counts = self.tree.messages(wanted)
        rows = [
            (pieces(one, sent_counts.tolist()), pieces(place, counts.tolist()))
            for one, place in zip(sent, places, strict=True)
        ]
        return self._begin(*rows)

    def _begin(self, *rows: tuple[list[Array], list[Array]]) -> Messages:
        """Begin to exchange rows with all other ranks, those of each rank in its turn."""
        return self.exchange.transport.begin(
            [message for sent, _ in rows for message in self._messages(sent)],
            [message for _, received in rows for message in self._messages(received)],
            "an exchange of cells between all ranks",
        )

    def _messages(self, rows: list[Array]) -> list[Message]:
        """Return the messages between this rank and others that rows, one of each rank, are."""
        own = self.communicator.rank
        return [(rank, row) for rank, row in enumerate(rows) if rank != own and len(row)]


def _pieces_of(cells: NDArray[np.int64]) -> list[list[slice]]:
    """Return pieces of the cells of all ranks, each with some of every rank."""
    number = max(1, round(cells.max() / CELLS_OF_A_PIECE))
    ends = [[int(count) * k // number for k in range(number + 1)] for count in cells]
    return [[slice(end[k], end[k + 1]) for end in ends] for k in range(number)]


def _nothing() -> None:
    """Return that nothing was begun."""


def _empty_box() -> Box:
    """Return the box around no bodies."""
    return np.array([[np.inf] * 3, [-np.inf] * 3])
