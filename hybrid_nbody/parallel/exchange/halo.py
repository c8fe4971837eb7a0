"""Ranks own slabs of planes and see those next to each end of theirs, its halo."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.base import Exchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.base import Transport

EXCHANGE = "the halo exchange"
"""What messages are for, in warnings."""


class Window(NamedTuple):
    """Consecutive planes around an end of a slab, or around all of it.

    Attributes
    ----------
    origin : int
        The first of them, counted from the first plane of the rank: less than 0 below it.
    array : array
        Takes them.
    """

    origin: int
    array: Array

    def sees(self, planes: slice) -> bool:
        """Return whether planes are among those of the window; all are counted alike."""
        end = self.origin + len(self.array)
        return bool(self.origin <= planes.start and planes.stop <= end)

    def planes(self, planes: slice) -> Array:
        """Return the place of planes that the window sees."""
        return self.array[shifted(planes, -self.origin)]

    def take(self, own: Array) -> None:
        """Copy what the window sees of the rank's own planes."""
        seen = slice(max(self.origin, 0), min(self.origin + len(self.array), len(own)))
        self.planes(seen)[...] = own[seen]


class FullGrid:
    """The halo of a grid that every rank holds in full: the planes at its other end, if periodic.

    It has the interface of a `HaloExchange` of one rank, whose arrays have one halo plane at each
    end.

    Parameters
    ----------
    planes : int
        Planes of the grid.
    periodic : bool
        Whether the last plane is followed by the first.
    """

    alone = True
    shared = False
    recordable = True
    rank = 0
    transport: Transport | None = None
    communicator: Communicator | None = None

    def __init__(self, planes: int, periodic: bool):
        self.partition = Partition.equal(planes, 1)
        self.periodic = periodic
        self.own = self.partition.share(0)

    def fill(self, *arrays: Array) -> None:
        """Fill the first and the last plane of arrays, the halo; planes outside the box stay."""
        for array in arrays if self.periodic else ():
            array[0], array[-1] = array[-2], array[1]

    def window(self, array: Array, depth: int, out: Array) -> None:
        """Fill `out` with the planes of `array` and `depth` planes next to each end."""
        halo = (len(array) - self.partition.total) // 2
        self.windows(array[halo : len(array) - halo], depth, [Window(-depth, out)])

    def windows(self, own: Array, depth: int, windows: Sequence[Window]) -> None:
        """Fill windows of the planes and of `depth` planes next to each end of the grid."""
        number = self.partition.total
        beyond = (*range(-depth, 0), *range(number, number + depth))
        for window in windows:
            window.take(own)
            for plane in beyond if self.periodic else ():
                if window.sees(slice(plane, plane + 1)):
                    window.planes(slice(plane, plane + 1))[...] = own[plane % number]

    def planes_of_all(self, planes: np.ndarray) -> np.ndarray:
        """Return `planes`; see `HaloExchange.planes_of_all`."""
        return planes

    def between_planes(self) -> "FullGrid":
        """Return the halo of the faces between the planes, as `HaloExchange.between_planes`."""
        return FullGrid(self.partition.total - 1, periodic=False)

    def collect(self, array: Array) -> None:
        """Leave `array` as it is: there are no other ranks."""

    def maximum(self, array: Array) -> None:
        """Leave `array` as it is: there are no other ranks."""

    def largest(self, value: float) -> float:
        """Return `value`; NaN counts as infinite, as on several ranks."""
        return self.largest_each([value])[0]

    def largest_each(self, values: Sequence[float]) -> list[float]:
        """Return the values; see `largest`."""
        return [comparable(value) for value in values]


class HaloMessages(NamedTuple):
    """The copies and messages that fill the halo of a rank; planes are counted from its first.

    Attributes
    ----------
    copies : list of (slice, slice)
        Planes of its own, and where they belong.
    sends : list of (int, slice)
        Another rank, and planes for it.
    receives : list of (int, slice)
        Another rank, and where its planes belong.
    """

    copies: list[tuple[slice, slice]]
    sends: list[tuple[int, slice]]
    receives: list[tuple[int, slice]]


class Piece(NamedTuple):
    """Consecutive planes of one owner that another rank needs.

    Attributes
    ----------
    owner : int
        The rank that owns them.
    first, last : int
        Planes first … last - 1 of the grid.
    offset : int
        Where the first of them belongs, counted from the first plane of the rank in need.
    """

    owner: int
    first: int
    last: int
    offset: int


