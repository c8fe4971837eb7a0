"""What ranks tell each other of their trees: all parts, and the cells that others may open."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.cpu.tree.cells import Cells, joined
from hybrid_nbody.nbody.kernels.cpu.tree.grown_tree import NOT_HERE, GrownTree, Method
from hybrid_nbody.nbody.kernels.cpu.tree.layout import (
    RADIUS,
    SUMMARY,
    Expansions,
    SortedBodies,
    empty_columns,
)
from hybrid_nbody.nbody.kernels.parts import Essential

Rows = NDArray[Any]


# ---- Parts ---------------------------------------------------------------------------------------


def part_rows(tree: GrownTree) -> Rows:
    """Return what all ranks must know of this rank's parts, a row each."""
    own = tree.own
    rows = np.empty(len(own), _part_type(tree.method))
    rows["children"] = tree.cells.children[own]
    rows["multipole"] = tree.multipoles[own]
    for name in ("centre", "box", "summary", "tolerance"):
        rows[name] = getattr(tree.expansions, name)[own]
    return rows


def set_parts(tree: GrownTree, rows: Rows) -> None:
    """Take the rows of all parts, and find the multipoles from there up to the root."""
    parts = tree.parts.parts
    tree.cells.children[parts] = rows["children"]
    tree.multipoles[parts] = rows["multipole"]
    for name in ("centre", "box", "summary", "tolerance"):
        getattr(tree.expansions, name)[parts] = rows[name]
    tree.find_multipoles(np.flatnonzero(tree.parts.cells["children"]))


def _part_type(method: Method) -> np.dtype[Any]:
    return np.dtype(
        [("children", "i4"), *_expansion_columns(method), ("box", "f8", 6), ("tolerance", "f8")]
    )


def _expansion_columns(method: Method) -> list[Any]:
    multipole = ("multipole", method.dtype, method.pitch)
    return [("centre", "f8", 4), ("summary", "f4", SUMMARY), multipole]


# ---- Targets -------------------------------------------------------------------------------------

_TARGET = np.dtype(
    [
        ("child", "i4"),
        ("children", "i4"),
        ("level", "i4"),
        ("centre", "f8", 4),
        ("radius", "f4"),
        ("tolerance", "f8"),
    ]
)


def target_rows(tree: GrownTree) -> Rows:
    """Return this rank's cells as targets: those of its parts, and then those below them.

    A row's child counts the rows behind the parts.
    """
    cells = np.append(tree.own, np.arange(len(tree.parts.cells), len(tree.cells.first)))
    rows = np.empty(len(cells), _TARGET)
    for name in ("child", "children", "level"):
        rows[name] = getattr(tree.cells, name)[cells]
    rows["child"] -= len(tree.parts.cells)
    rows["centre"] = tree.expansions.centre[cells]
    rows["radius"] = tree.expansions.summary[cells, RADIUS]
    rows["tolerance"] = tree.expansions.tolerance[cells]
    return rows


def with_targets(tree: GrownTree, rows: Rows, number: int) -> GrownTree:
    """Return a tree with the targets of another rank behind its cells.

    Parameters
    ----------
    tree : GrownTree
    rows : structured array
        See `target_rows`.
    number : int
        The first rows are those of parts, this number of them.
    """
    nothing = np.zeros(len(rows), np.int32)  # no bodies: nothing overlaps with them
    child = (rows["child"] + len(tree.cells.first) + number).astype(np.int32)
    targets = Cells(nothing, nothing, child, rows["children"], rows["level"])
    summary = np.zeros((len(rows), SUMMARY), np.float32)
    summary[:, RADIUS] = rows["radius"]
    before = tree.expansions
    return tree._replace(
        cells=joined([tree.cells, targets]),
        expansions=before._replace(
            centre=np.concatenate([before.centre[:-1], rows["centre"]]),
            summary=np.concatenate([before.summary[:-1], summary]),
            tolerance=np.concatenate([before.tolerance, rows["tolerance"]]),
        ),
    )


# ---- Cells that others open ----------------------------------------------------------------------


