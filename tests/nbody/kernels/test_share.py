"""The numbers of cells that ranks give them, against those of a tree of all bodies."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hybrid_nbody.nbody.forces.tree.cuts import Cuts
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.parts import CELL, Parts
from hybrid_nbody.nbody.kernels.share import numbering_of, share_of, whole_share

LEVELS = 6
MOST = 3
"""Bodies of a leaf above the last level."""


class Octree:
    """The cells of sorted keys: their first bodies, the bodies behind them and their levels."""

    def __init__(self, keys):
        self.keys = keys
        self.rows = []
        self._divide(0, len(keys), 0)
        self.rows.sort(key=lambda row: (row[2], row[0]))
        self.first, self.last, self.level = np.array(self.rows, int).reshape(-1, 3).T

    def _divide(self, first, last, level):
        if first == last:
            return
        self.rows.append((first, last, level))
        if last - first <= MOST or level == LEVELS - 1:
            return
        digits = self.keys[first:last] >> 3 * (LEVELS - 2 - level) & 7
        bounds = first + np.searchsorted(digits, np.arange(9))
        for k in range(8):
            self._divide(bounds[k], bounds[k + 1], level + 1)

    def has_children(self, row):
        first, last, level = row
        return last - first > MOST and level < LEVELS - 1


def parts_of(tree, most, cuts):
    """Return parts of at most `most` bodies, or leaves; each cut of them begins another rank."""
    cells, parts = [], []

    def visit(row):
        first, last, level = row
        is_part = last - first <= most or not tree.has_children(row)
        cells.append((first, last - first, 0, 0 if is_part else 1, level))
        if is_part:
            parts.append(len(cells) - 1)
            return
        for below in tree.rows:
            if below[2] == level + 1 and first <= below[0] < last:
                visit(below)

    visit(tree.rows[0])
    owners = np.searchsorted(
        np.sort([cut % (len(parts) + 1) for cut in cuts]), np.arange(len(parts)), "right"
    )
    return Parts(np.array(cells, CELL), np.array(parts), owners)


def random_tree(seed, number):
    """Return a tree of bodies, some of which crowd in a corner of the cube."""
    random = np.random.default_rng(seed)
    keys = random.integers(0, 8 ** (LEVELS - 1), number)
    keys[: number // 3] >>= 9
    return Octree(np.sort(keys))


def numberings(tree, parts, size):
    """Return what every rank makes of the cells that start on each."""
    shares = [share_of(parts, rank, size, LEVELS) for rank in range(size)]
    ends = shares[0].starts[1:]
    counts = np.zeros((size, LEVELS), np.int64)
    np.add.at(counts, (np.searchsorted(ends, tree.first, "right"), tree.level), 1)
    return [numbering_of(share, counts) for share in shares]


@given(
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.integers(3, 30),
    st.lists(st.integers(0, 99), max_size=3),
)
def test_ranks_number_cells_like_a_tree_of_all_bodies(seed, number, most, cuts):
    tree = random_tree(seed, number)
    parts = parts_of(tree, most, cuts)
    size = len(cuts) + 1
    for rank, numbering in enumerate(numberings(tree, parts, size)):
        begin, end = numbering.share.starts[rank : rank + 2]
        assert numbering.total == len(tree.first)
        assert numbering.depth == tree.level.max()
        mine = np.flatnonzero((tree.first < end) & (begin < tree.last)) if begin < end else []
        for level in range(LEVELS):
            first, count = numbering.own_first[level], numbering.own_counts[level]
            found = [cell for cell in mine if tree.level[cell] == level]
            assert found == list(range(first, first + count))
        starts = numbering.share.starts[1:-1]
        both = (tree.first[:, None] < starts) & (starts < tree.last[:, None])
        shared = [cell for level in range(LEVELS) for cell in numbering.shared(level)]
        assert shared == np.flatnonzero(both.any(axis=1)).tolist()


@given(st.integers(0, 10**6), st.integers(1, 60), st.lists(st.integers(0, 99), max_size=3))
def test_cells_of_a_level_that_start_on_a_rank_follow_one_another(seed, number, cuts):
    tree = random_tree(seed, number)
    parts = parts_of(tree, 8, cuts)
    for rank, numbering in enumerate(numberings(tree, parts, len(cuts) + 1)):
        begin, end = numbering.share.starts[rank : rank + 2]
        made = np.flatnonzero((begin <= tree.first) & (tree.first < end))
        for level in range(LEVELS):
            first = numbering.base[rank, level]
            found = made[tree.level[made] == level]
            np.testing.assert_array_equal(found, np.arange(first, first + len(found)))
        earlier = [cell for cell in numbering.started_before if begin < end]
        assert all(tree.first[cell] < begin < tree.last[cell] for cell in earlier)


@given(
    st.integers(0, 10**6), st.integers(2, 60), st.lists(st.integers(0, 99), min_size=1, max_size=3)
)
def test_ends_of_cells_that_go_on_behind_the_last_body(seed, number, cuts):
    tree = random_tree(seed, number)
    parts = parts_of(tree, 8, cuts)
    for rank, numbering in enumerate(numberings(tree, parts, len(cuts) + 1)):
        begin, end = numbering.share.starts[rank : rank + 2]
        if begin == end:
            continue
        for cell in np.flatnonzero((tree.first < end) & (end <= tree.last)):
            assert numbering.share.ends[tree.level[cell]] == tree.last[cell]


def counts_between(keys, bounds):
    """Return how many keys lie from each bound to the next."""
    return np.diff(np.searchsorted(keys, bounds.astype(np.int64)))


@given(
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.lists(st.integers(0, 8 ** (LEVELS - 1)), min_size=1, max_size=3),
    st.integers(0, LEVELS - 1),
)
def test_shares_begin_at_cuts_unless_they_lie_within_leaves(seed, number, keys, level):
    """As if the cuts were those of other bodies; some lie where coarse cells begin."""
    tree = random_tree(seed, number)
    keys = sorted(key - key % 8**level for key in keys)
    cuts = Cuts(keys, LEVELS - 1, Cube(0, 0, 0, 1), MOST)
    between = counts_between(tree.keys, cuts.bounds)
    parts = cuts.parts(between)
    starts = np.searchsorted(tree.keys, keys)
    around = (tree.first[:, None] < starts) & (starts < tree.last[:, None])
    leaf = np.array([not tree.has_children(row) for row in tree.rows])
    assert (parts is None) == around[leaf].any()
    taken = cuts.taken(between[None])[0]
    np.testing.assert_array_equal(np.cumsum(taken)[:-1], starts)
    if parts is None:
        return
    size = len(keys) + 1
    for rank, numbering in enumerate(numberings(tree, parts, size)):
        share = numbering.share
        np.testing.assert_array_equal(share.starts[1:-1], starts)
        shared = [cell for some in range(LEVELS) for cell in numbering.shared(some)]
        assert shared == np.flatnonzero(around.any(axis=1)).tolist()
        begin, end = share.starts[rank : rank + 2]
        levels = np.repeat(share.part_levels, np.diff(share.part_ends, prepend=0))
        assert len(levels) == end - begin
        for body, level_of_part in enumerate(levels, begin):
            divided = (tree.first <= body) & (body < tree.last) & around.any(axis=1)
            assert level_of_part == tree.level[divided].max(initial=-1) + 1
        if begin < end:
            for cell in np.flatnonzero((tree.first < end) & (end <= tree.last)):
                assert share.ends[tree.level[cell]] == tree.last[cell]


def test_one_rank_has_all_cells():
    tree = random_tree(1, 50)
    counts = np.bincount(tree.level, minlength=LEVELS)[None]
    numbering = numbering_of(whole_share(50, LEVELS), counts)
    np.testing.assert_array_equal(numbering.own_counts, counts[0])
    assert numbering.own_before[-1] == numbering.total == len(tree.first)
    np.testing.assert_array_equal(numbering.base[0], numbering.own_first)
    assert len(numbering.started_before) == 0
    assert all(len(numbering.shared(level)) == 0 for level in range(LEVELS))


def test_parts_tell_the_level_of_each_body():
    tree = random_tree(2, 40)
    parts = parts_of(tree, 8, [2])
    share = share_of(parts, 1, 2, LEVELS)
    assert share.part_ends[-1] == share.number
    assert len(share.part_levels) == len(parts.of(1))
