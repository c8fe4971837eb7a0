"""The direct sum whose sources go around the ranks: each holds its own bodies and two blocks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.forces.direct import DirectForce
from hybrid_nbody.nbody.kernels import make_kernels
from hybrid_nbody.nbody.kernels.contract import Kernels
from hybrid_nbody.nbody.precision import chunk_capacity
from hybrid_nbody.nbody.sources import Order, heads_of
from hybrid_nbody.nbody.state import Sources, State, make_own_state
from hybrid_nbody.nbody.step_timer import NullTimer, Timer
from hybrid_nbody.parallel.exchange.ring import RingExchange


@dataclass(frozen=True)
class Block(Sources):
    """The bodies of one rank as they travel, float64 on every backend, in one piece of memory.

    Rows beyond the bodies of that rank have no meaning.

    Attributes
    ----------
    memory : (bytes,) array of uint8
        All of the other arrays, which is what is sent.
    """

    memory: Array

    @classmethod
    def make(cls, backend: Backend, capacity: int) -> "Block":
        """Return a block for at most `capacity` bodies."""
        starts = chunk_capacity(capacity) + 1
        parts = {
            "position": (3 * capacity, "f8"),
            "mass": (capacity, "f8"),
            "order": (capacity, "i4"),
            "starts": (starts, "i4"),
            "chunks": (1, "i4"),
        }
        sizes = [length * np.dtype(dtype).itemsize for length, dtype in parts.values()]
        ends = np.cumsum(sizes).tolist()
        memory = backend.zeros(ends[-1], "u1")
        arrays = {
            name: memory[end - size : end].view(dtype)
            for (name, (_, dtype)), size, end in zip(parts.items(), sizes, ends, strict=True)
        }
        arrays["position"] = arrays["position"].reshape(capacity, 3)
        return cls(memory=memory, **arrays)

    def fill(self, state: State) -> None:
        """Copy the sources of `state`."""
        for name in ("position", "mass", "order", "chunks"):
            getattr(self, name)[: len(getattr(state, name))] = getattr(state, name)
        self.starts[: len(state.starts)] = state.starts
        self.starts[len(state.starts) :] = len(state.mass)

    def sources_of(self, state: State) -> State:
        """Return `state` with the sources of this block in the place of its own."""
        return replace(
            state, mass=self.mass, order=self.order, starts=self.starts, chunks=self.chunks
        )


class RingForce(DirectForce):
    """Direct summation over all pairs while blocks of sources go around the ranks.

    A rank sums over its own bodies first, then over those of the rank before it, and so on. While
    it sums over a block, the block travels on to the next rank and another one arrives. The order
    of a sum, and with it the last bits of an acceleration, depends on the shares; for the same
    shares they are always the same. Parameters are those of `DirectForce`, with a `RingExchange`.
    """

    massive = None

    def _make_state(self, mass: NDArray[np.float64]) -> State:
        return make_own_state(self.backend, self.exchange.own, mass)

    def _make_kernels(self) -> Kernels:
        """Return kernels that hold the sources of any rank's block."""
        state = self.state
        capacity = max(self.exchange.partition.counts)
        self.blocks = [Block.make(self.backend, capacity) for _ in range(2)]
        self.others = self.backend.zeros(state.acceleration.shape, "f8")
        not_a_source = self.backend.zeros(state.source_index.shape, "i4")
        not_a_source[:] = -1  # a body is among the sources of its own block alone
        elsewhere = replace(state, source_index=not_a_source, acceleration=self.others)
        self.own_sources = self.blocks[0].sources_of(state)
        self.others_sources = [block.sources_of(elsewhere) for block in self.blocks]
        return make_kernels(self.backend, self.own_sources, self.pair_force)

    @cached_property
    def ring(self) -> RingExchange:
        """Return the exchange, by which blocks go around the ranks."""
        if not isinstance(self.exchange, RingExchange):
            raise TypeError(f"{type(self).__name__} needs a RingExchange")
        return self.exchange

    # --- sums -------------------------------------------------------------------------------------

    def accelerations(self, timer: Timer) -> None:
        """Compute accelerations from all blocks."""
        total = self.state.acceleration
        for state in self._blocks_going_around(timer):
            self.kernels.accelerations(state)
            if state is not self.own_sources:
                self.backend.xp.add(total, self.others, out=total)

    def potential(self) -> Array:
        """Return the potential of all blocks at this rank's bodies."""
        total = self.backend.zeros(len(self.state.velocity), "f8")
        others = self.backend.zeros(len(self.state.velocity), "f8")
        for state in self._blocks_going_around(NullTimer()):
            if state is self.own_sources:
                self.kernels.potential(state, total)
            else:
                self.kernels.potential(state, others)
                total += others
        return total

    def _blocks_going_around(self, timer: Timer) -> Iterator[State]:
        """Yield, block by block, the state whose sources are that block: this rank's own first."""
        last = self.exchange.partition.size - 1
        self.blocks[0].fill(self.state)
        for turn in range(last + 1):
            current = self.blocks[turn % 2]
            incoming = self.blocks[(turn + 1) % 2]
            timer.record("force")
            messages = None
            if turn < last:
                messages = self.ring.begin(current.memory, incoming.memory)
            timer.record("exchange")
            self.kernels.pack(current)
            yield self.others_sources[turn % 2] if turn else self.own_sources
            timer.record("force")
            if messages:
                messages.finish()
                timer.record("exchange")

    def _collect(self) -> None:
        """Do nothing: positions of others arrive while they are summed over."""

    # --- the order of the sources -----------------------------------------------------------------

    def _new_order(self) -> Order:
        """Return the order of the own bodies, which no other rank needs to find."""
        return self._local_order()

    def restore(self, rows: Callable[[str], NDArray[Any]], scalars: Mapping[str, float]) -> None:
        """Start in the saved order, or in a new one if that was saved with other shares."""
        local = rows("gravity/order") - np.int32(self.exchange.own.start)
        same_shares = np.array_equal(np.sort(local), np.arange(len(local)))
        heads = rows("gravity/chunk_head")
        self._restart(Order.from_heads(local, heads) if same_shares else None)

    def order_rows(self, first: int, last: int) -> NDArray[np.int32]:
        """Return rows of the own bodies in summing order, as numbers of all bodies."""
        own: NDArray[np.int32] = self.backend.download(self.state.order[first:last])
        return own + np.int32(self.exchange.own.start)

    def head_rows(self, first: int, last: int) -> NDArray[np.uint8]:
        """Return whether a chunk of the own bodies starts at each of these rows."""
        return heads_of(self.backend.download(self.state.starts), first, last)
