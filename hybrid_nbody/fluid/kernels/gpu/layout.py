"""Compilation of the fluid's CUDA sources for a slab: files, macros, arguments of kernels."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.backends.launch import FLUSH_DENORMALS, checksum
from hybrid_nbody.fluid.grid import Boundary, Ghosts, Slab
from hybrid_nbody.fluid.stencil import Stencil
from hybrid_nbody.parallel.transport import peer_barrier

FOLDER = Path(__file__).parent
SOURCES = {name: FOLDER / f"{name}.cu" for name in ("red_black", "advection", "budget", "cells")}
HEADERS = sorted(FOLDER.glob("*.cuh")) + peer_barrier.HEADERS
OPTIONS = (*FLUSH_DENORMALS, f"-I{FOLDER}", f"-I{peer_barrier.FOLDER}")

LONGEST_PASS = 2
"""Most iterations of a pass over the grid: the registers hold no more."""

LANES = 32
"""Threads of a warp."""

RESERVED_SHARED_MEMORY = 1024
"""Bytes of shared memory of a block that are left to the kernel's own variables: more than it
needs."""

ALIGNMENT = 32
"""Bytes: rows of colours are padded to a multiple of them, the sectors that memory is written
in."""

CPU_ENDS = 2
"""Numbers that a row of colours of the CPU kernels has beside its cells."""

CPU_LANES = 16
"""Rows of colours of the CPU kernels are padded to a multiple of this many elements."""

SUM_THREADS = 512
"""Threads of a block that sums a plane."""

AXIS_FACES = 3
"""One ghost for each axis: its two faces are alike, and no wall moves."""

ALL_FACES = 6
"""One ghost for each face."""


def pitch_of(slab: Slab, dtype: DTypeLike) -> int:
    """Return the numbers of a row of colours, with its padding.

    Where planes travel to ranks that compute on CPUs it is that of the CPU kernels.
    """
    if slab.mixed:
        return -(-(slab.half + CPU_ENDS) // CPU_LANES) * CPU_LANES
    numbers = ALIGNMENT // np.dtype(dtype).itemsize
    return -(-slab.half // numbers) * numbers


def halo_of(slab: Slab) -> int:
    """Return the planes of colours beyond each end of a slab: all that a pass reads of others."""
    return 1 if slab.complete else 2 * LONGEST_PASS


def faces_of(boundary: Boundary) -> int:
    """Return how many ghosts describe a field: `AXIS_FACES`, or `ALL_FACES` if walls need them."""
    velocity = boundary.velocity_ghosts
    at_rest = not any(any(ghosts.offsets) for ghosts in velocity)
    alike = all(ghosts.signs[0::2] == ghosts.signs[1::2] for ghosts in velocity)
    return AXIS_FACES if at_rest and alike else ALL_FACES


def defines(slab: Slab, dtype: DTypeLike) -> dict[str, int | str]:
    """Return the macros that compile the kernels for one slab and ``f4`` or ``f8``."""
    cells = dict(zip(("NX", "NY", "NZ"), slab.cells, strict=True))
    periodic = map(int, slab.periodic)
    ghosts = (_listed(slab.boundary, component) for component in range(3))
    return {
        "REAL": {"f4": "float", "f8": "double"}[np.dtype(dtype).str[1:]],
        **cells,
        "FIRST": slab.first,
        "PLANES": slab.planes,
        "HALO": halo_of(slab),
        "PITCH": pitch_of(slab, dtype),
        **dict(zip(("PERIODIC_X", "PERIODIC_Y", "PERIODIC_Z"), periodic, strict=True)),
        "FACES": faces_of(slab.boundary),
        **dict(zip(("GHOSTS_U", "GHOSTS_V", "GHOSTS_W"), ghosts, strict=True)),
        "SUM_THREADS": SUM_THREADS,
        "HEADERS": checksum(HEADERS),
    }


def _listed(boundary: Boundary, component: int) -> str:
    """Return the numbers of a component's ghosts, as ``boundary.cuh`` takes them."""
    ghosts = boundary.velocity_ghosts[component]
    if faces_of(boundary) == AXIS_FACES:
        return ",".join(map(str, ghosts.axis_signs))
    return ",".join(f"{ghost.sign},{float(ghost.offset)!r}" for ghost in ghosts)


def ghost_arguments(ghosts: Ghosts, faces: int, dtype: np.dtype) -> tuple[Any, ...]:
    """Return ghosts as arguments of a kernel: ``GHOSTS`` of ``boundary.cuh``."""
    if faces == AXIS_FACES:
        return tuple(map(dtype.type, ghosts.axis_signs))
    face = np.dtype([("sign", dtype), ("offset", dtype)])
    values = np.array([tuple(ghost) for ghost in ghosts], face)
    return (np.array([(values,)], [("face", face, ALL_FACES)]),)


def equation_arguments(equation: Stencil, faces: int, dtype: np.dtype) -> tuple[Any, ...]:
    """Return an equation as arguments of a kernel: ``EQUATION`` of ``solve.cuh``.

    The offsets of its ghosts are left out: they are in the right-hand side.
    """
    numbers = map(dtype.type, (equation.shift, equation.neighbour))
    without_offsets = Ghosts(*(ghost._replace(offset=0.0) for ghost in equation.ghosts))
    return (*numbers, *ghost_arguments(without_offsets, faces, dtype))
