"""What diagnostics need of many bodies, on one GPU; see `hybrid_nbody.nbody.kernels.measured`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.nbody.kernels.measured import TERMS, MeasuredBodies, factors_of
from hybrid_nbody.parallel.sums import INTERVALS

SOURCE = Path(__file__).parent / "measures.cu"

THREADS = 256

MOST_THREADS = 1 << 17
"""Threads at most: every warp adds to the sums of all, one after another."""

DEFINES = {"TERMS": TERMS, "INTERVALS": INTERVALS, "THREADS": THREADS}

UNFUSED = ("-fmad=false",)
"""NVRTC's option for the bits of a CPU."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Measuring:
    """Measures bodies on a GPU.

    Parameters
    ----------
    backend : GpuBackend
    """

    def __init__(self, backend: GpuBackend) -> None:
        self.backend = backend
        self.module = CudaModule(backend, SOURCE, DEFINES, UNFUSED)

    def of(self, bodies: MeasuredBodies) -> "BodyMeasures":
        """Return the measures of some bodies."""
        return BodyMeasures(self, bodies)

    def found(self, name: str, number: int, arguments: Sequence[Any], size: int) -> Integers:
        """Launch a kernel over bodies; return its `size` integers, which begin as zeros."""
        numbers = self.backend.zeros(size, "i8")
        threads = min(max(number, 1), MOST_THREADS)
        self.module.launch(name, threads, THREADS, np.int32(number), *arguments, numbers)
        host: Integers = self.backend.download(numbers)
        return host


class BodyMeasures:
    """Measures of this rank's bodies.

    Parameters
    ----------
    kernels : Measuring
    bodies : MeasuredBodies
    """

    def __init__(self, kernels: Measuring, bodies: MeasuredBodies) -> None:
        self.kernels = kernels
        self.bodies = bodies

    def largest(self) -> Floats:
        """Return the largest magnitude of the terms of each sum; NaN where one is."""
        found = self._found("find_largest", (), TERMS)
        return found.view(np.float64)

    def parts(self, exponent: NDArray[Any], bits: int) -> Integers:
        """Return the sums of the high and of the low integers of the terms, (2, 12)."""
        factors = self.kernels.backend.upload(np.ldexp(1.0, exponent))
        found = self._found("add_parts", (factors, np.float64(2.0**bits)), 2 * TERMS)
        return found.reshape(2, TERMS)

    def about(self, centre: Sequence[float]) -> "Distances":
        """Return the distances from a centre, weighted by the masses."""
        return Distances(self.kernels, self.bodies, np.array(centre))

    def _found(self, name: str, arguments: Sequence[Any], size: int) -> Integers:
        number = len(self.bodies.mass)
        return self.kernels.found(name, number, (*self.bodies, *arguments), size)


class Distances:
    """Distances from a centre; see `hybrid_nbody.parallel.sums.Weights`.

    Parameters
    ----------
    kernels : Measuring
    bodies : MeasuredBodies
    centre : (3,) array of float64
    """

    def __init__(self, kernels: Measuring, bodies: MeasuredBodies, centre: Floats) -> None:
        self.kernels = kernels
        self.mass = bodies.mass
        backend = kernels.backend
        self.distance: Array = backend.empty((len(self.mass),), np.float64)
        given = (bodies.position, self.mass, backend.upload(centre), self.distance)
        self._most = kernels.found("find_distances", len(self.mass), given, 2)

    def most(self) -> Floats:
        """Return the largest distance and the largest mass."""
        return self._most.view(np.float64)

    def between(self, low: Integers, high: Integers, shift: Integers, exponent: int) -> Integers:
        """Return the masses of the bodies in intervals of the patterns of their distances."""
        quantiles = len(low)
        ranges = self.kernels.backend.upload(np.concatenate([low, high, shift]))
        factors = map(np.float64, factors_of(exponent))
        given = (self.distance, self.mass, np.int32(quantiles), ranges, *factors)
        found = self.kernels.found("count_masses", len(self.mass), given, quantiles * INTERVALS)
        return found.reshape(quantiles, INTERVALS)
