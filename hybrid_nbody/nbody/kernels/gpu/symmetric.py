"""Gravity on a GPU that computes each pair of bodies once, in single precision.

The kernels are in ``symmetric.cu``.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import FLUSH_DENORMALS, CudaModule, checksum
from hybrid_nbody.nbody.copies import Motion, StateCopies
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu import kernels as gpu
from hybrid_nbody.nbody.kernels.gpu.exact_sums import ExactUnits, bounds, rounders
from hybrid_nbody.nbody.kernels.gpu.kernels import THREADS
from hybrid_nbody.nbody.kernels.gpu.layout import Tuning
from hybrid_nbody.nbody.kernels.gpu.peer_rows import PeerRows
from hybrid_nbody.nbody.kernels.gpu.peer_sums import PeerSums
from hybrid_nbody.nbody.kernels.gpu.steps import MOST_MOVES, Moves, StepGraphs
from hybrid_nbody.nbody.kernels.pair_sums import PairSums
from hybrid_nbody.nbody.precision import CHUNK
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import State
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.peer_barrier import Addresses

SOURCE = Path(__file__).with_name("symmetric.cu")
HEADER = SOURCE.with_name("motion.cuh")
OPTIONS = (*FLUSH_DENORMALS, f"-I{SOURCE.parent}")

TARGETS = 8
"""Targets of a lane: on an H200 as many as leave registers for four blocks a multiprocessor. They
are part of the order in which a run is summed, so that no GPU has others."""

JERK_TARGETS = 4
"""The same where jerks are summed, too."""

BLOCKS = 5
"""Blocks that are started for each multiprocessor: as many as may run there at once where
potentials are summed, else one more."""

COMPONENTS = {
    "accelerations": 3,
    "accelerations_of_equal_masses": 3,
    "accelerations_and_jerks": 6,
    "potentials": 1,
}
"""Numbers that a kernel sums for a body, by its name."""

WORDS = {
    "accelerations": 3,
    "accelerations_of_equal_masses": 3,
    "accelerations_and_jerks": 4,
    "potentials": 2,
}
"""Words of an exact sum: multiples of how many units it is split into. The smaller the softening,
the wider is the range of a sum."""


MOST_CHUNKS = 1.04
"""Chunks, relative to full ones, up to which it is faster to take the empty slots of short ones for
bodies than to look for them. On an H200 with 131072 bodies 1.04 times as many are 4 % faster with
the kernels for short chunks, 1.5 times as many 75 %."""


def defines(short: bool = False) -> dict[str, int]:
    """Return the macros that compile ``symmetric.cu``, for short chunks or for full ones."""
    return {
        "CHUNK": CHUNK,
        "TARGETS": TARGETS,
        "JERK_TARGETS": JERK_TARGETS,
        "THREADS": THREADS,
        "SHORT": int(short),
        "MOST_MOVES": MOST_MOVES,
        "HEADER": checksum([HEADER]),
    }


class Kernels(gpu.Kernels):
    """Gravity on one GPU that computes its share of all pairs.

    See `hybrid_nbody.nbody.kernels.pair_sums.SymmetricKernels`; parameters as in `gpu.Kernels`. The
    share of a rank among the pairs is that of its bodies among all. The methods of `gpu.Kernels`
    are for a rank that owns every body, whose sums are complete.

    Attributes
    ----------
    short : bool
        Whether chunks are so short that kernels look for their empty slots. No bit depends on it.
    """

    skips_massless = False  # pairs with them are computed once, and weigh nothing
    times_a_pair = 1

    def __init__(
        self, backend: GpuBackend, state: State, pair_force: PairForce, tuning: Tuning | None = None
    ):
        super().__init__(backend, state, pair_force, tuning)
        units = pair_force.units
        softening = pair_force.softening / units.length
        self.number = len(state.mass)
        self.targets = TARGETS
        self.jerk_targets = JERK_TARGETS
        self.blocks = BLOCKS * int(backend.facts()["multiprocessors"])
        self.symmetric = CudaModule(backend, SOURCE, defines(), OPTIONS)
        self.short = False
        self.seen: NDArray[np.int64] | None = None
        self.tiles_taken = backend.zeros(1, "i8")
        self.largest_speed = backend.zeros(1, "i4")
        self.speed_unit = backend.zeros(1, "f4")
        self.jerk_factor = backend.zeros(1, "f8")
        self.exact = ExactUnits.of(softening, state.heaviest / units.mass)
        self.bounds = bounds(self.number, self.exact.length * softening)
        eps2 = np.float32((self.exact.length * softening) ** 2)
        self.scaled = (eps2, np.float32(self.exact.length), np.float32(self.exact.mass))

    @cached_property
    def for_short_chunks(self) -> CudaModule:
        """Return the same kernels for short chunks, which few runs have."""
        return CudaModule(self.backend, SOURCE, defines(short=True), OPTIONS)

    def look_at_chunks(self, state: State) -> None:
        """Choose the kernels for the current chunks; not while a graph is captured."""
        if self.seen is not None and np.array_equal(self.seen, state.orders):
            return
        self.seen = state.orders.copy()
        chunks = int(self.backend.download(state.chunks)[0])
        short = chunks > MOST_CHUNKS * -(-self.number // CHUNK)
        if short != self.short:
            self.short = short
            self.graphs = StepGraphs(self)  # captured ones hold the other kernels

    def _launch_symmetric(self, name: str, threads: int, *arguments: Any) -> None:
        """Launch a kernel of ``symmetric.cu``."""
        self.symmetric.launch(name, threads, THREADS, *arguments)

    # --- complete sums ----------------------------------------------------------------------------

    def accelerations(self, state: State) -> None:
        """Fill ``state.acceleration`` from the packed sources."""
        _finish(self.pair_accelerations(state))

    def prepare_force(self, state: State, number: int) -> None:
        """Pack the sources."""
        self.pack(state)

    def step_force(self, state: State, moves: Moves, number: int) -> None:
        """Fill ``state.acceleration`` from the packed sources, kick and drift, and pack again."""
        sums = self.pair_accelerations(state)
        if len(moves) > MOST_MOVES:
            _finish(sums)
            moves.perform(self, state)
        else:
            self._gather_and_move(sums, state, moves)
        self.pack(state)

    def _gather_and_move(self, sums: PairSums, state: State, moves: Moves) -> None:
        """Fill ``state.acceleration`` from the sums of all pairs; kick and drift."""
        sizes = (np.int32(self.slots), np.int32(sums.words), sums.scale)
        order = (state.order, state.chunks, state.starts)
        arrays = (self.tiles_taken, sums.by_slot, state.acceleration)
        copy = moves.copy or Motion(state.position, state.velocity)  # not written to, then
        motions = (state.position, state.velocity, copy.position, copy.velocity)
        given = (*sizes, *order, moves.argument, *arrays, *motions)
        self._launch_symmetric("gather_and_move", self.slots, *given)

    def accelerations_and_jerks(self, state: State, velocity: Array, jerk: Array) -> None:
        """Fill ``state.acceleration`` and `jerk`, (n, 3), from the velocities of all bodies."""
        _finish(self.pair_jerks(state, velocity, jerk))

    def potential(self, state: State, result: Array) -> None:
        """Fill `result`, (n,), with the potential at this rank's bodies."""
        _finish(self.pair_potential(state, result))

    def run(self, state: State, plan: StepPlan, steps: int) -> Callable[[], float]:
        """Queue whole steps of a rank that owns every body; see `gpu.Kernels.run`."""
        self.look_at_chunks(state)
        return super().run(state, plan, steps)

    def run_with_copies(
        self, state: State, plan: StepPlan, steps: int, copies: StateCopies
    ) -> Callable[[], float]:
        """Queue whole steps, and copies of the state; see `gpu.Kernels.run_with_copies`."""
        self.look_at_chunks(state)
        return super().run_with_copies(state, plan, steps, copies)

    # --- sums over this rank's pairs --------------------------------------------------------------

    def shared_sums(
        self, state: State, memory: Addresses, partition: Partition, rank: int
    ) -> PeerSums:
        """Return how GPUs of one host add up their sums; collective."""
        return PeerSums(self, state, PeerRows(self.backend, memory, partition, rank))

    def pair_accelerations(self, state: State) -> PairSums:
        """Sum accelerations over this rank's pairs; the result is ``state.acceleration``."""
        name = self._accelerations(state)
        exact = self.exact
        unit = exact.accelerations if state.common_mass is None else exact.weights
        scale = self._scale(state) / unit
        return self._sum_pairs(name, state, self.packed, scale, state.acceleration)

    def pair_jerks(self, state: State, velocity: Array, jerk: Array) -> PairSums:
        """Sum accelerations and jerks; `finish` fills ``state.acceleration`` and `jerk`."""
        moving, relative = self._pack_moving(state, velocity)
        self._choose_speed_unit(relative)
        both = self.workspace.array("accelerations and jerks", (len(jerk), 6), "f8")
        scale = np.float64(self.acceleration_unit / self.exact.accelerations)
        sums = self._sum_pairs("accelerations_and_jerks", state, moving, scale, both)

        def take_apart() -> None:
            state.acceleration[:] = both[:, :3]
            self.backend.xp.multiply(both[:, 3:], self.jerk_factor, out=jerk)

        return replace(sums, complete=take_apart)

    def _choose_speed_unit(self, velocity: Array) -> None:
        """Choose the unit in which no component of a velocity exceeds 1, on the device."""
        size = velocity.size
        self._launch_symmetric(
            "find_largest_speed", size, np.int32(size), self.speeds, velocity, self.largest_speed
        )
        length = np.float64(self.exact.length / self.units.length * self.units.speed)
        units = (self.speed_unit, self.jerk_factor)
        self._launch_symmetric("set_speed_unit", 1, length, self.largest_speed, *units)

    def pair_potential(self, state: State, result: Array) -> PairSums:
        """Sum potentials; `finish` fills `result`."""
        scale = np.float64(self.units.potentials(self.pair_force.G) / self.exact.potentials)
        return self._sum_pairs("potentials", state, self.packed, scale, result)

    def _sum_pairs(
        self, name: str, state: State, packed: Array, scale: np.float64, result: Array
    ) -> PairSums:
        """Sum over this rank's pairs; `result` is for the sums at its own bodies, times `scale`."""
        self.look_at_chunks(state)
        words = WORDS[name]
        rows = COMPONENTS[name] * words
        # zero at first; who takes the sums clears them
        by_slot = self.workspace.array("sums", (rows, self.slots), "f8")
        self._launch_tiles(name, state, packed, (self.tiles_taken, by_slot))
        shape = (self.number, COMPONENTS[name], words)

        def gather() -> Array:
            totals = self.workspace.array("totals", shape, "f8")
            sizes = (np.int32(self.slots), np.int32(rows))
            order = (state.order, state.chunks, state.starts)
            arrays = (self.tiles_taken, by_slot, totals)
            self._launch_symmetric("gather", self.slots, *sizes, *order, *arrays)
            return totals

        def combine(own: Array) -> None:
            sizes = (np.int32(result.size), np.int32(words))
            self._launch_symmetric("combine", result.size, *sizes, scale, own, result)

        scratch = self.workspace.array("own totals", (self.owned, rows), "f8")
        return PairSums(by_slot, words, scale, result, scratch, gather, combine)

    def _launch_tiles(
        self, name: str, state: State, packed: Array, sums: tuple[Array, Array]
    ) -> None:
        """Launch the kernel that sums over this rank's tiles of pairs."""
        share = (np.int32(state.own.start), np.int32(state.own.stop), np.int32(self.number))
        bodies = (self.speed_unit, state.chunks, state.starts, self.origin, packed)
        module = self.for_short_chunks if self.short else self.symmetric
        exact = (*rounders(self.bounds[name]), np.int32(self.slots))
        arguments = (*share, *self.scaled, *bodies, *exact, *sums)
        module.launch_grid(name, (self.blocks,), (THREADS,), arguments)


def _finish(sums: PairSums) -> None:
    """Fill the result where no other rank has sums to add."""
    sums.finish(sums.gather())
