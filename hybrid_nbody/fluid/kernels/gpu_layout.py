"""How the fluid's CUDA sources are compiled for a grid: files and macros."""

import zlib
from pathlib import Path

import numpy as np

from hybrid_nbody.backends.gpu import FLUSH_DENORMALS

FOLDER = Path(__file__).parent
SOURCES = {name: FOLDER / f"{name}.cu" for name in ("sweeps", "transport", "cells")}
HEADERS = sorted(FOLDER.glob("*.cuh"))
OPTIONS = (*FLUSH_DENORMALS, f"-I{FOLDER}")

LANES = 32
"""Threads of a warp."""

OWN_SHARED_MEMORY = 1024
"""Bytes of a block that are left to the kernel beside what is counted: more than it needs."""

ALIGNMENT = 32
"""Bytes: rows of colours are padded to a multiple of them, the sectors that memory is written in."""

SUM_THREADS = 512
"""Threads of a block that sums a plane."""


def pitch_of(slab, dtype) -> int:
    """Return the numbers of a row of colours, with its padding."""
    numbers = ALIGNMENT // np.dtype(dtype).itemsize
    return -(-slab.half // numbers) * numbers


def defines(slab, dtype) -> dict[str, int | str]:
    """Return the macros that compile the kernels for one slab and ``f4`` or ``f8``."""
    headers = b"".join(header.read_bytes() for header in HEADERS)
    cells, periodic = dict(zip(("NX", "NY", "NZ"), slab.cells, strict=True)), map(int, slab.periodic)
    parities = (",".join(map(str, slab.velocity_parity(component))) for component in range(3))
    return {
        "REAL": {"f4": "float", "f8": "double"}[np.dtype(dtype).str[1:]],
        **cells,
        "FIRST": slab.first,
        "PLANES": slab.planes,
        "PITCH": pitch_of(slab, dtype),
        **dict(zip(("PERIODIC_X", "PERIODIC_Y", "PERIODIC_Z"), periodic, strict=True)),
        **dict(zip(("PARITY_U", "PARITY_V", "PARITY_W"), parities, strict=True)),
        "SUM_THREADS": SUM_THREADS,
        "HEADERS": zlib.crc32(headers),  # compiled code is kept under its source and options alone
    }
