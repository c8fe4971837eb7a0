"""A rank's share of the bodies along the curve, and the numbers of its cells.

Parts are cells, so that a cell lies on one rank or is one of those from the root to the parts.
Those that several ranks share hold the body before the first one of a rank, and that body.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.parts import Parts

Integers = NDArray[np.int64]

NONE = -1
"""Level of the cells that a rank shares with those before it where there are none."""


@dataclass(frozen=True)
class Share:
    """The bodies of all ranks along the curve, as one of them sees them.

    Attributes
    ----------
    rank : int
    starts : (S + 1,) array of int64
        Those of rank r are starts[r] … starts[r + 1] - 1.
    shared : (S,) array of int64
        The deepest level of a cell that holds the first body of each rank and bodies of ranks
        before it, or `NONE`.
    ends : (L,) array of int64
        For each level, the body behind the cell that holds this rank's last one.
    part_ends, part_levels : (R,) array of int64
        Where this rank's parts end, counted from its first body, and their levels.
    """

    rank: int
    starts: Integers
    shared: Integers
    ends: Integers
    part_ends: Integers
    part_levels: Integers

    @property
    def first(self) -> int:
        """Return this rank's first body."""
        return int(self.starts[self.rank])

    @property
    def number(self) -> int:
        """Return the number of this rank's bodies."""
        return int(self.starts[self.rank + 1]) - self.first

    @property
    def total(self) -> int:
        """Return the number of bodies of all ranks."""
        return int(self.starts[-1])


def whole_share(number: int, levels: int) -> Share:
    """Return the share of a rank that has all bodies.

    Parameters
    ----------
    number : int
        Of the bodies.
    levels : int
        Of cells, that of the root included.
    """
    nothing = np.zeros(0, np.int64)
    starts = np.array([0, number])
    return Share(0, starts, np.array([NONE]), np.full(levels, number), nothing, nothing)


def share_of(parts: Parts, rank: int, size: int, levels: int) -> Share:
    """Return the share of a rank.

    Parameters
    ----------
    parts : Parts
    rank : int
    size : int
        The number of ranks.
    levels : int
        Of cells, that of the root included.
    """
    sizes = parts.cells["size"][parts.parts]
    bodies = np.bincount(parts.owners, weights=sizes, minlength=size).astype(np.int64)
    starts = np.append(0, np.cumsum(bodies))
    shared = [
        _shared_level(parts, start) if number else NONE
        for start, number in zip(starts[:-1].tolist(), bodies, strict=True)
    ]
    own = parts.of(rank)
    return Share(
        rank=rank,
        starts=starts,
        shared=np.array(shared),
        ends=_ends(parts, int(starts[rank + 1]), levels),
        part_ends=np.cumsum(parts.cells["size"][own]),
        part_levels=parts.cells["level"][own].astype(np.int64),
    )


def _around(parts: Parts, body: int) -> NDArray[Any]:
    """Return the cells that hold a body and the one before it."""
    cells = parts.cells
    return cells[(cells["start"] < body) & (body < cells["start"] + cells["size"])]


def _shared_level(parts: Parts, body: int) -> int:
    """Return the deepest level of a cell that holds a body and the one before it, or `NONE`."""
    return int(_around(parts, body)["level"].max(initial=NONE))


def _ends(parts: Parts, body: int, levels: int) -> Integers:
    """Return, for each level, the body behind the cell that holds the body before `body`."""
    ends = np.full(levels, body)
    around = _around(parts, body)
    ends[around["level"]] = around["start"] + around["size"]
    return ends


class Numbering(NamedTuple):
    """The numbers of cells: level by level, and along the curve on each.

    Attributes
    ----------
    share : Share
    made : (S,) array of int64
        The number of cells that start at a body of each rank.
    depth : int
        The deepest level that has cells.
    base : (S, L) array of int64
        The number of the first cell of each level that starts on each rank.
    own_first, own_counts : (L,) array of int64
        The first cell of each level that holds bodies of this rank, and the number of these.
    own_before : (L + 1,) array of int64
        The number of such cells on higher levels, and of all.
    """

    share: Share
    made: Integers
    depth: int
    base: Integers
    own_first: Integers
    own_counts: Integers
    own_before: Integers

    @property
    def total(self) -> int:
        """Return the number of cells."""
        return int(self.made.sum())

    @property
    def started_before(self) -> Integers:
        """Return the cells with bodies of this rank that start on another one."""
        return self.own_first[: self.share.shared[self.share.rank] + 1]

    def shared(self, level: int) -> Integers:
        """Return the cells of a level that several ranks share."""
        ranks = np.flatnonzero(self.share.shared >= level)
        return np.unique(self.base[ranks, level] - 1)


def numbering_of(share: Share, counts: Integers) -> Numbering:
    """Return the numbers of cells.

    Parameters
    ----------
    share : Share
    counts : (S, L) array of int64
        The number of cells of each level that start at a body of each rank.
    """
    rank = share.rank
    on_levels = counts.sum(axis=0)
    base = np.cumsum(on_levels) - on_levels + np.cumsum(counts, axis=0) - counts
    started_before = np.arange(len(on_levels)) <= share.shared[rank]
    own_counts = counts[rank] + started_before
    own_before = np.zeros(len(on_levels) + 1, np.int64)
    np.cumsum(own_counts, out=own_before[1:])
    return Numbering(
        share=share,
        made=counts.sum(axis=1),
        depth=int(np.flatnonzero(on_levels)[-1]) if on_levels.any() else 0,
        base=base,
        own_first=base[rank] - started_before,
        own_counts=own_counts,
        own_before=own_before,
    )
