"""What lies beyond the planes of a rank whose GPU relaxes them in passes: how it is kept up to date.

A rank computes again what its neighbours compute beside its planes: two planes beyond each end for
an iteration. So planes travel once a pass, whatever it iterates, and every cell is computed from
the same numbers as on one rank.
"""

import numpy as np

from hybrid_nbody.fluid.kernels.gpu.layout import halo_of

BEYOND = np.dtype(
    [("below", "u8"), ("above", "u8"), ("colour_below", "i8"), ("colour_above", "i8")]
)
AHEAD = np.dtype(
    [("to", BEYOND), ("complete", "u8"), ("helpers", "i4"), ("first", "i4"), ("second", "i4")],
    align=True,
)
MEETINGS = np.dtype([("letters", "u8"), ("count", "u8"), ("me", "i4"), ("ranks", "i4")])
"""As in ``peer_planes.cuh``, ``red_black_tiles.cu`` and ``red_black.cu``."""

OF_A_SOLVE = ("meet", "show", "show_and_meet", "settle", "bring_home")
"""Kernels that are launched while another rank may wait for this one. They are loaded before: CUDA
may load a kernel only when the GPU is idle, which it is not while ranks wait for each other."""

COPY_BLOCKS = 264
COPY_THREADS = 256


def planes_read(count: int) -> tuple[int, int]:
    """Return how many planes of x beyond each end a pass of `count` iterations reads, of one colour and the other.

    It begins with the first colour, of which it needs no plane more than it renews. After the last
    pass, `count` 0, one plane of each colour is wanted.
    """
    return max(2 * count - 1, 1), max(2 * count, 1)


NO_PUSH = np.zeros(1, AHEAD)
"""What a pass is told that pushes nothing before it ends."""


class Peers:
    """Neighbours on GPUs that write into each other's memory, and meet after every pass; see `PeerPlanes`.

    Every rank has at least as many planes as a pass reads beyond its own. Multiprocessors without a
    tile copy the first ones during a pass, where there are some, and a kernel between passes the
    others: if the threads of tiles did that, it would cost more time, in registers and
    instructions, than it would hide.
    """

    def __init__(self, kernels, memory, rank, planes):
        self.kernels = kernels
        self.memory = memory
        self.module = kernels.modules["red_black"]
        self.module.load(*OF_A_SOLVE)
        self.rank = rank
        self.planes = planes
        self.letters = kernels.backend.zeros(2 * len(self.planes), "u8")
        self.count = kernels.backend.zeros(3, "u4")
        kernels.backend.synchronize()  # it is empty before anybody knows where to put a letter
        self.mailboxes = kernels.backend.upload(np.array(self.memory.addresses(self.letters), "u8"))
        numbers = self.mailboxes.data.ptr, self.count.data.ptr, self.rank, len(self.planes)
        self.meetings = np.array([numbers], MEETINGS)
        self.found = {}
        self.present = {}

    def begin(self, solve):
        """See `PeerPlanes`; the first call with some arrays asks all ranks where theirs are."""
        self.solve = solve
        self.counts = *solve.counts, 0
        solve.early_push = self.early_push
        x, b, spare = solve.x, solve.b, solve.spare
        room = solve.scratch.data.ptr if solve.scratch is not None else 0
        key = x.data.ptr, b.data.ptr, room  # all ranks find the same ones known
        if key not in self.found:
            self.found[key] = {array.data.ptr: self._beside(array) for array in (x, b, spare)}
        self.present = self.found[key]
        self._launch("meet", 1, *self._meeting(0, 0))
        self._launch("show", COPY_BLOCKS, *self._planes(x, *planes_read(self.counts[0])))
        renewed = halo_of(self.kernels.slab) - 1, halo_of(self.kernels.slab) - 2
        self._launch("show_and_meet", COPY_BLOCKS, *self._planes(b, *renewed), *self._meeting(0, 0))

    def early_push(self, step):
        """Return what the helpers of a pass push before it ends: an argument of its kernel."""
        return self.ahead(step.target, step.index, self.solve.helpers(step))

    def ahead(self, target, launch, helpers):
        """Return the same; the rank below needs what it gets at the end of its next pass, the one above at once."""
        result = NO_PUSH.copy()
        if helpers:
            complete = self.count[2:].data.ptr
            planes = planes_read(self.counts[launch + 1])
            result[0] = self._beside_but(target, "above")[0], complete, helpers, *planes
        return result

    def after(self, step):
        """See `PeerPlanes`."""
        helpers = self.solve.helpers(step)
        self.push_rest(step.target, step.index, helpers, self.solve.solve.watched)

    def push_rest(self, target, launch, helpers, watched):
        """Push what the helpers of a launch did not; if `watched`, combine what it noted, too."""
        count, following = self.counts[launch : launch + 2]
        to = self._beside_but(target, "below") if helpers else self.present[target.data.ptr]
        planes = target, *map(np.int32, planes_read(following)), to
        self._launch(
            "show_and_meet", COPY_BLOCKS, *planes, *self._meeting(launch, count if watched else 0)
        )

    def _launch(self, name, blocks, *arguments):
        self.module.launch_grid(name, (blocks,), (COPY_THREADS,), arguments)

    def _planes(self, array, first, second):
        """Return arguments for showing the outermost planes of an array, so many of each colour."""
        return array, np.int32(first), np.int32(second), self.present[array.data.ptr]

    def _beside_but(self, array, side):
        """Return what `_beside` does, as if there were no rank on that side."""
        result = self.present[array.data.ptr].copy()
        result[side] = 0
        return result

    def _meeting(self, launch, iterations):
        """Return arguments for a meeting about what was noted of a launch."""
        return self.meetings, np.int32(launch), np.int32(iterations), self.kernels.control

    def _beside(self, array):
        """Return where the ranks below and above have what this rank has in `array`."""
        addresses = self.memory.addresses(array)
        result = np.zeros(1, BEYOND)
        ranks = len(self.planes)
        plane = array[0, 0].nbytes
        halo = halo_of(self.kernels.slab)
        below = (self.rank - 1) % ranks
        above = (self.rank + 1) % ranks
        low, high = self.kernels.slab.walls
        for name, other, moved, wall in (
            ("below", below, self.planes[below], low),
            ("above", above, -self.planes[self.rank], high),
        ):
            if not wall:
                result[name] = addresses[other] + moved * plane
                result[f"colour_{name}"] = (self.planes[other] + 2 * halo) * plane // array.itemsize
        return result
