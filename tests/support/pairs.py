"""Gravity that computes each pair once, in NumPy: what the kernels of a GPU do, slowly, on any machine."""

import numpy as np

from hybrid_nbody.nbody.forces.symmetric import PairGravity
from hybrid_nbody.nbody.kernels.cpu import kernels as cpu
from hybrid_nbody.nbody.kernels.gpu.exact_sums import bounds, rounders
from hybrid_nbody.nbody.kernels.gpu.symmetric import nothing_to_add


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


class Kernels(cpu.Kernels):
    """Accelerations in float64 by pairs, of softened bodies; the other sums are those of the twin."""

    def __init__(self, backend, state, precision, softening, G):
        super().__init__(backend, state, precision, softening, G)
        self.softening, self.scale = softening, G
        self.by = rounders(state.heaviest * bounds(len(state.mass), softening)["accelerations"])

    def accelerations(self, state, add_up=nothing_to_add):
        """Sum over this rank's share of the pairs of chunks, and bring the sums of all ranks together."""
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
        mine = add_up(totals, np.zeros((own.stop - own.start, 3, 3)))
        state.acceleration[:] = self.scale * mine.sum(axis=2)

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

    def run(self, state, stages, dt, steps):
        """Do whole steps of a rank that owns every body."""
        act = {
            "kick": self.kick,
            "drift": self.drift,
            "force": lambda state, _: self.accelerations(state),
        }
        for stage in steps * stages:
            act[stage.action](state, stage.fraction * dt)
        return 0.0

    def potential(self, state, result, add_up=nothing_to_add):
        """See the twin: each rank sums over all sources at its own bodies."""
        super().potential(state, result)


class SlowPairGravity(PairGravity):
    """`PairGravity` with these kernels."""

    def _kernels(self, *physics):
        return Kernels(self.backend, self.state, *physics)
