"""The kernels of the tree on a GPU, and how they are launched."""

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import FLUSH_DENORMALS, CudaModule
from hybrid_nbody.nbody.kernels.expansions import LEADING, MOST_EDGES, SMALL, Expansion
from hybrid_nbody.nbody.kernels.gpu.tree.far_field import LANES, FarField, far_field_on
from hybrid_nbody.nbody.kernels.gpu.tree.memory import TreeMemory, pairs_in_double
from hybrid_nbody.nbody.kernels.multi_indices import Indices, indices_of

FOLDER = Path(__file__).parent
HEADER = FOLDER / "tree.cuh"
OPTIONS = (*FLUSH_DENORMALS, f"-I{FOLDER}")
SOURCES = ("cells", "sort", "upward", "walk", "far_field", "near_field", "sharing")

WARPS = 4
"""Warps of a block: each takes a cell of its own."""

CHILDREN = 8
"""Most children of a cell."""

THREADS = 256
"""Threads of a block that take a body each."""


def defines(expansion: Expansion, unsoftened: bool, far_field: FarField) -> dict[str, str | int]:
    """Return the macros of the sources."""
    return {
        "REAL": "double" if pairs_in_double(expansion) else "float",
        "CLOSELY": str(unsoftened or expansion.pairs == "mixed").lower(),
        "UNSOFTENED": str(unsoftened).lower(),
        "ORDER": expansion.order,
        "EXACT": str(expansion.double).lower(),
        "LEADING": LEADING,
        "CAPACITY": expansion.capacity,
        "WARPS": WARPS,
        "FAR_WARPS": far_field.warps,
        "FAR_BUFFERS": far_field.buffers,
        "FAR_BLOCKS": far_field.blocks,
        "MOST_EDGES": f"{MOST_EDGES}f",
        "SMALL": f"{SMALL}f",
        "HEADER": zlib.crc32(HEADER.read_bytes()),  # the cache knows source and options alone
    }


class Launches:
    """Launches of the kernels; most take a tree first.

    Parameters
    ----------
    backend : GpuBackend
    expansion : Expansion
    unsoftened : bool
        Whether the softening length is 0.

    Attributes
    ----------
    memory : TreeMemory
        The tree.
    """

    def __init__(self, backend: GpuBackend, expansion: Expansion, unsoftened: bool) -> None:
        far_field = far_field_on(backend.facts(), expansion)
        macros = defines(expansion, unsoftened, far_field)
        self.modules = {
            name: CudaModule(backend, FOLDER / f"{name}.cu", macros, OPTIONS) for name in SOURCES
        }
        self.far_warps = far_field.warps
        indices = indices_of(expansion.order)
        constants = {name: backend.upload(table) for name, table in tables(indices).items()}
        self.memory = TreeMemory(backend, expansion, constants)

    def on_bodies(self, name: str, number: int, *arguments: object, module: str = "cells") -> None:
        """Launch a thread for each of a number of bodies, or cells."""
        self.modules[module].launch(name, number, THREADS, *arguments)

    def on_rows(self, name: str, number: int, *arguments: object) -> None:
        """Launch a warp for each of a number of cells that ranks share."""
        self.modules["sharing"].launch(name, LANES * number, WARPS * LANES, *arguments)

    def on_own_cells(self, module: str, name: str, number: int, *arguments: object) -> None:
        """Launch a warp for each of a number of this rank's cells."""
        warps = self.far_warps if name == "add_far_field" else WARPS
        given = (self.memory.argument, *arguments)
        self.modules[module].launch(name, LANES * number, warps * LANES, *given)

    def on_blocks(self, module: str, name: str, number: int) -> None:
        """Launch a block for each of a number of this rank's cells."""
        block = WARPS * LANES
        self.modules[module].launch(name, block * number, block, self.memory.argument)

    def on_level(self, module: str, name: str, number: int, level: int) -> None:
        """Launch a warp for each of a number of this rank's cells of a level."""
        block = WARPS * LANES
        arguments = (self.memory.argument, np.int32(level))
        self.modules[module].launch(name, LANES * number, block, *arguments)

    def on_parents(self, name: str, number: int, cells: object) -> None:
        """Launch a block for each of a number of cells with children."""
        block = CHILDREN * LANES
        arguments = (self.memory.argument, cells)
        self.modules["upward"].launch(name, block * number, block, *arguments)


def tables(indices: Indices) -> dict[str, NDArray[Any]]:
    """Return the tables of an order as the kernels read them."""
    shift = indices.shift
    number = len(indices.all)
    targets = np.repeat(np.arange(number), np.diff(shift.starts))
    by_source = np.argsort(shift.source, kind="stable")
    starts = np.searchsorted(shift.source[by_source], np.arange(number + 1))
    order = indices.order
    return {
        "exponents": np.column_stack([indices.all, indices.orders]).astype(np.uint8),
        "inverse_factorial": 1 / indices.factorials,
        "norm": indices.norms,
        "binomial": np.array([math.comb(order, k) for k in range(order + 1)], float),
        "down_start": starts.astype(np.int32),
        "down_target": targets[by_source].astype(np.int32),
        "down_power": shift.power[by_source],
        "up_start": shift.starts,
        "up_source": shift.source,
        "up_power": shift.power,
    }
