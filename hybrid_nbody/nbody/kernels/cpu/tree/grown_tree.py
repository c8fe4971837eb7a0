"""The tree as far as one rank knows it."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.cpu.tree.cells import (
    Cells,
    Integers,
    Rule,
    find_least,
    grown,
    joined,
)
from hybrid_nbody.nbody.kernels.cpu.tree.curve import Curve
from hybrid_nbody.nbody.kernels.cpu.tree.layout import (
    EDGE,
    SUMMARY,
    Expansions,
    Opening,
    SortedBodies,
    Tables,
    pitch_of,
)
from hybrid_nbody.nbody.kernels.cpu.tree.rows import sorted_bodies
from hybrid_nbody.nbody.kernels.cpu.tree.upward import find_multipoles
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.expansions import MANY, Expansion, limits_of, width_of_cells
from hybrid_nbody.nbody.kernels.multi_indices import Indices, indices_of
from hybrid_nbody.nbody.kernels.parts import Parts

NOT_HERE = -1
"""In the place of the bodies or children of a cell that another rank did not send."""

Vectors = NDArray[np.float64]


class Method:
    """What does not change from force to force.

    Parameters
    ----------
    expansion : Expansion
    eps2 : float
        The softening length squared, in units of the kernels.
    mass : float
        Of all bodies.

    Attributes
    ----------
    dtype : numpy.dtype
        Of the multipoles.
    tables : Tables
    binomials : tuple of float
    pitch : int
        Length of a row of multipoles.
    """

    def __init__(self, expansion: Expansion, eps2: float, mass: float) -> None:
        self.expansion = expansion
        self.eps2 = eps2
        self.mass = mass
        self.dtype = np.dtype(np.float64 if expansion.double else np.float32)
        indices = indices_of(expansion.order)
        self.terms = len(indices.all)
        self.pitch = pitch_of(self.terms)
        self.tables = _tables(indices)
        self.binomials = tuple(map(float, self.tables.binomials))

    def opening(self, known: bool, number: int) -> Opening:
        """Return when an expansion is accurate enough; see `limits_of`."""
        return Opening(*limits_of(self.expansion, known, number), self.eps2)


class Root(NamedTuple):
    """The edge of the root, and the number of its bodies."""

    edge: float
    bodies: int


class Splitting:
    """The rule by which cells are divided.

    Cells with more bodies than a leaf holds are. So are those that are wide for the accelerations
    of their bodies, see `width_of_cells`, where bodies are many.

    Parameters
    ----------
    method : Method
    opening : Opening
    root : Root
    acceleration : (N,) array of float64
        The lengths of the bodies' last accelerations along the curve.
    """

    def __init__(self, method: Method, opening: Opening, root: Root, acceleration: Vectors) -> None:
        self.capacity = method.expansion.capacity
        self.root = root
        self.acceleration = acceleration
        self.reach = width_of_cells(method.expansion, opening.error, method.mass)

    def __call__(self, first: Integers, last: Integers, level: int) -> NDArray[np.bool_]:
        """Return which cells of a level are divided; see `cells.grown`."""
        least = np.empty(len(first))
        find_least(first, last, self.acceleration, least)
        with np.errstate(divide="ignore"):
            width = self.reach / np.sqrt(least)
        is_wide = (math.ldexp(self.root.edge, -level) > width) & (self.root.bodies > MANY)
        size = last - first
        return (size > self.capacity) | (is_wide & (size > 1))


class GrownTree(NamedTuple):
    """A tree.

    Attributes
    ----------
    method : Method
    parts : Parts
    rank : int
        This rank.
    cube : Cube
    cells : Cells
        From the root to the parts of all ranks; then those below this rank's parts; then those that
        other ranks sent.
    bodies : SortedBodies
    expansions : Expansions
    opening : Opening
    """

    method: Method
    parts: Parts
    rank: int
    cube: Cube
    cells: Cells
    bodies: SortedBodies
    expansions: Expansions
    opening: Opening

    @property
    def own(self) -> NDArray[np.int64]:
        """Return this rank's parts."""
        return self.parts.of(self.rank)

    @property
    def multipoles(self) -> NDArray[Any]:
        """Return the multipoles, a row a cell, and one more."""
        return self.expansions.multipole.reshape(-1, self.method.pitch)

    def find_multipoles(self, which: NDArray[np.int64]) -> None:
        """Find the multipoles of some cells, the lowest levels first."""
        levels = self.cells.level[which]
        arrays = (self.cells, self.bodies, self.expansions, self.method.tables)
        for level in reversed(range(levels.max(initial=-1) + 1)):
            some = np.ascontiguousarray(which[levels == level])
            find_multipoles(some, self.cube.edge, *arrays)


