"""Planes that the GPUs of neighbouring ranks write into each other's memory between passes.

A rank computes again what its neighbours compute beside its planes: two planes beyond each end for
an iteration. So planes travel once a pass, whatever its iterations, and every cell is computed from
the same numbers as on one rank.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.kernels.contract import Pass, PassSolve, PeerMemory
from hybrid_nbody.fluid.kernels.gpu.layout import FOLDER
from hybrid_nbody.fluid.kernels.gpu.red_black import COPY_THREADS, EARLY_PUSH, PEER_HALO, TiledSolve
from hybrid_nbody.parallel.transport.peer_barrier import PeerBarrier

if TYPE_CHECKING:
    from hybrid_nbody.fluid.kernels.gpu.linear_systems import LinearSystems

PEER_KERNELS = ("barrier", "push", "push_and_barrier")
SOLVE_KERNELS = ("end_passes", "copy_back")
"""Kernels that are launched while another rank may wait for this one. They are loaded before: CUDA
may load a kernel only when the GPU is idle, which it is not while ranks wait for each other."""

PUSH_BLOCKS = 264
"""Blocks that push planes."""

SOLVE = "the halo exchange of the red-black solve"
"""What ranks wait for each other in, for messages."""

NO_LAUNCH = (0, 0)
"""A barrier at which no iterations are reported."""


def planes_read(count: int) -> tuple[int, int]:
    """Return how many planes beyond each end a pass reads of the first and second colour of x.

    A pass of `count` iterations begins with the first colour, of which it needs no plane more than
    it updates. After the last pass, `count` 0, one plane of each colour is wanted.
    """
    return max(2 * count - 1, 1), max(2 * count, 1)


class Peers:
    """Neighbours on GPUs that write into each other's memory, with a barrier after every pass.

    Every rank has at least as many planes as a pass reads beyond its own. Multiprocessors without a
    tile push the lowest ones during a pass, where there are some, and a kernel between passes the
    others: if the threads of tiles did that, it would cost more time, in registers and
    instructions, than it would hide.

    Parameters
    ----------
    systems : LinearSystems
        The slab of this rank.
    memory : PeerMemory
        The memory of all ranks' GPUs.
    rank : int
        This rank.
    planes : sequence of int
        The planes of every rank.
    """

    def __init__(
        self, systems: "LinearSystems", memory: PeerMemory, rank: int, planes: Sequence[int]
    ):
        self.systems = systems
        self.memory = memory
        self.rank = rank
        self.planes = planes
        self.module = systems.compile(FOLDER / "peers.cu")
        self.module.load(*PEER_KERNELS)
        systems.modules["red_black"].load(*SOLVE_KERNELS)
        self.barrier = PeerBarrier(systems.backend, memory, rank, len(planes), SOLVE)
        self.found: dict[tuple[int, int, int], dict[int, np.ndarray]] = {}

    def begin(self, solve: PassSolve) -> None:
        """See `PeerPlanes`; the first call with some arrays asks all ranks where theirs are."""
        assert isinstance(solve, TiledSolve)  # a resident solve is of one rank alone
        solve.peers = self
        self.watched = solve.solve.watched
        self.pushers = solve.solver.pushers
        self.counts = (*(step.iterations for step in solve.passes), 0)
        self.halos = self._peer_halos(solve)
        self._launch("barrier", 1, *self._at_barrier(*NO_LAUNCH))
        if not solve.takes_zeros:
            planes = self._outermost(solve.x, planes_read(self.counts[0]))
            self._launch("push", PUSH_BLOCKS, *planes)
        depth = self.systems.pass_depth
        planes = self._outermost(solve.b, (depth - 1, depth - 2))
        self._launch("push_and_barrier", PUSH_BLOCKS, *planes, *self._at_barrier(*NO_LAUNCH))

    def _peer_halos(self, solve: TiledSolve) -> dict[int, np.ndarray]:
        """Return the peer halos of a solve's arrays, by their addresses.

        The key is made of what the caller gives, so that all ranks find the same ones known.
        """
        lent = solve.scratch.data.ptr if solve.scratch is not None else 0
        key = (solve.x.data.ptr, solve.b.data.ptr, lent)
        if key not in self.found:
            arrays = (solve.x, solve.b, solve.work)
            self.found[key] = {array.data.ptr: self._peer_halo(array) for array in arrays}
        return self.found[key]

    def early_push(self, step: Pass) -> np.ndarray:
        """Return what blocks push during a pass, as an argument of its kernel.

        The rank below needs its planes at the end of its next pass, the one above at once.
        """
        result = np.zeros(1, EARLY_PUSH)
        pushers = self.pushers[step.iterations]
        if pushers:
            result["to"] = self._without(step.target, "above")
            result["complete_tiles"] = self.barrier.counter
            result["pushers"] = pushers
            result["first"], result["second"] = planes_read(self.counts[step.number + 1])
        return result

    def after(self, step: Pass) -> None:
        """See `PeerPlanes`."""
        early = self.pushers[step.iterations] > 0
        to = self._without(step.target, "below") if early else self.halos[step.target.data.ptr]
        first, second = planes_read(self.counts[step.number + 1])
        reported = step.iterations if self.watched else 0
        planes = (step.target, np.int32(first), np.int32(second), to)
        barrier = self._at_barrier(step.number, reported)
        self._launch("push_and_barrier", PUSH_BLOCKS, *planes, *barrier)

    def _launch(self, name: str, blocks: int, *arguments: Any) -> None:
        self.module.launch_grid(name, (blocks,), (COPY_THREADS,), arguments)

    def _outermost(self, array: Array, planes: tuple[int, int]) -> tuple[Any, ...]:
        """Return arguments for pushing a number of outermost planes of each colour of an array."""
        first, second = map(np.int32, planes)
        return (array, first, second, self.halos[array.data.ptr])

    def _without(self, array: Array, side: str) -> np.ndarray:
        """Return the peer halo of an array as if there were no rank on one side."""
        result = self.halos[array.data.ptr].copy()
        result[side] = 0
        return result

    def _at_barrier(self, launch: int, iterations: int) -> tuple[Any, ...]:
        """Return arguments for a barrier at which iterations of a launch are reported."""
        return (self.barrier.argument, np.int32(launch), np.int32(iterations), self.systems.control)

    def _peer_halo(self, array: Array) -> np.ndarray:
        """Return where the ranks below and above have what this rank has in `array`; collective."""
        addresses = self.memory.addresses(array)
        result = np.zeros(1, PEER_HALO)
        ranks = len(self.planes)
        below = (self.rank - 1) % ranks
        above = (self.rank + 1) % ranks
        wall_below, wall_above = self.systems.slab.walls
        plane = array[0, 0].nbytes
        if not wall_below:
            result["below"] = addresses[below] + self.planes[below] * plane
            result["colour_below"] = self._colour_size(below, array)
        if not wall_above:
            result["above"] = addresses[above] - self.planes[self.rank] * plane
            result["colour_above"] = self._colour_size(above, array)
        return result

    def _colour_size(self, rank: int, array: Array) -> int:
        """Return the numbers of one colour of an array of a rank."""
        planes = self.planes[rank] + 2 * self.systems.pass_depth
        return int(planes * (array[0, 0].nbytes // array.itemsize))
