"""Planes of a grid that other ranks own: one beyond each end of a slab, or as many as are asked for."""

import math
from functools import cache
from itertools import groupby

import numpy as np

from hybrid_nbody.parallel.partition import Partition


class Whole:
    """The halo of a grid that is whole on every rank: what lies beyond an end of a periodic axis is its other end.

    Parameters
    ----------
    planes : int
        Planes of the grid.
    periodic : bool
        Whether the last plane is followed by the first.
    """

    alone, rank, transport, communicator = True, 0, None, None

    def __init__(self, planes: int, periodic: bool):
        self.partition, self.periodic = Partition.equal(planes, 1), periodic
        self.own = self.partition.share(0)

    def fill(self, array) -> None:
        """Fill the halo planes of `array`, the first and the last one; behind a wall they stay as they are."""
        if self.periodic:
            array[0], array[-1] = array[-2], array[1]

    def maximum(self, array) -> None:
        """Leave `array` as it is: there is nobody to ask."""

    def largest(self, value: float) -> float:
        """Return `value`."""
        return value


class HaloExchange:
    """Slabs of planes along the first axis of arrays; every rank owns at least one plane.

    Parameters
    ----------
    transport : Transport
        Carries planes between ranks.
    partition : Partition
        Who owns which planes.
    communicator : Communicator
        Every method is collective.
    periodic : bool
        Whether the last plane is followed by the first.

    Attributes
    ----------
    name : str
        As the log calls it.
    alone : bool
        Whether this rank owns every plane.
    own : slice
        This rank's planes.
    """

    name = "halo"

    def __init__(self, transport, partition: Partition, communicator, periodic: bool):
        self.transport, self.partition, self.communicator, self.periodic = transport, partition, communicator, periodic
        self.rank = communicator.rank
        self.own = partition.share(self.rank)
        self.alone = partition.size == 1
        self._messages = cache(self._messages_of)

    def fill(self, array) -> None:
        """Fill the halo planes of `array`, the first and the last one; behind a wall they stay as they are."""
        if not self.alone or self.periodic:
            self._trade(array, array, 1)

    def window(self, array, depth: int, room) -> None:
        """Fill `room` with the planes of `array`, which has one halo plane at each end, and `depth` beyond each end."""
        room[depth:-depth] = array[1:-1]
        self._trade(array, room, depth)

    def maximum(self, array) -> None:
        """Replace every element of `array` by its largest value over the ranks."""
        if not self.alone:
            self.transport.maximum(array)

    def largest(self, value: float) -> float:
        """Return the largest `value` of all ranks, on every rank; NaN counts as infinite, so that all ranks agree."""
        value = math.inf if math.isnan(value) else value
        return value if self.alone else float(self.communicator.maximum(np.array(value)))

    def _trade(self, source, target, depth):
        """Bring the planes within `depth` of the slab from `source`, each rank's planes, to `target`."""
        copies, sends, receives = self._messages(depth)
        for start, stop, place in copies:
            target[place : place + stop - start] = source[start:stop]
        self.transport.trade(
            [(rank, source[start:stop]) for rank, start, stop in sends],
            [(rank, target[start:stop]) for rank, start, stop in receives],
        )

    def _messages_of(self, depth):
        """Return what this rank copies, sends and receives, in an order that every rank derives alike."""
        copies, sends, receives = [], [], []
        for rank in range(self.partition.size):
            for owner, first, last, place in self._pieces(rank, depth):
                start = first - self.own.start + 1
                if owner == rank == self.rank:
                    copies.append((start, start + last - first, place))
                elif owner == self.rank:
                    sends.append((rank, start, start + last - first))
                elif rank == self.rank:
                    receives.append((owner, place, place + last - first))
        return copies, sends, receives

    def _pieces(self, rank, depth):
        """Yield the planes first ... last - 1 of `owner` that `rank` needs, and where they belong among its own."""
        share, number = self.partition.share(rank), self.partition.total
        for wanted in (range(share.start - depth, share.start), range(share.stop, share.stop + depth)):
            planes = [plane for plane in wanted if self.periodic or 0 <= plane < number]
            for (owner, turn), run in groupby(planes, lambda plane: (self._owner(plane % number), plane // number)):
                run = list(run)
                first = run[0] - turn * number
                yield owner, first, first + len(run), run[0] - share.start + depth

    def _owner(self, plane):
        return next(rank for rank, end in enumerate(self.partition.offsets[1:]) if plane < end)
