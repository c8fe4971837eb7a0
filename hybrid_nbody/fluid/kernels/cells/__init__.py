"""The staggered fluid, one cell at a time; compiled for CPU threads and for CUDA.

Arrays are (planes + 2, ny + 2, nx + 2): one ghost all round. Scalars are at the centres of cells, a
component of the velocity at the low face of each, so that ``u[k, j, i + 1]`` is at the high face of
the cell ``[k, j, i]`` along x. Everything is in cells: a velocity times `scale` is in cells a step.
"""

from types import ModuleType

from hybrid_nbody.fluid.kernels.cells import (
    advection,
    beside,
    conjugate_gradients,
    diffusion,
    forces,
    ghosts,
    interpolation,
    multigrid,
    obstacles,
    poisson,
    sources,
    sums,
)

MODULES: tuple[ModuleType, ...] = (
    interpolation,
    ghosts,
    advection,
    beside,
    forces,
    diffusion,
    poisson,
    multigrid,
    conjugate_gradients,
    obstacles,
    sources,
    sums,
)
"""All functions, callees before callers."""

LOOPS = {"cpu": "hybrid_nbody.fluid.kernels.cpu.vector_loops"}
"""Modules of loops that are faster than those of some functions."""
