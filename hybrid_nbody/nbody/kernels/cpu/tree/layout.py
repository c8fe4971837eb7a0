"""What the kernels of the tree take: expansions, bodies along the curve, the limits of errors."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.simd import LANES
from hybrid_nbody.nbody.kernels.cpu.tree.cells import Cells

SUMMARY = 16
"""Numbers of a cell's summary: a row fits a cache line."""

MOST_TERMS = 165
"""Terms of an expansion of order 8."""

RADIUS, EDGE = 14, 15
"""Columns of a summary; those before hold the weighted powers of the orders."""

Floats = NDArray[Any]


class Expansions(NamedTuple):
    """The expansions of C cells, lengths in units of a cell's own edge.

    Behind the last cell there is one more row, of a cell without mass that fills up vectors.

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


class SortedBodies(NamedTuple):
    """N bodies along the curve, in units of the kernels.

    Attributes
    ----------
    position : (N, 3) array of float64
    mass : (N,) array of float64
    acceleration : (N,) array of float64
        The length of the last one: errors are allowed in proportion to it.
    offset : (3, N + LANES) array of the working type
        Positions about the centre of the leaf.
    weight : (N + LANES,) array of the working type
        Masses.
    """

    position: NDArray[np.float64]
    mass: NDArray[np.float64]
    acceleration: NDArray[np.float64]
    offset: Floats
    weight: Floats


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
    eps2 : float
        The softening length squared.
    """

    error: float
    angle: float
    eps2: float


class Walk(NamedTuple):
    """How the tree is walked.

    Attributes
    ----------
    capacity : int
        Most sources that a cell may leave to its children.
    potentials : bool
        Whether potentials are summed, or accelerations.
    """

    capacity: int
    potentials: bool


class Output(NamedTuple):
    """The result of a walk.

    Attributes
    ----------
    sums : (N, 4) array of float64
        Sums of m d / r^3 in the first columns, or of m / r in the last one.
    complete : (R,) array of bool
        Whether there was room for all sources of a root; elsewhere its sums are not complete.
    """

    sums: NDArray[np.float64]
    complete: NDArray[np.bool_]


def pitch_of(terms: int) -> int:
    """Return the length of a row of multipoles."""
    return -(-terms // LANES) * LANES
