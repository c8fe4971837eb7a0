"""Bodies that are drawn at random: any range of them by itself, whoever draws the others."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ranks import on_threads

from hybrid_nbody.nbody import drawn
from hybrid_nbody.nbody.drawn import BLOCK, DrawnBodies
from hybrid_nbody.nbody.initial_conditions import DRAWN
from hybrid_nbody.parallel.partition import Partition

NUMBER = 3 * BLOCK + 100
CENTRED = ("plummer", "uniform-sphere", "cold-sphere")


def same_bodies(first, second):
    """Return whether two sets of bodies have the same bits."""
    names = ("position", "velocity", "mass", "id")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)


def part_of(bodies, first, last):
    """Return some of the bodies that are held."""
    return bodies.share(slice(first, last))


@given(
    kind=st.sampled_from(sorted(DRAWN)),
    number=st.integers(1, NUMBER),
    seed=st.integers(0, 2**70),
    data=st.data(),
)
def test_any_split_gives_the_same_bodies(kind, number, seed, data):
    source = DRAWN[kind](n=number, seed=seed)
    whole = source.all()
    cuts = sorted(data.draw(st.lists(st.integers(0, number), max_size=3)))
    for first, last in zip([0, *cuts], [*cuts, number], strict=True):
        found = DRAWN[kind](n=number, seed=seed).rows(first, last)
        assert same_bodies(found, part_of(whole, first, last))


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("number", [1, 2, BLOCK, NUMBER])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_ranks_draw_the_bodies_of_one(kind, number, size):
    """With shares in the ratio 0 : 1 : 2 : 3, some of them empty."""
    shares = Partition.weighted(number, [*range(size)] if size > 1 else [1.0])

    def own_rows(rank):
        source = DRAWN[kind](n=number, seed=7)
        source.find_centre(rank)
        own = shares.share(rank.rank)
        return own, source.rows(own.start, own.stop)

    whole = DRAWN[kind](n=number, seed=7).all()
    for own, found in on_threads(size, own_rows):
        assert same_bodies(found, part_of(whole, own.start, own.stop))


@pytest.mark.parametrize("kind", DRAWN)
def test_blocks_and_seeds_differ(kind):
    position = DRAWN[kind](n=2 * BLOCK, seed=1).all().position
    other = DRAWN[kind](n=2 * BLOCK, seed=2).all().position
    assert len(np.unique(np.concatenate([position, other])[:, 0])) == 4 * BLOCK


@pytest.mark.parametrize("kind", sorted(set(DRAWN) - set(CENTRED)))
def test_more_bodies_leave_the_first_ones_where_they_are(kind):
    few = DRAWN[kind](n=BLOCK + 10, seed=1).all()
    many = DRAWN[kind](n=NUMBER, seed=1).all()
    np.testing.assert_array_equal(few.position, many.position[: BLOCK + 10])


@pytest.mark.parametrize("kind", CENTRED)
def test_the_centre_of_mass_is_at_rest_at_the_origin(kind):
    bodies = DRAWN[kind](n=NUMBER, seed=3).all()
    for values in (bodies.position, bodies.velocity):
        np.testing.assert_allclose(values.mean(axis=0), 0, rtol=0, atol=1e-16)


def test_a_sphere_of_the_largest_numbers_is_centred():
    bodies = DRAWN["cold-sphere"](n=NUMBER, seed=3, radius=1.7e308).all()
    assert np.isfinite(bodies.position).all()


def test_a_speed_beyond_all_numbers_is_left_to_the_guard():
    with np.errstate(all="ignore"):
        bodies = DRAWN["plummer"](n=NUMBER, seed=3, G=np.inf).all()
    assert np.isfinite(bodies.position).all()
    assert not np.isfinite(bodies.velocity).any()


# ---- What a rank does and holds ------------------------------------------------------------------


class CountedDraw:
    """Draws zeros, and counts the blocks."""

    def __init__(self):
        self.blocks = 0

    def __call__(self, random):
        self.blocks += 1
        return np.zeros((2, BLOCK, 3))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ranks_share_the_work_of_finding_the_centre(size):
    def blocks_drawn(rank):
        draw = CountedDraw()
        source = DrawnBodies(8 * BLOCK, 1, 1.0, draw, centred=True)
        source.find_centre(rank)
        first = rank.rank * len(source) // size
        source.rows(first, first + len(source) // size)
        return draw.blocks

    assert on_threads(size, blocks_drawn) == [2 * 8 // size] * size


def peak_of_a_rank(size):
    """Return the most memory that the last of some ranks takes to draw its bodies."""
    blocks = 64
    source = DRAWN["plummer"](n=blocks * BLOCK, seed=1)
    share = Partition.equal(len(source), size).share(size - 1)
    tracemalloc.start()
    try:
        source.rows(share.start, share.stop)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_memory_of_a_rank_falls_with_their_number():
    """A body takes 64 bytes; a block while it is drawn is not shared, and neither is the centre."""
    of_a_block = peak_of_a_rank(64)
    peaks = {size: peak_of_a_rank(size) for size in (1, 2, 4, 8)}
    for size, peak in peaks.items():
        bodies = 64 * BLOCK // size
        assert 64 * bodies < peak < 64 * bodies + of_a_block


def test_what_stands_for_all_bodies_is_bounded(monkeypatch):
    monkeypatch.setattr(drawn, "SAMPLE", 1000)
    assert [len(DRAWN["plummer"](n=n, seed=1).sample()) for n in (10, 1000, 10**9)] == [
        10,
        1000,
        1000,
    ]
