"""The direct sum with each pair of bodies computed once, on one of the ranks."""

from collections.abc import Callable
from functools import cached_property

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.forces.direct import DirectForce
from hybrid_nbody.nbody.kernels import make_symmetric_kernels
from hybrid_nbody.nbody.kernels.pair_sums import PairSums, SharedSums, SymmetricKernels
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.step_timer import NullTimer, Timer


class SymmetricForce(DirectForce):
    """Direct summation over all pairs, each computed once for both of its bodies.

    A rank computes a share of the pairs, which contribute to the sums at bodies of all ranks; then
    the ranks add up their sums. These are exact
    (`hybrid_nbody.nbody.kernels.gpu.exact_sums`), so that neither their order nor the shares change
    a bit. Parameters are those of `DirectForce`.
    """

    kernels: SymmetricKernels
    recorded_short = False

    def _make_kernels(self) -> SymmetricKernels:
        return make_symmetric_kernels(self.backend, self.state, self.pair_force)

    @cached_property
    def shared(self) -> SharedSums | None:
        """Return how ranks add up sums in the memory of all their devices; None where they cannot.

        The first call is collective.
        """
        peers = None if self.exchange.alone else self.exchange.transport.peers
        if peers is None:
            return None
        shares = (self.exchange.partition, self.exchange.rank)
        return self.kernels.shared_sums(self.state, peers, *shares)

    def _collect(self) -> None:
        if self.shared:
            self.shared.collect(self.state.position)
        else:
            super()._collect()

    def _order_anew(self) -> None:
        super()._order_anew()
        if self.shared:
            self.shared.wait()  # the order of other ranks may depend on positions that come next

    def _sum_accelerations(self, timer: Timer) -> None:
        self._add_up(self.kernels.pair_accelerations(self.state), timer)

    def _sum_jerks(self, jerk: Array, timer: Timer) -> None:
        self._add_up(self.kernels.pair_jerks(self.state, self.velocities, jerk), timer)

    def _sum_potential(self, result: Array) -> None:
        self._exchange(self.kernels.pair_potential(self.state, result), NullTimer())

    def _repeat(self, plan: StepPlan, steps: int) -> None:
        if not self.shared:
            super()._repeat(plan, steps)
        elif steps:
            self.shared.run(self.state, plan, steps)

    def _recorded_step(self, plan: StepPlan) -> Callable[[], None]:
        """Return a recorded step with the kernels for the current chunks."""
        if self.recorded_short != self.kernels.short:
            self.recorded_short = self.kernels.short
            self.recorded.clear()
        return super()._recorded_step(plan)

    def _add_up(self, sums: PairSums, timer: Timer) -> None:
        """Add the sums of all ranks between the two passes of the kernels."""
        if self.shared is None:
            self._exchange(sums, timer)
            return
        timer.record("force")
        self.shared.add_up(sums)
        timer.record("exchange")
        sums.complete()
        timer.record("force")

    def _exchange(self, sums: PairSums, timer: Timer) -> None:
        """Add the sums of all ranks by messages."""
        totals = sums.gather()
        timer.record("force")
        own = self.all_rows.reduce_scatter(totals, sums.scratch)
        timer.record("exchange")
        sums.finish(own)
        timer.record("force")
