"""Forces of many bodies in pieces, between which Python hears a Ctrl-C."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybrid_nbody.backends.simd import BLOCK

if TYPE_CHECKING:
    from hybrid_nbody.nbody.kernels.cpu.kernels import Kernels
    from hybrid_nbody.nbody.state import State

PIECE = 2.5e9
"""Interactions of a piece on each thread: it takes 0.5 to 1.5 seconds."""


def is_long(targets: int, sources: int, threads: int) -> bool:
    """Return whether a force takes more than a piece."""
    return targets * sources > PIECE * threads


def pieces(targets: int, sources: int, threads: int) -> Iterator[slice]:
    """Yield the targets of each piece: whole blocks, so that no sum changes.

    Parameters
    ----------
    targets, sources : int
        Bodies at which forces are computed, and bodies that exert them.
    threads : int
    """
    blocks = max(int(PIECE * threads / max(sources, 1) / BLOCK), threads)
    step = blocks * BLOCK
    for first in range(0, targets, step):
        yield slice(first, min(first + step, targets))


class LongSteps:
    """The actions of a step of a rank that owns every body; see `StepPlan.perform`.

    Parameters
    ----------
    kernels : Kernels
    state : State
        Advanced in place.

    Attributes
    ----------
    seconds : float
        Spent in forces so far.
    """

    def __init__(self, kernels: "Kernels", state: "State") -> None:
        self.kernels = kernels
        self.state = state
        self.seconds = 0.0

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self.kernels.kick(self.state, duration)

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self.kernels.drift(self.state, duration)

    def force(self) -> None:
        """Compute the accelerations: a = a(x)."""
        start = time.perf_counter()
        self.kernels.pack(self.state)
        self.kernels.accelerations(self.state)
        self.seconds += time.perf_counter() - start
