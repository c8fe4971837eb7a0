"""Gravity by a tree on one GPU: cells, expansions and sums are found there."""

import math
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import FLUSH_DENORMALS, CudaModule
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.expansions import MANY, Expansion, limits_of, width_of_cells
from hybrid_nbody.nbody.kernels.gpu.tree.memory import LEVELS, TreeMemory, pitch_of
from hybrid_nbody.nbody.kernels.multi_indices import Indices, indices_of, number_of_terms

FOLDER = Path(__file__).parent
HEADER = FOLDER / "tree.cuh"
OPTIONS = (*FLUSH_DENORMALS, f"-I{FOLDER}")
SOURCES = ("cells", "upward", "walk", "far_field", "near_field")

LANES = 32
WARPS = 4
"""Warps of a block: each takes a cell of its own."""

CHILDREN = 8
"""Most children of a cell."""

THREADS = 256
"""Threads of a block that take a body each."""

BLOCK_MEMORY = 48 << 10
"""Bytes of shared memory that a block has without being asked."""

BOXES = 512
"""Most blocks that find the box of some bodies each."""

WORDS_OF_A_CELL = 250
"""Length of the lists of a cell, about; their memory grows where it is too small."""

MOST_WORDS = 2**31 - 1


def defines(expansion: Expansion, unsoftened: bool) -> dict[str, str | int]:
    """Return the macros of the sources."""
    return {
        "CAPACITY": expansion.capacity,
        "ORDER": expansion.order,
        "REAL": "double" if expansion.double else "float",
        "UNROLL": int(expansion.order <= (6 if expansion.double else 7)),
        "UNSOFTENED": str(unsoftened).lower(),
        "WARPS": WARPS,
        "FAR_WARPS": far_warps(expansion),
        "HEADER": zlib.crc32(HEADER.read_bytes()),  # the cache knows source and options alone
    }


