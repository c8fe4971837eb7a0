"""Whole steps of many small systems on one GPU, all of them in one launch."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.nbody.stages import StepPlan

SOURCE = Path(__file__).parent / "systems.cu"
THREADS = 64


def defines(bodies: int) -> dict[str, str | int]:
    """Return the macros of the source for the bodies of a system."""
    return {"BODIES": bodies, "WIDTH": 1 << (bodies - 1).bit_length()}


class Systems:
    """Systems of few bodies; see `hybrid_nbody.nbody.kernels.small_systems.Systems`.

    Parameters
    ----------
    backend : GpuBackend
    mass : (S, n) array of float64
        Times the gravitational constant.
    eps2 : (S,) array of float64
        The softening lengths squared.
    """

    def __init__(
        self, backend: GpuBackend, mass: NDArray[np.float64], eps2: NDArray[np.float64]
    ) -> None:
        self.backend = backend
        self.number, bodies = mass.shape
        macros = defines(bodies)
        self.threads = self.number * int(macros["WIDTH"])
        self.module = CudaModule(backend, SOURCE, macros, ())
        self.mass = backend.upload(mass)
        self.eps2 = backend.upload(eps2)

    def run(self, plan: StepPlan, steps: int, moving: tuple[Array, Array, Array]) -> None:
        """Take whole steps of positions, velocities and accelerations, (S, n, 3) each."""
        encoded = [self.backend.upload(array) for array in plan.encoded()]
        counts = (np.int32(self.number), np.int32(steps), np.int32(len(encoded[0])))
        arguments = (*counts, *encoded, *moving, self.mass, self.eps2)
        self.module.launch("run_systems", self.threads, THREADS, *arguments)
