"""The arrays of a tree on a GPU, as its kernels take them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.expansions import LEADING, Expansion, Limits
from hybrid_nbody.nbody.kernels.multi_indices import number_of_terms
from hybrid_nbody.nbody.kernels.share import Numbering, Share

LEVELS = 21
"""Levels below the root: a cell on the last may hold any number of bodies."""

SUMMARY = 16
"""Numbers of a cell's summary."""

SLACK = 8
"""A share of the cells, 1 / SLACK, by which arrays are longer: cells vary from force to force."""

CLASSES = 32
"""Classes of cells by the length of a list."""

UNIT = 4
"""Words by which memory for lists is given out."""

UNITS_OF_A_CELL = 64
"""Length of the lists of a cell, about; their memory grows where it is too small."""

MOST_UNITS = 2**31 - 1

SIZES = ("bodies", "cells", "own", "origin", "shared")
NUMBERS = ("edge", "eps2", "error", "angle", "hopeless", "width")
BODIES = ("keys", "at", "acceleration", "near", "low")
CELLS = ("first", "last", "child", "end", "parent", "place", "level")
EXPANSIONS = ("centre", "box", "summary", "multipole", "local", "tolerance")
POOL = ("pool", "used")
LISTS = ("distant", "nearby", "waiting")
ORDERS = ("far_order", "near_order")
TABLES = ("exponents", "inverse_factorial", "norm", "binomial")
SHIFTS = ("down_start", "down_target", "down_power", "up_start", "up_source", "up_power")
BY_LEVEL = ("own_first", "own_before", "base", "ends", "most", "most_taken")

COUNTS = 1
USED = COUNTS + LEVELS + 1
SHARE = USED + 1
REPORT = SHARE + LEVELS + 1
"""Places in a report, which begins with whether coordinates are finite: how many cells start on
each level, the units that lists take, and how many cells of each level are of this rank's share of
a tree that it has whole; and its length."""

TREE = np.dtype(
    [
        *((name, "i4") for name in SIZES),
        *((name, "f8") for name in NUMBERS),
        ("corner", "f8", 3),
        *((name, "u8") for name in (*BODIES, *CELLS, *EXPANSIONS, *POOL)),
        ("units", "i4"),
        *((name, "u8") for name in ("report", *LISTS, *ORDERS, "classes")),
        *((name, "u8") for name in (*TABLES, *SHIFTS, "sums")),
        *((name, "i4", LEVELS + 1 + (name == "own_before")) for name in BY_LEVEL),
    ],
    align=True,
)
"""``Tree`` of ``tree.cuh``: numbers, and addresses of arrays."""


def row_type(expansion: Expansion) -> np.dtype[Any]:
    """Return ``Row`` of ``sharing.cu``: a cell as other ranks get it."""
    integers = ("cell", "first", "last", "parent", "level")
    columns: list[Any] = [
        ("centre", "f8", 4),
        ("box", "f8", 6),
        ("summary", "f4", SUMMARY),
        ("multipole", "f4", pitch_of(expansion)),
        *((name, "i4") for name in integers),
        ("tolerance", "f4"),
    ]
    return np.dtype(columns, align=True)


def pairs_in_double(expansion: Expansion) -> bool:
    """Return whether nearby bodies are summed in float64: all of them where either would do."""
    return expansion.pairs in ("either", "double")


