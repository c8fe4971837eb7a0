"""The loops over cells that are written in vector code, and stand in for generated ones."""

from hybrid_nbody.backends.simd import LANES
from hybrid_nbody.fluid.kernels.cpu.paths import run_advect, run_correct
from hybrid_nbody.fluid.kernels.cpu.sums import (
    run_dot,
    run_gained,
    run_largest,
    run_lost,
    run_magnitude,
)

LEAST = LANES
"""Elements of a row, at least, for these loops."""

__all__ = [
    "LEAST",
    "run_advect",
    "run_correct",
    "run_dot",
    "run_gained",
    "run_largest",
    "run_lost",
    "run_magnitude",
]
