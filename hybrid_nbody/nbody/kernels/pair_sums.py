"""The contract of kernels that compute each pair once, for both of its bodies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.kernels.contract import Kernels
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import State
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.peer_barrier import Addresses


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class PairSums:
    """Sums over this rank's share of the pairs, before those of the other ranks are added.

    Attributes
    ----------
    by_slot : (components * words, slots) array of float64
        Partial sums at all bodies, as the kernels of pairs leave them.
    words : int
        Words of a sum of one component.
    scale : float64
        What complete sums are multiplied with.
    result : (n, components) array of float64
        Takes the products, of this rank's bodies.
    scratch : (n, components * words) array of float64
        Memory for the sums of all ranks at this rank's bodies.
    gather : callable
        Returns the partial sums in the order of the bodies, (N, components, words), and clears
        `by_slot`.
    combine : callable
        Takes the sums of all ranks at this rank's bodies and fills `result`.
    complete : callable
        Does what is left to do when `result` is filled.
    """

    by_slot: Array
    words: int
    scale: float
    result: Array
    scratch: Array
    gather: Callable[[], Array]
    combine: Callable[[Array], None]
    complete: Callable[[], None] = nothing

    def finish(self, own: Array) -> None:
        """Fill the result from the sums of all ranks at this rank's bodies."""
        self.combine(own)
        self.complete()


class SharedSums(Protocol):
    """The memory of the devices of all ranks, in which they add up sums; collective.

    Positions of a rank must not be replaced while it may still read them: `wait` after that.
    """

    def collect(self, rows: Array) -> None:
        """Fill the rows of the other ranks in `rows`, (N, 3), of which this rank's are valid."""

    def add_up(self, sums: PairSums) -> None:
        """Fill the ``result`` of all ranks with the sums of all, and clear ``by_slot``."""

    def wait(self) -> None:
        """Let what the device does next wait for the devices of all ranks."""

    def run(self, state: State, plan: StepPlan, steps: int) -> None:
        """Queue whole steps."""


class SymmetricKernels(Kernels, Protocol):
    """Kernels that compute each pair once: between two passes the ranks add up their sums.

    Attributes
    ----------
    short : bool
        Whether they are those for short chunks: a recorded step is one of these or of the others.
    """

    short: bool

    def shared_sums(
        self, state: State, memory: Addresses, partition: Partition, rank: int
    ) -> SharedSums:
        """Return how this rank adds up sums with the others in the memory of all; collective."""

    def pair_accelerations(self, state: State) -> PairSums:
        """Sum accelerations over this rank's pairs; the result is ``state.acceleration``."""

    def pair_jerks(self, state: State, velocity: Array, jerk: Array) -> PairSums:
        """Sum accelerations and jerks; `finish` fills ``state.acceleration`` and `jerk`."""

    def pair_potential(self, state: State, result: Array) -> PairSums:
        """Sum potentials; `finish` fills `result`."""
