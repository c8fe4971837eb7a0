"""What the kernels of the tree take: expansions, bodies along the curve, the limits of errors."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from hybrid_nbody.backends.simd import LANES
from hybrid_nbody.nbody.kernels.cpu.tree.cells import Cells
from hybrid_nbody.nbody.kernels.cpu.tree.curve import LEVELS

MOST_LEVELS = 2 * LEVELS
"""Levels below the root: a cell there may hold any number of bodies."""

SUMMARY = 16
"""Numbers of a cell's summary: a row fits a cache line."""

MOST_TERMS = 165
"""Terms of an expansion of order 8."""

RADIUS, EDGE = 14, 15
"""Columns of a summary; those before hold the weighted powers of the orders."""

Floats = NDArray[Any]


class Expansions(NamedTuple):
    """The expansions of C cells, lengths in units of a cell's own edge.

    Behind the last cell there is one more row, of a cell without mass that fills up vectors. Cells
    that other ranks sent have neither box nor tolerance nor local expansion.

    Attributes
    ----------
    centre : (C + 1, 4) array of float64
        The centre of mass; the last column is not used.
    box : (C, 6) array of float64
        The lowest and highest coordinates of the bodies.
    summary : (C + 1, SUMMARY) array of float32
        Binomial coefficients times the powers of the multipoles; radius and edge of the cell.
    multipole : ((C + 1) * pitch,) array of float32 or float64
        The terms of each cell, in rows that are filled up to whole vectors.
    tolerance : (C,) array of float64
        The smallest acceleration of its leaves.
    local : (C, terms) array of float64
        The expansion of the distant bodies' potential.
    """

    centre: NDArray[np.float64]
    box: NDArray[np.float64]
    summary: NDArray[np.float32]
    multipole: Floats
    tolerance: NDArray[np.float64]
    local: NDArray[np.float64]


class Tables(NamedTuple):
    """The fields of `hybrid_nbody.nbody.kernels.multi_indices.Indices` that compiled loops read.

    Attributes
    ----------
    inverses : (n,) array of float64
        Of the factorials.
    halves : (n,) array of float64
        Of an edge to the order of a multi-index: that of a child, in units of its parent's.
    binomials : (order + 1,) array of float64
    """

    orders: NDArray[np.int32]
    inverses: NDArray[np.float64]
    halves: NDArray[np.float64]
    parent: NDArray[np.int32]
    axis: NDArray[np.int32]
    source: NDArray[np.int32]
    power: NDArray[np.int32]
    starts: NDArray[np.int32]
    gradient: NDArray[np.int32]
    norms: NDArray[np.float64]
    binomials: NDArray[np.float64]


MASS = 3
"""Row of the masses in the columns of `SortedBodies`."""


class SortedBodies(NamedTuple):
    """N bodies along the curve, in units of the kernels, and M of other ranks as sources.

    Attributes
    ----------
    position : (N, 3) array of float64
    mass : (N,) array of float64
    acceleration : (N,) array of float64
        The length of the last one: errors are allowed in proportion to it.
    columns : (4, N + M + LANES) array of float64
        Positions and masses of sources as the near field reads them: these bodies, those of other
        ranks, and zeros behind them.
    """

    position: NDArray[np.float64]
    mass: NDArray[np.float64]
    acceleration: NDArray[np.float64]
    columns: NDArray[np.float64]


def empty_columns(number: int) -> NDArray[np.float64]:
    """Return memory for the columns of `SortedBodies`, for some bodies; zeros behind them."""
    columns = np.empty((4, number + LANES))
    columns[:, number:] = 0
    return columns


class Tree(NamedTuple):
    """What the passes over a tree share; see `Cells` and the classes above."""

    cells: Cells
    bodies: SortedBodies
    expansions: Expansions
    tables: Tables


class Opening(NamedTuple):
    """When an expansion is accurate enough.

    Attributes
    ----------
    error : float
        Largest estimated error, relative to the acceleration.
    angle : float
        Largest ratio of two cells' radii to their distance.
    hopeless : float
        See `expansions.Limits`.
    eps2 : float
        The softening length squared.
    """

    error: float
    angle: float
    hopeless: float
    eps2: float


ACCELERATIONS, POTENTIALS, CELLS = range(3)
"""What a walk is for."""


SINGLE, MIXED, EITHER, DOUBLE = range(4)
"""How nearby bodies are summed; see `Expansion.pairs`."""


class Walk(NamedTuple):
    """How the tree is walked.

    Attributes
    ----------
    capacity : int
        Most sources that a cell may leave to its children.
    wanted : int
        `ACCELERATIONS`, `POTENTIALS`, or `CELLS` that are opened.
    pairs : int
        `SINGLE`, `MIXED`, `EITHER`, or `DOUBLE`: how nearby bodies are summed.
    cost_of_expansion : float
        The work for an expansion, in pairs of bodies.
    """

    capacity: int
    wanted: int
    pairs: int
    cost_of_expansion: float


DONE, TOO_SHORT, MISSING = range(3)
"""How a walk ends: with all sums, for lack of memory for sources, or of a cell of another rank."""


class Output(NamedTuple):
    """The result of a walk.

    Attributes
    ----------
    sums : (N, 4) array of float64
        Sums of m d / r^3 in the first columns, or of m / r in the last one.
    ends : (R,) array of int8
        How the walk below each root ended; where it is not `DONE`, its sums are not complete.
    costs : (R,) array of float64
        The work below each root, in pairs of bodies.
    opened : (C,) array of bool
        Set at cells of which children or bodies are needed, where that is what a walk is for.
    """

    sums: NDArray[np.float64]
    ends: NDArray[np.int8]
    costs: NDArray[np.float64]
    opened: NDArray[np.bool_]


@register_jitable
def pitch_of(terms: int) -> int:
    """Return the length of a row of multipoles."""
    return -(-terms // LANES) * LANES
