"""What lies beyond the planes of a rank whose GPU relaxes them in passes: how it is kept up to date.

A rank computes again what its neighbours compute beside its planes: two planes beyond each end for an iteration. So
planes travel once a pass, whatever it iterates, and every cell is computed from the same numbers as on one rank.
"""

import numpy as np

from hybrid_nbody.fluid.kernels.gpu_layout import halo_of

BEYOND = np.dtype([("below", "u8"), ("above", "u8"), ("colour_below", "i8"), ("colour_above", "i8")])
"""As in ``sweeps.cu``."""

COPY_BLOCKS = 264
COPY_THREADS = 256


def neighbours_of(kernels, halo) -> "Nobody | Messages | Peers":
    """Return how a rank's passes see the planes of others.

    Parameters
    ----------
    kernels : hybrid_nbody.fluid.kernels.gpu.Kernels
    halo : HaloExchange or None
        Needed where other ranks own planes.
    """
    if kernels.slab.complete:
        return Nobody()
    beside = min(halo.partition.counts) >= halo_of(kernels.slab)
    return Peers(kernels, halo) if beside and halo.transport.peers else Messages(kernels, halo)


class Nobody:
    """The neighbours of a rank that owns every plane."""

    def begin(self, x, b, spare, room):
        """Prepare a solve."""

    def before(self, source, count):
        """Prepare the colours that a pass of `count` iterations starts from."""

    def after(self, target, launch, count, watched):
        """Let other ranks have what a launch wrote, and know what it noted of its `count` iterations if `watched`."""


class Messages(Nobody):
    """Neighbours that are sent planes before every pass; methods as in `Nobody`."""

    def __init__(self, kernels, halo):
        self.kernels, self.halo = kernels, halo

    def begin(self, x, b, spare, room):
        """See `Nobody`."""
        self.halo.fill(*b, depth=halo_of(self.kernels.slab))

    def before(self, source, count):
        """See `Nobody`."""
        self.halo.fill(*source, depth=2 * count)

    def after(self, target, launch, count, watched):
        """See `Nobody`."""
        if watched:
            self.halo.maximum(self.kernels.flags(launch, count))


class Peers(Nobody):
    """Neighbours on GPUs that write into each other's memory, and meet after every pass; methods as in `Nobody`.

    Every rank has at least as many planes as a pass reads beyond its own.
    """

    def __init__(self, kernels, halo):
        self.kernels, self.memory = kernels, halo.transport.peers
        self.rank, self.counts = halo.rank, halo.partition.counts
        self.letters = kernels.backend.zeros(2 * len(self.counts), "u8")
        kernels.backend.synchronize()  # it is empty before anybody knows where to put a letter
        self.mailboxes = kernels.backend.upload(np.array(self.memory.addresses(self.letters), "u8"))
        self.meetings = kernels.backend.zeros(1, "u4")
        self.found, self.present = {}, {}

    def begin(self, x, b, spare, room):
        """See `Nobody`; the first call with some arrays asks all ranks where theirs are."""
        key = x.data.ptr, b.data.ptr, room.data.ptr if room is not None else 0  # all ranks find the same ones known
        if key not in self.found:
            self.found[key] = {array.data.ptr: self._beside(array) for array in (x, b, spare)}
        self.present = self.found[key]
        self._meet(0, 0)
        self._show(x)
        self._show(b)
        self._meet(0, 0)

    def after(self, target, launch, count, watched):
        """See `Nobody`."""
        self._show(target)
        self._meet(launch, count if watched else 0)

    def _show(self, array):
        """Copy the outermost planes to the ranks beside this one."""
        arguments = array, self.present[array.data.ptr]
        self.kernels.kernel("sweeps", "show")((COPY_BLOCKS,), (COPY_THREADS,), arguments)

    def _meet(self, launch, watched):
        ranks = len(self.counts)
        numbers = map(np.int32, (self.rank, ranks)), map(np.int32, (launch, watched))
        arguments = *numbers[0], self.mailboxes, self.meetings, *numbers[1], self.kernels.control
        self.kernels.kernel("sweeps", "meet")((1,), (ranks,), arguments)

    def _beside(self, array):
        """Return where the ranks below and above have what this rank has in `array`."""
        addresses, result = self.memory.addresses(array), np.zeros(1, BEYOND)
        ranks, plane, halo = len(self.counts), array[0, 0].nbytes, halo_of(self.kernels.slab)
        below, above = (self.rank - 1) % ranks, (self.rank + 1) % ranks
        low, high = self.kernels.slab.walls
        for name, other, moved, wall in (
            ("below", below, self.counts[below], low),
            ("above", above, -self.counts[self.rank], high),
        ):
            if not wall:
                result[name] = addresses[other] + moved * plane
                result[f"colour_{name}"] = (self.counts[other] + 2 * halo) * plane // array.itemsize
        return result