class HaloExchange(Exchange):
    """Slabs of planes along the first axis of arrays; a rank may own none.

    Parameters
    ----------
    transport : Transport
        Carries planes between ranks.
    partition : Partition
        Which rank owns which planes.
    communicator : Communicator
        Every method is collective.
    periodic : bool
        Whether the last plane is followed by the first.
    """

    name = "halo"

    def __init__(
        self, transport: Transport, partition: Partition, communicator: Communicator, periodic: bool
    ):
        super().__init__(transport, partition, communicator.rank)
        self.communicator = communicator
        self.periodic = periodic
        self._messages = cache(self._messages_of)

    def fill(self, *arrays: Array, depth: int = 1) -> None:
        """Fill the `depth` planes next to each end of a slab; those outside the box stay.

        Arrays may have more planes beyond the ends than that.
        """
        if self.alone and not self.periodic:
            return
        messages = self._messages(depth)
        sends = []
        receives = []
        for array in arrays:
            halo = self._halo_planes(array)
            for here, there in messages.copies:
                array[shifted(there, halo)] = array[shifted(here, halo)]
            sends += [(rank, array[shifted(here, halo)]) for rank, here in messages.sends]
            receives += [(rank, array[shifted(there, halo)]) for rank, there in messages.receives]
        self.transport.send_receive(sends, receives, EXCHANGE)

    def window(self, array: Array, depth: int, out: Array) -> None:
        """Fill `out` with the planes of `array` and `depth` planes next to each end."""
        halo = self._halo_planes(array)
        self.windows(array[halo : len(array) - halo], depth, [Window(-depth, out)])

    def windows(self, own: Array, depth: int, windows: Sequence[Window]) -> None:
        """Fill windows, one or more, of a rank's planes and of `depth` planes next to each end.

        Parameters
        ----------
        own : array
            The planes of the rank, without a halo.
        depth : int
            The same on all ranks.
        windows : sequence of Window
            Each of the planes beyond the ends that there are is seen by one of them.
        """
        for window in windows:
            window.take(own)
        messages = self._messages(depth)
        for here, there in messages.copies:
            _place(windows, there)[...] = own[here]
        sends = [(rank, own[here]) for rank, here in messages.sends]
        receives = [(rank, _place(windows, there)) for rank, there in messages.receives]
        self.transport.send_receive(sends, receives, EXCHANGE)

    def between_planes(self) -> "HaloExchange":
        """Return the exchange of the faces between the planes, where the axis does not wrap around.

        Each belongs to the plane above it: a rank that owns the lowest plane alone has no face.
        """
        offsets = tuple(max(offset - 1, 0) for offset in self.partition.offsets)
        return HaloExchange(self.transport, Partition(offsets), self.communicator, periodic=False)

    @property
    def shared(self) -> bool:
        """Return whether several ranks own planes."""
        return sum(count > 0 for count in self.partition.counts) > 1

    def planes_of_all(self, planes: np.ndarray) -> np.ndarray:
        """Return what the ranks found of their planes, in their order, on every rank.

        It takes one message: every rank knows how many planes another one has at most.

        Parameters
        ----------
        planes : (n, m) array of float64
            A row for each plane of this rank, or for each face across z: one more at most.
        """
        if self.alone:
            return planes
        most = max(self.partition.counts) + 1
        counted = np.zeros((most + 1, planes.shape[1]))
        counted[0] = len(planes)
        counted[1 : len(planes) + 1] = planes
        found = self.communicator.gather_alike(counted)
        return np.concatenate([own[1 : int(own[0, 0]) + 1] for own in found])

    def maximum(self, array: Array) -> None:
        """Replace every element of `array` by its largest value over the ranks."""
        if not self.alone:
            self.transport.maximum(array)

    def largest(self, value: float) -> float:
        """Return the largest `value` of all ranks, on every rank.

        NaN counts as infinite, so that all ranks agree.
        """
        return self.largest_each([value])[0]

    def largest_each(self, values: Sequence[float]) -> list[float]:
        """Return the largest of each of some values; see `largest`."""
        own = np.array([comparable(value) for value in values])
        found: list[float] = (own if self.alone else self.communicator.maximum(own)).tolist()
        return found

    def _halo_planes(self, array: Array) -> int:
        """Return the number of halo planes that an array has at each end."""
        return int(len(array) - (self.own.stop - self.own.start)) // 2

    def _messages_of(self, depth: int) -> HaloMessages:
        """Return this rank's messages, in an order that every rank derives alike."""
        messages = HaloMessages([], [], [])
        for rank in range(self.partition.size):
            for piece in self._pieces(rank, depth):
                here = slice(piece.first - self.own.start, piece.last - self.own.start)
                there = slice(piece.offset, piece.offset + piece.last - piece.first)
                if piece.owner == rank == self.rank:
                    messages.copies.append((here, there))
                elif piece.owner == self.rank:
                    messages.sends.append((rank, here))
                elif rank == self.rank:
                    messages.receives.append((piece.owner, there))
        return messages

    def _pieces(self, rank: int, depth: int) -> Iterator[Piece]:
        """Yield the planes that `rank` needs, piece by piece: none if it owns none."""
        if not self.partition.counts[rank]:
            return
        share = self.partition.share(rank)
        number = self.partition.total
        below = range(share.start - depth, share.start)
        above = range(share.stop, share.stop + depth)
        for wanted in (below, above):
            planes = [plane for plane in wanted if self.periodic or 0 <= plane < number]
            for (owner, turn), run in groupby(planes, self._owner_and_turn):
                consecutive = list(run)
                first = consecutive[0] - turn * number
                offset = consecutive[0] - share.start
                yield Piece(owner, first, first + len(consecutive), offset)

    def _owner_and_turn(self, plane: int) -> tuple[int, int]:
        """Return the owner of a plane, and its copy of the grid: 0 unless it lies beyond an end."""
        turn, plane = divmod(plane, self.partition.total)
        ends = self.partition.offsets[1:]
        return next(rank for rank, end in enumerate(ends) if plane < end), turn


def _place(windows: Sequence[Window], planes: slice) -> Array:
    """Return the place of planes in the window that sees them."""
    return next(window.planes(planes) for window in windows if window.sees(planes))


def comparable(value: float) -> float:
    """Return a number of which all ranks find the same largest one: infinity for NaN."""
    return math.inf if math.isnan(value) else value


def shifted(planes: slice, by: int) -> slice:
    """Return a slice that begins and ends `by` later."""
    return slice(planes.start + by, planes.stop + by)
