"""Planes of a grid that other ranks own: one beyond each end of a slab, or as many as are asked for."""

import math
from functools import cache
from itertools import groupby

import numpy as np

from hybrid_nbody.parallel.exchange import Exchange
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

    alone = True
    recordable = True
    rank = 0
    transport = None
    communicator = None

    def __init__(self, planes: int, periodic: bool):
        self.partition = Partition.equal(planes, 1)
        self.periodic = periodic
        self.own = self.partition.share(0)

    def fill(self, *arrays) -> None:
        """Fill the halo planes of arrays, the first and the last one; behind a wall they stay as they are."""
        for array in arrays if self.periodic else ():
            array[0], array[-1] = array[-2], array[1]

    def maximum(self, array) -> None:
        """Leave `array` as it is: there is nobody to ask."""

    def largest(self, value: float) -> float:
        """Return `value`."""
        return value


def shifted(planes: slice, by: int) -> slice:
    """Return a slice that begins and ends `by` later."""
    return slice(planes.start + by, planes.stop + by)


class HaloExchange(Exchange):
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
    recordable : bool
        Whether a device can replay what is exchanged, without the host.
    own : slice
        This rank's planes.
    """

    name = "halo"

    def __init__(self, transport, partition: Partition, communicator, periodic: bool):
        super().__init__(transport, partition, communicator.rank)
        self.communicator = communicator
        self.periodic = periodic
        self._messages = cache(self._messages_of)

    def fill(self, *arrays, depth: int = 1) -> None:
        """Fill the `depth` planes beyond each end of a slab; behind a wall they stay as they are.

        Arrays may have more planes beyond the ends than that.
        """
        if not self.alone or self.periodic:
            self._trade([(array, array) for array in arrays], depth)

    def window(self, array, depth: int, room) -> None:
        """Fill `room` with the planes of `array`, which has one halo plane at each end, and `depth` beyond each end."""
        room[depth:-depth] = array[1:-1]
        self._trade([(array, room)], depth)

    def maximum(self, array) -> None:
        """Replace every element of `array` by its largest value over the ranks."""
        if not self.alone:
            self.transport.maximum(array)

    def largest(self, value: float) -> float:
        """Return the largest `value` of all ranks, on every rank; NaN counts as infinite, so that all ranks agree."""
        value = math.inf if math.isnan(value) else value
        return value if self.alone else float(self.communicator.maximum(np.array(value)))

    def _trade(self, pairs, depth):
        """Bring the planes within `depth` of the slab from the first array of each pair, each rank's, to the second."""
        copies, sends, receives = self._messages(depth)
        sending = []
        receiving = []
        for source, target in pairs:
            first = self._beyond(source)
            place = self._beyond(target)
            for here, there in copies:
                target[shifted(there, place)] = source[shifted(here, first)]
            sending += [(rank, source[shifted(here, first)]) for rank, here in sends]
            receiving += [(rank, target[shifted(there, place)]) for rank, there in receives]
        self.transport.trade(sending, receiving)

    def _beyond(self, array):
        """Return how many planes an array has beyond each end of the slab."""
        return (len(array) - (self.own.stop - self.own.start)) // 2

    def _messages_of(self, depth):
        """Return what this rank copies, sends and receives, in an order that every rank derives alike.

        Planes are counted from its first one.
        """
        copies = []
        sends = []
        receives = []
        for rank in range(self.partition.size):
            for owner, first, last, place in self._pieces(rank, depth):
                here = slice(first - self.own.start, last - self.own.start)
                there = slice(place, place + last - first)
                if owner == rank == self.rank:
                    copies.append((here, there))
                elif owner == self.rank:
                    sends.append((rank, here))
                elif rank == self.rank:
                    receives.append((owner, there))
        return copies, sends, receives

    def _pieces(self, rank, depth):
        """Yield the planes first ...

        last - 1 of `owner` that `rank` needs, and where they belong among its own.
        """
        share = self.partition.share(rank)
        number = self.partition.total
        for wanted in (
            range(share.start - depth, share.start),
            range(share.stop, share.stop + depth),
        ):
            planes = [plane for plane in wanted if self.periodic or 0 <= plane < number]
            for (owner, turn), run in groupby(
                planes, lambda plane: (self._owner(plane % number), plane // number)
            ):
                run = list(run)
                first = run[0] - turn * number
                yield owner, first, first + len(run), run[0] - share.start

    def _owner(self, plane):
        return next(rank for rank, end in enumerate(self.partition.offsets[1:]) if plane < end)
