"""How the fluid's CUDA sources are compiled for a grid: files and macros."""

import zlib
from pathlib import Path

import numpy as np

from hybrid_nbody.backends.launch import FLUSH_DENORMALS

FOLDER = Path(__file__).parent
SOURCES = {name: FOLDER / f"{name}.cu" for name in ("red_black", "advection", "cells")}
HEADERS = sorted(FOLDER.glob("*.cuh"))
OPTIONS = (*FLUSH_DENORMALS, f"-I{FOLDER}")

LONGEST_PASS = 2
"""Most iterations of a pass over the grid: the registers hold no more."""

LANES = 32
"""Threads of a warp."""

OWN_SHARED_MEMORY = 1024
"""Bytes of a block that are left to the kernel beside what is counted: more than it needs."""

ALIGNMENT = 32
"""Bytes: rows of colours are padded to a multiple of them, the sectors that memory is written
in."""

CPU_ENDS = 2
CPU_LANES = 16
"""As in ``layout``: places that a row has beside its cells, and of which it has a multiple."""

SUM_THREADS = 512
"""Threads of a block that sums a plane."""


def pitch_of(slab, dtype) -> int:
    """Return the numbers of a row of colours, with its padding: that of CPUs where planes travel to them."""
    if slab.mixed:
        return -(-(slab.half + CPU_ENDS) // CPU_LANES) * CPU_LANES
    numbers = ALIGNMENT // np.dtype(dtype).itemsize
    return -(-slab.half // numbers) * numbers


def halo_of(slab) -> int:
    """Return the planes of colours beyond each end of a slab: where they are other ranks', all that a pass reads."""
    return 1 if slab.complete else 2 * LONGEST_PASS


def defines(slab, dtype) -> dict[str, int | str]:
    """Return the macros that compile the kernels for one slab and ``f4`` or ``f8``."""
    headers = b"".join(header.read_bytes() for header in HEADERS)
    cells = dict(zip(("NX", "NY", "NZ"), slab.cells, strict=True))
    periodic = map(int, slab.periodic)
    ghosts = (
        ",".join(map(str, slab.velocity_ghosts(component).axis_signs)) for component in range(3)
    )
    return {
        "REAL": {"f4": "float", "f8": "double"}[np.dtype(dtype).str[1:]],
        **cells,
        "FIRST": slab.first,
        "PLANES": slab.planes,
        "HALO": halo_of(slab),
        "PITCH": pitch_of(slab, dtype),
        **dict(zip(("PERIODIC_X", "PERIODIC_Y", "PERIODIC_Z"), periodic, strict=True)),
        "FACES": 3,  # every wall is at rest, and alike at both ends of its axis
        **dict(zip(("GHOSTS_U", "GHOSTS_V", "GHOSTS_W"), ghosts, strict=True)),
        "SUM_THREADS": SUM_THREADS,
        "HEADERS": zlib.crc32(headers),  # compiled code is kept under its source and options alone
    }