def grow(
    method: Method, parts: Parts, rank: int, cube: Cube, bodies: tuple[Vectors, Curve]
) -> GrownTree:
    """Return a tree with the multipoles of this rank's parts and of the cells below them.

    Parameters
    ----------
    method : Method
    parts : Parts
    rank : int
    cube : Cube
    bodies : tuple
        Positions and masses, and lengths of the last accelerations where there are any, of the
        bodies of the parts as they came in, (N, 4 or 5); and the curve.
    """
    rows, curve = bodies
    along_curve = sorted_bodies(rows, curve)
    root = Root(cube.edge, int(parts.cells["size"][0]))
    opening = method.opening(rows.shape[1] > 4, root.bodies)
    rule = Splitting(method, opening, root, along_curve.acceleration)
    cells = _cells(parts, rank, curve, rule)
    tree = GrownTree(
        method=method,
        parts=parts,
        rank=rank,
        cube=cube,
        cells=cells,
        bodies=along_curve,
        expansions=_empty_expansions(method, len(cells.first), cube),
        opening=opening,
    )
    below = np.arange(len(parts.cells), len(cells.first))
    tree.find_multipoles(np.append(tree.own, below))
    return tree


def _cells(parts: Parts, rank: int, curve: Curve, rule: Rule) -> Cells:
    """Return the cells from the root to the parts, and those below this rank's."""
    own = parts.of(rank)
    known = parts.cells
    first = known["start"] - known["start"][own[:1]].sum()  # this rank's bodies are 0, 1, …
    top = Cells(
        first=first.astype(np.int32),
        last=(first + known["size"]).astype(np.int32),
        child=known["child"].copy(),
        children=known["children"].copy(),
        level=known["level"].copy(),
    )
    others = parts.parts[parts.owners != rank]
    for values in (top.first, top.last, top.child):
        values[others] = NOT_HERE
    roots = Cells(*(values[own] for values in top))
    below = grown(roots, curve.keys, rule)
    below.child[:] += len(first) - len(own)
    top.child[own] = below.child[: len(own)]
    top.children[own] = below.children[: len(own)]
    return joined([top, Cells(*(values[len(own) :] for values in below))])


def _empty_expansions(method: Method, number: int, cube: Cube) -> Expansions:
    """Return memory for the expansions of cells, the row behind them filled."""
    expansions = Expansions(
        centre=np.empty((number + 1, 4)),
        box=np.empty((number, 6)),
        summary=np.empty((number + 1, SUMMARY), np.float32),
        multipole=np.empty((number + 1) * method.pitch, method.dtype),
        tolerance=np.empty(number),
        local=np.empty((number, method.terms)),
    )
    # no mass, and as far from all bodies as they extend
    expansions.centre[-1] = (cube.x - cube.edge, cube.y, cube.z, 0)
    expansions.summary[-1] = 0
    expansions.summary[-1, EDGE] = cube.edge
    expansions.multipole[-method.pitch :] = 0
    return expansions


def _tables(indices: Indices) -> Tables:
    """Return the tables of an order as compiled loops read them."""
    return Tables(
        orders=indices.orders,
        inverses=1 / indices.factorials,
        halves=np.exp2(-indices.orders.astype(float)),
        parent=indices.parent,
        axis=indices.axis,
        source=indices.shift.source,
        power=indices.shift.power,
        starts=indices.shift.starts,
        gradient=indices.gradient,
        norms=indices.norms,
        binomials=np.array([math.comb(indices.order, k) for k in range(indices.order + 1)], float),
    )
