"""Sums over pairs that the GPUs of one host add up in each other's memory (``peer_sums.cu``).

Each GPU adds up a share of the slots and writes accelerations to the GPUs that own the bodies: the
sums travel once, and need no order of the bodies before.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.launch import FLUSH_DENORMALS, CudaModule, checksum
from hybrid_nbody.nbody.kernels.gpu.kernels import THREADS
from hybrid_nbody.nbody.kernels.gpu.peer_rows import PUSH_THREADS, PeerRows
from hybrid_nbody.nbody.kernels.gpu.steps import MOST_MOVES, Moves, StepGraphs
from hybrid_nbody.nbody.kernels.pair_sums import PairSums
from hybrid_nbody.nbody.precision import CHUNK
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import Sources, State
from hybrid_nbody.parallel.transport import peer_barrier

if TYPE_CHECKING:
    from hybrid_nbody.nbody.kernels.gpu.symmetric import Kernels

SOURCE = Path(__file__).with_name("peer_sums.cu")
HEADERS = (*peer_barrier.HEADERS, SOURCE.with_name("motion.cuh"))
OPTIONS = (*FLUSH_DENORMALS, f"-I{peer_barrier.FOLDER}", f"-I{SOURCE.parent}")

ADD_UP = {3: "add_up_accelerations", 6: "add_up_accelerations_and_jerks"}
"""Kernels by the components of their results."""

KERNELS = (*ADD_UP.values(), "clear", "move_and_push")
"""They are loaded before any rank waits for another one: CUDA may load a kernel only when the GPU
is idle."""


def defines(ranks: int) -> dict[str, int]:
    """Return the macros that compile ``peer_sums.cu`` for a number of ranks."""
    return {
        "CHUNK": CHUNK,
        "THREADS": THREADS,
        "MOST_MOVES": MOST_MOVES,
        "RANKS": ranks,
        "HEADERS": checksum(HEADERS),
    }


class PeerSums:
    """The sums of all GPUs of a host; see `hybrid_nbody.nbody.kernels.pair_sums.SharedSums`.

    Parameters
    ----------
    kernels : Kernels
        This rank's.
    sources : Sources
        What they sum over.
    rows : PeerRows
        The rows of all ranks' bodies.
    """

    def __init__(self, kernels: "Kernels", sources: Sources, rows: PeerRows):
        backend = kernels.backend
        self.kernels = kernels
        self.sources = sources
        self.rows = rows
        self.first_bodies = backend.upload(np.array(rows.partition.offsets, "i4"))
        self.no_result = backend.zeros(1, "f8")
        self.graphs: dict[bool, StepGraphs] = {}  # for short chunks, and for others
        self.module = CudaModule(backend, SOURCE, defines(rows.ranks), OPTIONS)
        self.module.load(*KERNELS)

    def wait(self) -> None:
        """See `SharedSums`."""
        self.rows.wait()

    def collect(self, rows: Array) -> None:
        """See `SharedSums`."""
        self.rows.push(rows)

    def add_up(self, sums: PairSums) -> None:
        """Add up the sums of all ranks, and clear this rank's when all have read them."""
        self._add_up(sums)
        self.module.launch("clear", sums.by_slot.shape[1], THREADS, *self._cleared(sums))

    def _add_up(self, sums: PairSums) -> None:
        """Add up the sums of all ranks; all have read them when it ends."""
        rows, slots = sums.by_slot.shape
        sources = self.sources
        share = (slots // CHUNK // self.rows.ranks + 1) * CHUNK
        order = (sources.order, sources.chunks, sources.starts)
        addresses = (self.rows.addresses(sums.by_slot), self._results(sums), self.first_bodies)
        self.module.launch(
            ADD_UP[rows // sums.words],
            share,
            THREADS,
            *(self.rows.barrier.argument, np.int32(slots), sums.scale, *order, *addresses),
        )

    def _cleared(self, sums: PairSums) -> tuple[Any, ...]:
        """Return what kernels clear of this rank."""
        rows, slots = sums.by_slot.shape
        sizes = (np.int32(slots), np.int32(rows), self.sources.chunks)
        return (*sizes, self.kernels.tiles_taken, sums.by_slot)

    # --- whole steps ------------------------------------------------------------------------------

    def run(self, state: State, plan: StepPlan, steps: int) -> None:
        """See `SharedSums`."""
        self.kernels.look_at_chunks(state)
        short = self.kernels.short
        if short not in self.graphs:
            self.graphs[short] = StepGraphs(self.kernels, self)  # captured ones hold the kernels
        self.graphs[short].run(state, plan, steps)

    def prepare_force(self, state: State, number: int) -> None:
        """Share the positions and pack the sources."""
        self.collect(state.position)
        self.kernels.pack(state)

    def step_force(self, state: State, moves: Moves, number: int) -> None:
        """Fill ``state.acceleration`` of all ranks, kick and drift, share positions and pack."""
        sums = self.kernels.pair_accelerations(state)
        if len(moves) > MOST_MOVES:
            self.add_up(sums)
            moves.perform(self.kernels, state)
            self.collect(state.position)
        else:
            self._add_up(sums)
            self._move_and_push(sums, state, moves)
        self.kernels.pack(state)

    def _move_and_push(self, sums: PairSums, state: State, moves: Moves) -> None:
        """Kick, drift, share positions and clear the sums, in one kernel."""
        bodies = (self.rows.addresses(state.position), state.velocity, state.acceleration)
        numbers = (np.int32(3 * self.rows.own.start), np.int32(state.velocity.size))
        motion = (np.int32(self.rows.rank), *numbers, moves.argument, *bodies)
        given = (*motion, *self._cleared(sums), self.rows.barrier.argument)
        self.module.launch("move_and_push", PUSH_THREADS, THREADS, *given)

    def _results(self, sums: PairSums) -> Array:
        """Return where each rank has the results; one without bodies has none, and is not asked."""
        result = sums.result if sums.result.size else self.no_result
        return self.rows.addresses(result, ("result", sums.by_slot.data.ptr))
