"""How the fluid's CUDA sources are compiled for a grid: files, tiles and macros."""

import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hybrid_nbody.backends.gpu import FLUSH_DENORMALS

FOLDER = Path(__file__).parent
SOURCES = {name: FOLDER / f"{name}.cu" for name in ("sweeps", "tiles", "transport", "cells")}
HEADERS = sorted(FOLDER.glob("*.cuh"))
OPTIONS = (*FLUSH_DENORMALS, f"-I{FOLDER}")

LANES = 32
"""Threads of a warp: the cells of a colour that a tile is wide."""

CELLS_IN_CACHE = 8_000_000
"""Most cells of a grid whose colours about fit in the cache of a GPU."""

STAGES = 4
"""Steps of `relax` for which numbers wait or are under way."""

ARRAYS = 4
"""Numbers that a step takes for each cell pair of a tile: two of x and two of b."""

ALIGNMENT = 32
"""Bytes: rows of colours are padded to a multiple of them, the sectors that memory is written in."""

SUM_THREADS = 512
"""Threads of a block that sums a plane."""


def pitch_of(slab, dtype) -> int:
    """Return the numbers of a row of colours, with its padding."""
    numbers = ALIGNMENT // np.dtype(dtype).itemsize
    return -(-slab.half // numbers) * numbers


class Tiling(NamedTuple):
    """Tiles of `relax`: as much as the registers hold, by the kind of numbers and the size of the grid.

    Attributes
    ----------
    rows : int
        Of a thread.
    warps : int
        Of a block.
    blocks : int
        Of a multiprocessor.
    align : int
        Cells of a colour that the skirts along x are a multiple of: 4 lets tiles read pieces of 16 bytes and write
        whole sectors of memory, which is faster where the grid is not in the cache; 1 wastes less.
    """

    rows: int
    warps: int
    blocks: int
    align: int


LARGE = {"f4": Tiling(8, 8, 1, 4), "f8": Tiling(4, 8, 1, 4)}
CACHED = {"f4": Tiling(4, 12, 1, 1), "f8": Tiling(4, 8, 1, 1)}


def tiling_of(slab, dtype) -> Tiling:
    """Return the tiles that were fastest on an H200."""
    return (CACHED if np.prod(slab.cells) <= CELLS_IN_CACHE else LARGE)[np.dtype(dtype).str[1:]]


def defines(slab, dtype) -> dict[str, int | str]:
    """Return the macros that compile the kernels for one slab and ``f4`` or ``f8``."""
    tiling, headers = tiling_of(slab, dtype), b"".join(header.read_bytes() for header in HEADERS)
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
        "ROWS": tiling.rows,
        "WARPS": tiling.warps,
        "BLOCKS": tiling.blocks,
        "ALIGN": tiling.align,
        "STAGES": STAGES,
        "THREADS": SUM_THREADS,
        "HEADERS": zlib.crc32(headers),  # compiled code is kept under its source and options alone
    }
