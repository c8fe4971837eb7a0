"""Each pair of bodies once on a GPU (CUDA through CuPy), in single precision.

The kernels are in ``symmetric.cu``.
"""

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np

from hybrid_nbody.nbody.kernels.contract import PairSums
from hybrid_nbody.nbody.kernels.gpu import kernels as gpu
from hybrid_nbody.nbody.kernels.gpu.exact_sums import Units, bounds, rounders
from hybrid_nbody.nbody.kernels.gpu.kernels import THREADS
from hybrid_nbody.nbody.kernels.precision import CHUNK

SOURCE = Path(__file__).with_name("symmetric.cu")

TARGETS = 8
JERK_TARGETS = 4
"""Targets of a lane: on an H200 as many as leave room for four blocks a multiprocessor. They are
part of the order in which a run is summed, so that no GPU has others."""

BLOCKS = 5
"""Blocks that are started for each multiprocessor: as many as may run there at once, with
potentials; else one more."""

COMPONENTS = {
    "accelerations": 3,
    "accelerations_of_equal_masses": 3,
    "accelerations_and_jerks": 6,
    "potentials": 1,
}
"""Numbers that a kernel finds for a body."""

WORDS = {
    "accelerations": 3,
    "accelerations_of_equal_masses": 3,
    "accelerations_and_jerks": 4,
    "potentials": 2,
}
"""Units that each of them is counted in: the smaller the softening, the wider is their range."""


def defines() -> dict[str, int]:
    """Return the macros that compile ``symmetric.cu``."""
    return {"CHUNK": CHUNK, "TARGETS": TARGETS, "JERK_TARGETS": JERK_TARGETS, "THREADS": THREADS}


class Kernels(gpu.Kernels):
    """Gravity on one GPU that computes its share of all pairs; parameters as in `nbody.kernels.gpu.kernels`.

    Its share is that of its bodies among all. What it finds are sums at all bodies, `PairSums`, to
    which those over the pairs of other ranks must be added. The methods of `gpu.Kernels` are for a
    rank that owns every body, and need no other sums.
    """

    times_a_pair = 1

    def __init__(self, backend, state, pair_force, tuning=None):
        super().__init__(backend, state, pair_force, tuning)
        softening = pair_force.softening
        self.number = len(state.mass)
        self.targets = TARGETS
        self.jerk_targets = JERK_TARGETS
        self.blocks = BLOCKS * backend.facts()["multiprocessors"]
        self.pair_kernel = functools.cache(backend.compile(SOURCE, defines()).get_function)
        self.taken = backend.zeros(1, "i8")
        self.largest = backend.zeros(1, "i4")
        # units of jerks
        self.speed = backend.zeros(1, "f4")
        self.over_accelerations = backend.zeros(1, "f8")
        self.units = Units.of(softening, state.heaviest)
        self.bounds = bounds(self.number, self.units.length * softening)
        eps2 = np.float32((self.units.length * softening) ** 2)
        self.held_in = eps2, np.float32(self.units.length), np.float32(self.units.mass)

    def accelerations(self, state):
        """Fill ``state.acceleration``, after `pack`."""
        self._finish(self.pair_accelerations(state))

    def accelerations_and_jerks(self, state, velocity, jerk):
        """Fill ``state.acceleration`` and `jerk`, after `pack`."""
        self._finish(self.pair_jerks(state, velocity, jerk))

    def potential(self, state, result):
        """Fill `result` with the potential, after `pack`."""
        self._finish(self.pair_potential(state, result))

    def _finish(self, sums):
        """Fill the result where no other rank has sums to add."""
        sums.finish(sums.totals)

    def pair_accelerations(self, state):
        """See `SymmetricKernels`."""
        held = self.units.accelerations if state.common_mass is None else self.units.weights
        name = self._accelerations(state)
        scale = self._scale(state) / held
        return self._sum_pairs(name, state, self.packed, scale, state.acceleration)

    def pair_jerks(self, state, velocity, jerk):
        """See `SymmetricKernels`."""
        moving, relative = self._pack_moving(state, velocity)
        self._launch_pairs(
            "find_largest", relative.size, np.int32(relative.size), relative, self.largest
        )
        units = self.speed, self.over_accelerations
        self._launch_pairs("set_speed", 1, np.float64(self.units.length), self.largest, *units)
        both = self._room((len(jerk), 6), "f8")
        scale = np.float64(self.G / self.units.accelerations)
        sums = self._sum_pairs("accelerations_and_jerks", state, moving, scale, both)

        def finish(own):
            sums.finish(own)
            state.acceleration[:] = both[:, :3]
            self.backend.xp.multiply(both[:, 3:], self.over_accelerations, out=jerk)

        return replace(sums, finish=finish)

    def pair_potential(self, state, result):
        """See `SymmetricKernels`."""
        scale = np.float64(self.G / self.units.potentials)
        return self._sum_pairs("potentials", state, self.packed, scale, result)

    def _sum_pairs(self, name, state, packed, scale, result):
        """Sum over this rank's pairs; `finish` scales the sums at its own bodies."""
        components = COMPONENTS[name]
        words = WORDS[name]
        slots = np.int32(self.slots)
        sums = (
            self.taken,
            self._room((components * words, self.slots), "f8"),
        )  # zero before; `gather` clears them
        share = np.int32(state.own.start), np.int32(state.own.stop), np.int32(self.number)
        bodies = (self.speed, state.chunks, self.origin, packed)
        counted_in = rounders(self.bounds[name])
        self.pair_kernel(name)(
            (self.blocks,), (THREADS,), (*share, *self.held_in, *bodies, *counted_in, slots, *sums)
        )
        totals = self._room((self.number, components, words), "f8")
        room = self._room(
            (self.owned, components * words), "f8"
        )  # of another shape: not the same memory
        order = slots, np.int32(components * words), state.order, state.chunks, state.starts
        self._launch_pairs("gather", self.slots, *order, *sums, totals)
        sizes = np.int32(result.size), np.int32(words)

        def finish(own):
            self._launch_pairs("combine", result.size, *sizes, scale, own, result)

        return PairSums(totals, room, finish)

    def _launch_pairs(self, name, threads, *arguments):
        """Launch a kernel of ``symmetric.cu`` as `_launch` does."""
        if threads:
            self.pair_kernel(name)((-(-threads // THREADS),), (THREADS,), arguments)
