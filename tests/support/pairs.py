"""The direct sum with each pair computed once, in NumPy: the kernels of a GPU on any machine."""

import numpy as np

from hybrid_nbody.nbody.forces.symmetric import SymmetricForce
from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.kernels.cpu import kernels as cpu
from hybrid_nbody.nbody.kernels.gpu.exact_sums import bounds, rounders
from hybrid_nbody.nbody.kernels.pair_sums import PairSums


def pairs_of_chunks(chunks):
    """Return the pairs of chunks in the order of ``symmetric.cu``."""
    return [
        (i % chunks, (i % chunks + i // chunks) % chunks) for i in range(chunks * (chunks + 1) // 2)
    ]


def add_exactly(value, by, sums):
    """Add to sums, (..., words), as ``symmetric.cu`` does."""
    for word in range(sums.shape[-1]):
        multiple = (value + by[word]) - by[word]
        sums[..., word] += multiple
        value = value - multiple


def sums_of(totals, scratch, combine):
    """Return sums that are in the order of the bodies from the start."""
    return PairSums(
        by_slot=totals,
        words=totals.shape[2],
        scale=1.0,
        result=scratch,
        scratch=scratch,
        gather=lambda: totals,
        combine=combine,
    )


class Kernels(cpu.Kernels):
    """Accelerations in float64 by pairs, of softened bodies; other sums are those of the CPU."""

    short = False

    def __init__(self, backend, state, pair_force):
        super().__init__(backend, state, pair_force)
        self.softening, self.scale = pair_force.softening, pair_force.G
        largest = bounds(len(state.mass), pair_force.softening)["accelerations"]
        self.by = rounders(state.heaviest * largest)

    def accelerations(self, state):
        """Fill the accelerations where no other rank has sums to add."""
        sums = self.pair_accelerations(state)
        sums.finish(sums.gather())

    def pair_accelerations(self, state):
        """Sum over this rank's share of the pairs of chunks."""
        number, chunks, own = len(state.mass), int(state.chunks[0]), state.own
        totals = np.zeros((number, 3, 3))
        pairs = pairs_of_chunks(chunks)
        first, last = (len(pairs) * end // number for end in (own.start, own.stop))
        for pair in pairs[first:last]:
            self._meet(
                state,
                *(state.order[state.starts[chunk] : state.starts[chunk + 1]] for chunk in pair),
                totals,
            )

        def combine(mine):
            state.acceleration[:] = self.scale * mine.sum(axis=2)

        return sums_of(totals, np.zeros((own.stop - own.start, 3, 3)), combine)

    def _meet(self, state, targets, sources, totals):
        d = state.position[sources][None] - state.position[targets][:, None]
        forces = d / (np.sum(d * d, axis=2) + self.softening**2)[..., None] ** 1.5
        to_targets = np.sum(state.mass[sources][None, :, None] * forces, axis=1)
        for body, value in zip(targets, to_targets, strict=True):
            add_exactly(value, self.by, totals[body])
        if targets is not sources and not np.array_equal(targets, sources):
            for body, value in zip(
                sources, -np.sum(state.mass[targets][:, None, None] * forces, axis=0), strict=True
            ):
                add_exactly(value, self.by, totals[body])

    def run(self, state, plan, steps):
        """Do whole steps of a rank that owns every body."""
        for _ in range(steps):
            plan.perform(KernelActions(self, state))
        return 0.0

    def pair_potential(self, state, result):
        """Sum over all sources at the bodies of this rank, as on the CPU."""
        own = np.zeros((len(result), 1, 1))
        return sums_of(
            np.zeros((len(state.mass), 1, 1)), own, lambda _: self.potential(state, result)
        )


class SlowSymmetricForce(SymmetricForce):
    """`SymmetricForce` with these kernels."""

    def _make_kernels(self):
        return Kernels(self.backend, self.state, self.pair_force)