def essential(tree: GrownTree, opened: NDArray[np.bool_]) -> Essential:
    """Return the cells below this rank's parts that another rank opens, and their bodies.

    The rows of this rank's parts come first. A row's child counts the rows behind these; its bodies
    are counted from the first one sent.
    """
    is_leaf = tree.cells.children == 0
    cells = np.append(tree.own, _below(tree, np.flatnonzero(opened & ~is_leaf)))
    leaves = cells[opened[cells] & is_leaf[cells]]
    counts = tree.cells.last[leaves] - tree.cells.first[leaves]
    rows = np.empty(len(cells), np.dtype([*_CELL_COLUMNS, *_expansion_columns(tree.method)]))
    for name in ("children", "level"):
        rows[name] = getattr(tree.cells, name)[cells]
    for name in ("centre", "summary"):
        rows[name] = getattr(tree.expansions, name)[cells]
    rows["multipole"] = tree.multipoles[cells]
    rows["child"] = _places(tree, cells[len(tree.own) :])[tree.cells.child[cells]]
    rows["child"][~opened[cells] | is_leaf[cells]] = NOT_HERE
    rows["first"] = NOT_HERE
    rows["last"] = NOT_HERE
    bodies_of = opened[cells] & is_leaf[cells]
    rows["first"][bodies_of] = np.cumsum(counts) - counts
    rows["last"][bodies_of] = np.cumsum(counts)
    sent = _ranges(tree.cells.first[leaves], counts)
    bodies = np.column_stack([tree.bodies.position[sent], tree.bodies.mass[sent]])
    return Essential(rows, bodies)


_CELL_COLUMNS = [(name, "i4") for name in Cells._fields]


def _below(tree: GrownTree, opened: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the children of opened cells, siblings next to each other."""
    mine = np.zeros(len(tree.cells.first), bool)
    mine[tree.own] = True
    mine[len(tree.parts.cells) :] = True
    opened = opened[mine[opened]]
    return np.sort(_ranges(tree.cells.child[opened], tree.cells.children[opened]))


def _places(tree: GrownTree, sent: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the place of each cell among those sent."""
    places = np.full(len(tree.cells.first) + 1, NOT_HERE, np.int32)
    places[sent] = np.arange(len(sent))
    return places


def _ranges(first: NDArray[np.int32], counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return first[k], first[k] + 1, … for as many as counts[k], one k after another."""
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(first - before, counts)


# ---- Cells of others -----------------------------------------------------------------------------


def grafted(tree: GrownTree, received: Sequence[tuple[int, Essential]]) -> GrownTree:
    """Return a tree with the cells and bodies that other ranks sent.

    Parameters
    ----------
    tree : GrownTree
        The children and bodies of these ranks' parts are set.
    received : sequence of (int, Essential)
        From each of them.
    """
    cells = [tree.cells]
    number = len(tree.cells.first)
    bodies = len(tree.bodies.mass)
    for rank, sent in received:
        parts = tree.parts.of(rank)
        arrived = _linked(sent.cells, number, bodies)
        for name in ("first", "last", "child"):
            getattr(tree.cells, name)[parts] = getattr(arrived, name)[: len(parts)]
        cells.append(Cells(*(values[len(parts) :] for values in arrived)))
        number += len(sent.cells) - len(parts)
        bodies += len(sent.bodies)
    below = [sent.cells[len(tree.parts.of(rank)) :] for rank, sent in received]
    return tree._replace(
        cells=joined(cells),
        bodies=_with_bodies(tree.bodies, [sent.bodies for _, sent in received]),
        expansions=_with_cells(tree, below),
    )


def _linked(rows: Rows, cells: int, bodies: int) -> Cells:
    """Return cells that were sent, with their places behind `cells` cells and `bodies` bodies."""
    here = rows["first"] != NOT_HERE
    return Cells(
        first=np.where(here, rows["first"] + bodies, NOT_HERE).astype(np.int32),
        last=np.where(here, rows["last"] + bodies, NOT_HERE).astype(np.int32),
        child=np.where(rows["child"] == NOT_HERE, NOT_HERE, rows["child"] + cells).astype(np.int32),
        children=rows["children"],
        level=rows["level"],
    )


def _with_bodies(bodies: SortedBodies, others: Sequence[Rows]) -> SortedBodies:
    """Return bodies with those of other ranks behind them, (M, 4): positions and masses."""
    own = len(bodies.mass)
    columns = empty_columns(own + sum(map(len, others)))
    columns[:, :own] = bodies.columns[:, :own]
    first = own
    for rows in others:
        last = first + len(rows)
        columns[:, first:last] = rows.T
        first = last
    return bodies._replace(columns=columns)


def _with_cells(tree: GrownTree, others: Sequence[Rows]) -> Expansions:
    """Return expansions with those of other ranks' cells before the row behind the last one."""
    before = tree.expansions
    centre = [before.centre[:-1], *(rows["centre"] for rows in others), before.centre[-1:]]
    summary = [before.summary[:-1], *(rows["summary"] for rows in others), before.summary[-1:]]
    above = tree.multipoles
    multipole = [above[:-1], *(rows["multipole"] for rows in others), above[-1:]]
    return before._replace(
        centre=np.concatenate(centre),
        summary=np.concatenate(summary),
        multipole=np.concatenate(multipole).reshape(-1),
    )
