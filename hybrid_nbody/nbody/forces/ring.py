"""Gravity whose sources go around: no rank holds more than its own bodies and two blocks of others."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybrid_nbody.nbody.forces.direct import Gravity
from hybrid_nbody.nbody.forces.sources import Order, heads_of
from hybrid_nbody.nbody.kernels import make_kernels
from hybrid_nbody.nbody.kernels.precision import chunk_capacity
from hybrid_nbody.nbody.state import State, make_own_state
from hybrid_nbody.nbody.timing import NoLaps


@dataclass(frozen=True)
class Block:
    """The bodies of one rank as they travel: float64 on every backend and in every precision, in one piece of memory.

    Attributes
    ----------
    memory : (bytes,) array of uint8
        All of the following, which is what is sent.
    position : (capacity, 3) array of float64
    mass : (capacity,) array of float64
    order : (capacity,) array of int32
    starts : (chunk capacity + 1,) array of int32
    chunks : (1,) array of int32
        As in `State`, of the rank's own bodies; what lies beyond them has no meaning.
    """

    memory: Any
    position: Any
    mass: Any
    order: Any
    starts: Any
    chunks: Any

    @classmethod
    def make(cls, backend, capacity: int) -> "Block":
        """Return a block with room for `capacity` bodies."""
        starts = chunk_capacity(capacity) + 1
        sizes = [
            (3 * capacity, "f8"),
            (capacity, "f8"),
            (capacity, "i4"),
            (starts, "i4"),
            (1, "i4"),
        ]
        ends = np.cumsum([0, *(size * np.dtype(kind).itemsize for size, kind in sizes)]).tolist()
        memory = backend.zeros(ends[-1], "u1")
        parts = [memory[start:end] for start, end in zip(ends, ends[1:], strict=False)]
        position, *others = (part.view(kind) for part, (_, kind) in zip(parts, sizes, strict=True))
        return cls(memory, position.reshape(capacity, 3), *others)

    def fill(self, state: State) -> None:
        """Take the bodies of `state`."""
        number = len(state.mass)
        for name in ("position", "mass", "order", "chunks"):
            getattr(self, name)[: len(getattr(state, name))] = getattr(state, name)
        self.starts[: len(state.starts)] = state.starts
        self.starts[len(state.starts) :] = number


class RingGravity(Gravity):
    """Direct summation over all pairs while blocks of sources go around all ranks; parameters as in `Gravity`.

    A rank sums over its own bodies first, then over those of the rank before it, and so on. While
    it sums over a block it hands that on to the next rank and takes another one: messages travel
    beside the sums. The order of a sum depends on the shares, and so do the last bits of an
    acceleration; for the same shares they are always the same.

    Parameters
    ----------
    exchange : RingExchange
        The ranks before and after this one.
    state : State
        This rank's bodies alone, from `make_own_state`.
    """

    make_state = staticmethod(make_own_state)

    def _kernels(self, pair_force):
        """Return kernels with room for any rank's block, once there are blocks."""
        state = self.state
        capacity = max(self.exchange.partition.counts)
        self.blocks = [Block.make(self.backend, capacity) for _ in range(2)]
        self.more = self.backend.zeros(state.acceleration.shape, "f8")
        nowhere = self.backend.zeros(state.source_index.shape, "i4")
        nowhere[:] = -1  # a body meets itself in its own block alone
        self.own_sum = over(self.blocks[0], state)
        others = replace(state, source_index=nowhere, acceleration=self.more)
        self.other_sums = [over(block, others) for block in self.blocks]
        return make_kernels(self.backend, self.own_sum, pair_force)

    # --- the order of the sources -----------------------------------------------------------------

    def restart(self, order_rows, head_rows, concatenate):
        """See `Gravity`; an order that was saved with other shares is left aside, and a new one made."""
        local = order_rows - np.int32(self.exchange.own.start)
        own = np.array_equal(np.sort(local), np.arange(len(local)))
        self.start(Order.from_heads(local, head_rows) if own else None)

    def order_rows(self, first, last):
        """See `Gravity`: the own bodies in their own order."""
        return self.backend.download(self.state.order[first:last]) + np.int32(
            self.exchange.own.start
        )

    def head_rows(self, first, last):
        """See `Gravity`."""
        return heads_of(self.backend.download(self.state.starts), first, last)

    def _new_order(self):
        """Return the order of the own bodies, which no other rank needs to find."""
        return self._order_found_here()

    def _collect(self):
        """Do nothing: positions of others come when they are summed over."""

    # --- sums -------------------------------------------------------------------------------------

    def _force(self, laps):
        """Compute accelerations from all blocks."""
        total = self.state.acceleration
        for sum_over in self._blocks_going_around(laps):
            self.kernels.accelerations(sum_over)
            if sum_over is not self.own_sum:
                self.backend.xp.add(total, self.more, out=total)

    def potential(self):
        """See `Gravity`."""
        total, more = (self.backend.zeros(len(self.state.velocity), "f8") for _ in range(2))
        for sum_over in self._blocks_going_around(NoLaps()):
            self.kernels.potential(sum_over, total if sum_over is self.own_sum else more)
            if sum_over is not self.own_sum:
                total += more
        return total

    def _blocks_going_around(self, laps):
        """Yield what to sum over, packed: the own block, then that of the rank before, as it arrives, and so on."""
        last = self.exchange.partition.size - 1
        self.blocks[0].fill(self.state)
        for turn in range(last + 1):
            here = self.blocks[turn % 2]
            there = self.blocks[(turn + 1) % 2]
            laps.lap("force")
            messages = self.exchange.begin(here.memory, there.memory) if turn < last else None
            laps.lap("exchange")
            self.kernels.pack(here)
            yield self.other_sums[turn % 2] if turn else self.own_sum
            laps.lap("force")
            if messages:
                messages.finish()
                laps.lap("exchange")


def over(block: Block, state: State) -> State:
    """Return a state to sum over a block at the bodies of `state`."""
    return replace(
        state, mass=block.mass, order=block.order, starts=block.starts, chunks=block.chunks
    )
