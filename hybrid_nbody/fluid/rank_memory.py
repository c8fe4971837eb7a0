"""The memory that a rank needs for its planes of a grid."""

from hybrid_nbody.fluid.config import FluidConfig
from hybrid_nbody.parallel.shares import planned_counts

BYTES_PER_CELL = {"float32": 4, "float64": 8}

ARRAYS = 10
"""Arrays of the grid that a rank holds: velocity, density, the next of both, two of a solve."""

HALO_PLANES = 2
"""Planes that a rank holds beyond its own."""


def rank_bytes(config: FluidConfig, ranks: int) -> int:
    """Return the bytes that the rank with most planes holds."""
    nx, ny, nz = config.grid.cells
    counts = planned_counts(config.compute.balance, nz, ranks)
    return ARRAYS * (max(counts) + HALO_PLANES) * nx * ny * BYTES_PER_CELL[config.fluid.dtype]
