"""The arrays of a tree on a GPU, as its kernels take them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.kernels.multi_indices import number_of_terms

LEVELS = 21
"""Levels below the root: a cell on the last may hold any number of bodies."""

SUMMARY = 16
"""Numbers of a cell's summary."""

NUMBERS = ("edge", "eps2", "error", "angle")
BODIES = ("keys", "at", "acceleration", "near")
CELLS = ("first", "last", "child", "end", "parent", "level")
EXPANSIONS = ("centre", "box", "summary", "multipole", "local", "tolerance")
POOL = ("pool", "used")
LISTS = ("distant", "nearby", "waiting")
TABLES = ("exponents", "inverse_factorial", "norm", "binomial")
SHIFTS = ("down_start", "down_target", "down_power", "up_start", "up_source", "up_power")

TREE = np.dtype(
    [
        ("bodies", "i4"),
        ("cells", "i4"),
        *((name, "f8") for name in NUMBERS),
        *((name, "u8") for name in (*BODIES, *CELLS, *EXPANSIONS, *POOL)),
        ("words", "i4"),
        *((name, "u8") for name in (*LISTS, *TABLES, *SHIFTS, "sums")),
    ],
    align=True,
)
"""``Tree`` of ``tree.cuh``: numbers, and addresses of arrays."""


def pitch_of(terms: int) -> int:
    """Return the length of a row of multipoles."""
    return -(-terms // 4) * 4


class TreeMemory:
    """The arrays of a tree; those of bodies and cells are filled by kernels.

    Parameters
    ----------
    backend : GpuBackend
    expansion : Expansion
    bodies, cells : int
        Their numbers.

    Attributes
    ----------
    argument : (1,) array of `TREE`
        What kernels take.
    arrays : dict
        The arrays, by name.
    """

    def __init__(self, backend: GpuBackend, expansion: Expansion, bodies: int, cells: int) -> None:
        self.argument: NDArray[Any] = np.zeros(1, TREE)
        self.argument["bodies"] = bodies
        self.argument["cells"] = cells
        self.arrays: dict[str, Array] = {}
        xp = backend.xp
        real = "f8" if expansion.double else "f4"
        terms = number_of_terms(expansion.order)
        self.set(
            at=xp.empty((bodies, 4), "f8"),
            acceleration=xp.empty(bodies, "f8"),
            near=xp.empty((bodies, 4), real),
            **{name: xp.empty(cells, "i4") for name in CELLS[:-1]},
            level=xp.empty(cells, "u1"),
            centre=xp.empty((cells, 4), "f8"),
            box=xp.empty((cells, 6), "f8"),
            summary=xp.empty((cells, SUMMARY), "f4"),
            multipole=xp.empty((cells, pitch_of(terms)), real),
            local=xp.empty((cells, terms), "f8"),
            tolerance=xp.empty(cells, "f4"),
            **{name: xp.empty(cells, "i4") for name in LISTS},
        )

    def set(self, **arrays: Array) -> None:
        """Set arrays by their names."""
        self.arrays |= arrays
        for name, array in arrays.items():
            self.argument[name] = array.data.ptr

    def set_numbers(self, edge: float, eps2: float, error: float, angle: float) -> None:
        """Set the edge of the root, the softening, and when an expansion is accurate enough."""
        for name, value in zip(NUMBERS, (edge, eps2, error, angle), strict=True):
            self.argument[name] = value

    def set_pool(self, pool: Array, used: Array) -> None:
        """Set the memory of the lists, and the number of words of it that are taken."""
        self.set(pool=pool, used=used)
        self.argument["words"] = len(pool)