def far_warps(expansion: Expansion) -> int:
    """Return the warps of a block that holds the multipoles of their sources."""
    row = pitch_of(number_of_terms(expansion.order)) + 1
    size = LANES * row * (8 if expansion.double else 4)
    return max(1, min(WARPS, BLOCK_MEMORY // size))


class Sorted(NamedTuple):
    """Bodies, and their keys and numbers along the curve."""

    bodies: Array
    keys: Array
    order: Array


class WholeTree:
    """Sums over all bodies by a tree on one GPU; see `hybrid_nbody.nbody.kernels.whole_tree`.

    Parameters
    ----------
    backend : GpuBackend
    expansion : Expansion
    eps2 : float
        The softening length squared, in units of the kernels.
    mass : float
        Of all bodies.
    """

    def __init__(self, backend: GpuBackend, expansion: Expansion, eps2: float, mass: float) -> None:
        self.backend = backend
        self.mass = mass
        self.expansion = expansion
        self.eps2 = eps2
        macros = defines(expansion, unsoftened=eps2 == 0)
        self.modules = {
            name: CudaModule(backend, FOLDER / f"{name}.cu", macros, OPTIONS) for name in SOURCES
        }
        indices = indices_of(expansion.order)
        constants = {name: backend.upload(table) for name, table in tables(indices).items()}
        self.memory = TreeMemory(backend, expansion, constants)

    def sums(self, bodies: Array, cube: Cube, potentials: bool) -> Array:
        """Return the sums at all bodies: of m d / r^3, (N, 3), or of m / r, (N, 1).

        Parameters
        ----------
        bodies : (N, 4) or (N, 5) array of float64
            Positions, masses and, once they are known, the lengths of the last accelerations.
        cube : Cube
            Around them.
        potentials : bool
        """
        number, columns = bodies.shape
        xp = self.backend.xp
        result = xp.empty((number, 1 if potentials else 3), "f8")
        if number == 0:
            return result
        keys = self._keys(bodies, cube)
        order = xp.argsort(keys, kind="stable")
        levels = self._make_cells(Sorted(bodies, keys[order], order), cube)
        self._on_bodies("sort_bodies", number, self.tree, np.int32(columns), bodies, order)
        self._find_multipoles(levels)
        name = "potentials" if potentials else "accelerations"
        while (wanted := self._add_all(levels, name)) > self.memory.words:
            self.memory.fit_pool(min(MOST_WORDS, wanted + wanted // 8))
            self.memory.send()
        sums = self.memory.arrays["sums"]
        sizes = (np.int32(number), np.int32(result.shape[1]))
        self._on_bodies("unsort", number, *sizes, sums, order, result)
        return result

    def _add_all(self, levels: NDArray[np.int64], name: str) -> int:
        """Fill the sums; return the words of the lists, for which there may not be enough memory.

        Raises
        ------
        InputError
            If lists are longer than numbers of four bytes can tell.
        """
        used = self.memory.arrays["used"]
        used.fill(0)
        for level in range(_deepest(levels) + 1):
            self._on_level("walk", "find_sources", levels, level)
        self._add_far_field(levels)
        self._on_cells("far_field", f"evaluate_{name}")
        self._on_blocks("near_field", f"add_nearby_{name}")
        wanted = int(self.backend.download(used)[0])
        if wanted > MOST_WORDS:
            raise InputError("gravity.solver: fmm: too many bodies for one GPU; take fewer")
        return wanted

    def box(self, bodies: Array) -> NDArray[np.float64]:
        """Return the lowest and highest coordinates of bodies, (2, 3), on the host."""
        number, columns = bodies.shape
        corners = self.backend.xp.empty((min(BOXES, -(-number // THREADS)), 2, 3), "f8")
        sizes = (np.int32(number), np.int32(columns))
        self._on_bodies("find_box", THREADS * len(corners), *sizes, bodies, corners)
        some = self.backend.download(corners)
        return np.stack([some[:, 0].min(axis=0), some[:, 1].max(axis=0)])

    # ---- Cells -----------------------------------------------------------------------------------

    def _keys(self, bodies: Array, cube: Cube) -> Array:
        """Return the keys of bodies."""
        number, columns = bodies.shape
        keys = self.backend.xp.empty(number, "u8")
        scale = np.float64(2.0**LEVELS / cube.edge)
        corner = (np.float64(cube.x), np.float64(cube.y), np.float64(cube.z))
        sizes = (np.int32(number), np.int32(columns))
        self._on_bodies("find_keys", number, *sizes, bodies, *corner, scale, keys)
        return keys

    def _make_cells(self, sorted_by: Sorted, cube: Cube) -> NDArray[np.int64]:
        """Make the cells; return the ends of their levels."""
        xp = self.backend.xp
        bodies, keys, order = sorted_by
        number, columns = bodies.shape
        limits = limits_of(self.expansion, known=columns > 4)
        starts = xp.empty(number, "i4")
        leaf = xp.empty(number, "u1")
        histogram = self.backend.zeros(LEVELS + 1, "i4")
        rows = (bodies, np.int32(columns), order)
        reach = np.float64(self._reach(number, cube, limits.error))
        results = (starts, leaf, histogram)
        self._on_bodies("find_levels", number, np.int32(number), keys, *rows, reach, *results)
        offset = self.backend.zeros(number + 1, "i4")
        xp.cumsum(starts, out=offset[1:])
        levels = np.cumsum(self.backend.download(histogram), dtype=np.int64)
        cells = int(levels[-1])
        place = self._numbers_of_cells(cells, offset, leaf)
        self.memory.fit(number, cells)
        self.memory.set_numbers(cube.edge, self.eps2, *limits)
        self.memory.set(keys=keys)
        self.memory.fit_pool(min(MOST_WORDS, WORDS_OF_A_CELL * cells))
        self.memory.send()
        self._on_bodies("make_cells", number, self.tree, offset, leaf, place)
        self._on_bodies("link_cells", cells, self.tree)
        return levels

    def _numbers_of_cells(self, cells: int, offset: Array, leaf: Array) -> Array:
        """Return the numbers, level by level, of cells in the order of the bodies they start at."""
        xp = self.backend.xp
        levels = xp.empty(cells, "u1")
        number = len(leaf)
        self._on_bodies("list_levels", number, np.int32(number), offset, leaf, levels)
        place = xp.empty(cells, "i4")
        order = xp.argsort(levels, kind="stable")
        self._on_bodies("number_cells", cells, np.int32(cells), order, place)
        return place

    def _reach(self, number: int, cube: Cube, error: float) -> float:
        """Return the edge of the root over the width of cells with an acceleration of 1."""
        width = width_of_cells(self.expansion, error, self.mass)
        return cube.edge / width if number > MANY else 0.0

    # ---- Expansions ------------------------------------------------------------------------------

    def _find_multipoles(self, levels: NDArray[np.int64]) -> None:
        """Find the multipoles of all cells."""
        self._on_cells("upward", "find_leaf_multipoles")
        threads = CHILDREN * LANES
        for level in reversed(range(_deepest(levels))):
            first, number = _bounds(levels, level)
            arguments = (self.tree, np.int32(first))
            name = "find_parent_multipoles"
            self.modules["upward"].launch(name, threads * number, threads, *arguments)

    def _add_far_field(self, levels: NDArray[np.int64]) -> None:
        """Find the expansions of distant sources about all cells."""
        self._on_cells("far_field", "add_far_field", far_warps(self.expansion))
        for level in range(1, _deepest(levels) + 1):
            self._on_level("far_field", "shift_to_children", levels, level)

    # ---- Launches --------------------------------------------------------------------------------

    @property
    def tree(self) -> Array:
        """Return what kernels take."""
        return self.memory.argument

    def _on_bodies(self, name: str, number: int, *arguments: object) -> None:
        """Launch a thread for every body."""
        self.modules["cells"].launch(name, number, THREADS, *arguments)

    def _on_cells(self, module: str, name: str, warps: int = WARPS) -> None:
        """Launch a warp for every cell, `warps` of them a block."""
        threads = LANES * self.memory.number_of_cells
        self.modules[module].launch(name, threads, warps * LANES, self.tree)

    def _on_blocks(self, module: str, name: str) -> None:
        """Launch a block for every cell."""
        block = WARPS * LANES
        self.modules[module].launch(name, block * self.memory.number_of_cells, block, self.tree)

    def _on_level(self, module: str, name: str, levels: NDArray[np.int64], level: int) -> None:
        """Launch a warp for every cell of a level."""
        first, number = _bounds(levels, level)
        bounds = (np.int32(first), np.int32(first + number))
        self.modules[module].launch(name, LANES * number, WARPS * LANES, self.tree, *bounds)


def _bounds(levels: NDArray[np.int64], level: int) -> tuple[int, int]:
    """Return the first cell of a level and their number."""
    first = int(levels[level - 1]) if level else 0
    return first, int(levels[level]) - first


def _deepest(levels: NDArray[np.int64]) -> int:
    """Return the lowest level that has cells."""
    return int(np.searchsorted(levels, levels[-1]))


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