def pitch_of(expansion: Expansion) -> int:
    """Return the length of a row of multipoles; see ``tree.cuh``."""
    terms = number_of_terms(expansion.order)
    if expansion.double:
        terms += number_of_terms(LEADING)
    return -(-terms // 4) * 4


class TreeMemory:
    """The arrays of a tree; those of bodies and cells are filled by kernels.

    They stay from force to force, and are made anew where they are too short.

    Parameters
    ----------
    backend : GpuBackend
    expansion : Expansion
    constants : dict of array
        What does not change, by name.

    Attributes
    ----------
    numbers : (1,) array of `TREE`
        Numbers and addresses of arrays.
    argument : array
        The same on the device, as kernels take it; see `send`.
    arrays : dict
        The arrays, by name.
    bodies, near, low, cells, locals : int
        Numbers of this rank's bodies, of those among `near` and `low`, of cells, and of local
        expansions for which there is memory.
    own : int
        This rank's cells.
    """

    def __init__(
        self, backend: GpuBackend, expansion: Expansion, constants: Mapping[str, Array]
    ) -> None:
        self.backend = backend
        self.real = "f8" if pairs_in_double(expansion) else "f4"
        self.terms = number_of_terms(expansion.order)
        self.pitch = pitch_of(expansion)
        self.numbers: NDArray[Any] = np.zeros(1, TREE)
        self.argument = backend.zeros(TREE.itemsize, "u1")
        self.arrays: dict[str, Array] = {}
        self.bodies = 0
        self.near = 0
        self.cells = 0
        self.locals = 0
        self.own = 0
        self._sent = b""
        report = backend.zeros(REPORT, "i8")
        report[:COUNTS] = 1
        self.set(report=report, used=report[USED:SHARE], **constants)
        self.set(classes=backend.zeros(4 * CLASSES, "i4"))
        self._make_bodies(0)
        self._make_low(0)

    def fit(self, numbering: Numbering) -> None:
        """Provide for the bodies and cells of a share, and set their numbers."""
        rank = numbering.share.rank
        self.fit_bodies(numbering.share)
        self.fit_cells(numbering.total, int(numbering.own_before[-1]))
        self.numbers["base"] = numbering.base[rank]
        self.numbers["own_first"] = numbering.own_first
        self.numbers["own_before"] = numbering.own_before

    def fit_bodies(self, share: Share) -> None:
        """Provide for the bodies of a share, and set their numbers."""
        numbers = (share.number, share.first, share.shared[share.rank])
        for name, value in zip(("bodies", "origin", "shared"), numbers, strict=True):
            self.numbers[name] = value
        self.numbers["ends"] = share.ends
        if share.number > self.bodies:
            self.bodies = share.number
            self._make_bodies(share.number)

    def fit_cells(self, cells: int, own: int) -> None:
        """Provide for a number of cells, and of this rank's among them, and set these."""
        self.own = own
        self.numbers["cells"] = cells
        self.numbers["own"] = own
        if cells > self.cells:
            self.cells = cells + cells // SLACK
            self._make_cells(self.cells)
        if own > self.locals:
            self.locals = own + own // SLACK
            orders = {name: self.backend.xp.empty(self.locals, "i4") for name in ORDERS}
            self.set(local=self.backend.xp.empty((self.locals, self.terms), "f8"), **orders)

    def _make_bodies(self, number: int) -> None:
        xp = self.backend.xp
        self.near = number
        self.set(
            at=xp.empty((number, 4), "f8"),
            acceleration=xp.empty(number, "f8"),
            near=xp.empty((number, 4), self.real),
            sums=xp.empty((number, 3), "f8"),
        )

    def _make_cells(self, number: int) -> None:
        xp = self.backend.xp
        integers = {name: xp.empty(number, "i4") for name in (*CELLS[:-1], *LISTS)}
        self.set(
            level=xp.empty(number, "u1"),
            centre=xp.empty((number, 4), "f8"),
            box=xp.empty((number, 6), "f8"),
            summary=xp.empty((number, SUMMARY), "f4"),
            multipole=xp.empty((number, self.pitch), "f4"),
            tolerance=xp.empty(number, "f4"),
            **integers,
        )

    def fit_near(self, others: int) -> None:
        """Provide for bodies of other ranks behind this rank's; these stay."""
        own = int(self.numbers["bodies"][0])
        if others > self.low:
            self._make_low(others + others // SLACK)
        if own + others <= self.near:
            return
        self.near = own + others + others // SLACK
        near = self.backend.xp.empty((self.near, 4), self.real)
        near[:own] = self.arrays["near"][:own]
        self.set(near=near)

    def _make_low(self, number: int) -> None:
        self.low = number
        self.set(low=self.backend.xp.empty((number, 3), self.real))

    def set(self, **arrays: Array) -> None:
        """Set arrays by their names."""
        self.arrays |= arrays
        for name, array in arrays.items():
            self.numbers[name] = array.data.ptr

    def send(self) -> bool:
        """Let the device know numbers and addresses as they are now; return whether any is new.

        Kernels that are queued already see the earlier ones. Numbers that the device has found
        meanwhile are lost where one is new.
        """
        now = self.numbers.tobytes()
        is_new = now != self._sent
        if is_new:
            self._sent = now
            self.argument.set(self.numbers.view("u1"))  # on the stream of the kernels
        return is_new

    def set_cube(self, cube: Cube) -> None:
        """Set the root."""
        self.numbers["edge"] = cube.edge
        self.numbers["corner"] = cube[:3]

    def set_limits(self, eps2: float, limits: Limits, width: float) -> None:
        """Set the softening, when an expansion is accurate enough, and how wide cells may be."""
        numbers = (eps2, limits.error, limits.angle, limits.hopeless, width)
        for name, value in zip(NUMBERS[1:], numbers, strict=True):
            self.numbers[name] = value

    @property
    def units(self) -> int:
        """Return the length of the memory for lists."""
        return int(self.numbers["units"][0])

    def foresee_lists(self) -> None:
        """Provide for the lists of this rank's cells, as far as their length can be foreseen."""
        self._fit_pool(UNITS_OF_A_CELL * self.own)

    def fit_lists(self, wanted: int) -> bool:
        """Return whether there was memory for lists of some units; provide it if not.

        Raises
        ------
        InputError
            If lists are longer than numbers of four bytes can tell.
        """
        if wanted > MOST_UNITS:
            raise InputError("gravity.solver: fmm: too many bodies for one GPU; take fewer")
        fits = wanted <= self.units
        if not fits:
            self._fit_pool(wanted + wanted // SLACK)
        return fits

    def _fit_pool(self, units: int) -> None:
        """Provide for lists of some units."""
        units = min(MOST_UNITS, units)
        if units > self.units:
            self.set(pool=self.backend.xp.empty((units, UNIT), "i4"))
            self.numbers["units"] = units
