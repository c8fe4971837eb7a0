"""Gravity that computes each pair of bodies once, on one of the ranks."""

from hybrid_nbody.nbody.forces.direct import Gravity
from hybrid_nbody.nbody.kernels import make_symmetric_kernels
from hybrid_nbody.nbody.kernels.gpu.exact_sums import suits


class PairGravity(Gravity):
    """Direct summation over all pairs, each computed once for both its bodies; parameters as in `Gravity`.

    A rank computes a share of the pairs, which add to the sums of bodies of all ranks; then the
    ranks add up. Sums are exact (`hybrid_nbody.nbody.kernels.gpu.exact_sums`): neither their order
    nor the shares change a bit.
    """

    def _kernels(self, pair_force):
        return make_symmetric_kernels(self.backend, self.state, pair_force)

    def _sum(self, laps, name, *arguments):
        """Let a kernel sum over this rank's pairs, and bring the sums of all ranks together."""
        sums = getattr(self.kernels, f"pair_{name}")(*arguments)
        laps.lap("force")
        own = self.exchange.add_up(sums.totals, sums.scratch)
        laps.lap("exchange")
        sums.finish(own)
        laps.lap("force")


def gravity_for(kinds, precision: str, masses, softening: float) -> type[Gravity]:
    """Return the kind of gravity for ranks that hold the positions of all bodies: `PairGravity` where it is faster.

    Parameters
    ----------
    kinds : sequence of str
        The kinds of all ranks' backends.
    precision, masses, softening
        See `hybrid_nbody.nbody.kernels.gpu.exact_sums.suits`.
    """
    return PairGravity if suits(kinds, precision, masses, softening) else Gravity
