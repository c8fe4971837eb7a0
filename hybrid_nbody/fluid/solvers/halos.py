"""Halo planes that ranks provide between the passes of a solve."""

import sys
from typing import Protocol

from hybrid_nbody.fluid.kernels.contract import Kernels, Pass, PassSolve, PeerPlanes
from hybrid_nbody.parallel.exchange.halo import FullGrid, HaloExchange


class PassHalo(Protocol):
    """Actions before, between and after the passes of a solve."""

    def begin(self, solve: PassSolve) -> None:
        """Provide the right-hand side, and all else that is constant during the solve."""

    def before(self, step: Pass) -> None:
        """Provide the planes of its source that a pass reads."""

    def after(self, step: Pass, solve: PassSolve) -> None:
        """Let the ranks agree on what a pass changed, and see its target."""

    def finish(self, solve: PassSolve) -> None:
        """Fill the halo planes of the solution."""


Halo = HaloExchange | FullGrid
"""How ranks see each other's planes."""


class OwnGrid:
    """The planes of a rank that owns all of them.

    Parameters
    ----------
    halo : HaloExchange or FullGrid
        Fills the halo planes of solutions.
    """

    def __init__(self, halo: Halo):
        self.halo = halo

    def begin(self, solve: PassSolve) -> None:
        """Do nothing: there are no other ranks."""

    def before(self, step: Pass) -> None:
        """Do nothing."""

    def after(self, step: Pass, solve: PassSolve) -> None:
        """Do nothing."""

    def finish(self, solve: PassSolve) -> None:
        """See `PassHalo`."""
        self.halo.fill(*solve.x)


class ExchangedPlanes:
    """Planes that are sent before every pass.

    Parameters
    ----------
    halo : HaloExchange
        Carries them.
    depth : int
        Planes of the right-hand side beyond each end that a pass reads.
    """

    def __init__(self, halo: HaloExchange, depth: int):
        self.halo = halo
        self.depth = depth

    def begin(self, solve: PassSolve) -> None:
        """See `PassHalo`."""
        self.halo.fill(*solve.b, depth=self.depth)

    def before(self, step: Pass) -> None:
        """See `PassHalo`; an iteration reads two planes."""
        if step.source is not None:
            self.halo.fill(*step.source, depth=2 * step.iterations)

    def after(self, step: Pass, solve: PassSolve) -> None:
        """See `PassHalo`."""
        if solve.solve.watched:
            self.halo.maximum(solve.changed(step))

    def finish(self, solve: PassSolve) -> None:
        """See `PassHalo`."""
        self.halo.fill(*solve.x)


class PushedPlanes:
    """Planes that the kernels of each rank write into the memory of its neighbours.

    Parameters
    ----------
    halo : HaloExchange
        Fills the halo planes of a solution that is that of an earlier pass than the last.
    peers : PeerPlanes
    """

    def __init__(self, halo: HaloExchange, peers: PeerPlanes):
        self.halo = halo
        self.peers = peers

    def begin(self, solve: PassSolve) -> None:
        """See `PassHalo`."""
        self.peers.begin(solve)

    def before(self, step: Pass) -> None:
        """Do nothing: the neighbours have pushed what the pass reads."""

    def after(self, step: Pass, solve: PassSolve) -> None:
        """See `PassHalo`."""
        self.peers.after(step)

    def finish(self, solve: PassSolve) -> None:
        """See `PassHalo`; what the neighbours pushed last came to x with the rest."""
        if solve.solve.watched:
            self.halo.fill(*solve.x)


def pass_halo(kernels: Kernels, halo: Halo, allowed: bool = True) -> PassHalo | None:
    """Return how passes see the planes of other ranks; None where a rank allows no passes.

    Collective: all ranks agree on the length of passes.
    """
    longest = kernels.longest_pass if allowed else 0
    if isinstance(halo, FullGrid) or not halo.shared:
        return OwnGrid(halo) if longest else None
    longest = agree_on_passes(halo, longest)
    if not longest:
        return None
    kernels.longest_pass = longest
    memory = halo.transport.peers
    peers = memory and kernels.peer_planes(memory, halo.rank, halo.partition.counts)
    if peers:
        return PushedPlanes(halo, peers)
    return ExchangedPlanes(halo, kernels.pass_depth)


def agree_on_passes(halo: HaloExchange, longest: int) -> int:
    """Return the most iterations of a pass that every rank does; collective."""
    return min(halo.communicator.gather(longest))


class Onlooker:
    """Takes the place of a solver on a rank without planes: it is there when all ranks agree.

    Parameters
    ----------
    halo : HaloExchange or FullGrid
    """

    def __init__(self, halo: Halo):
        self.halo = halo
        self.agreed = False

    def solve(self, *_: object) -> None:
        """Agree to any length of passes, once; see `Solver`."""
        if not self.agreed and isinstance(self.halo, HaloExchange) and self.halo.shared:
            agree_on_passes(self.halo, sys.maxsize)
        self.agreed = True
