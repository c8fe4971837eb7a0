"""The order and chunks of the sources."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bodies import clustered

from hybrid_nbody.errors import FileError
from hybrid_nbody.nbody.initial_conditions import plummer, random_box
from hybrid_nbody.nbody.precision import CHUNK
from hybrid_nbody.nbody.sources import (
    Order,
    given_order,
    heads_of,
    morton_keys,
    spatial_order,
)
from hybrid_nbody.nbody.state import make_state, set_order


def used(order):
    """Return the starts of the chunks in use, and the end."""
    return np.append(order.starts[order.starts < len(order.bodies)], len(order.bodies))


def assert_is_an_order(order, number):
    """Every body once; chunks cover all of them in turn, none larger than CHUNK."""
    np.testing.assert_array_equal(np.sort(order.bodies), np.arange(number))
    sizes = np.diff(used(order))
    assert sizes.sum() == number
    assert sizes.min() >= 1
    assert sizes.max() <= CHUNK
    assert order.starts[0] == 0


@given(
    number=st.integers(1, 2000),
    seed=st.integers(0, 1000),
    clumps=st.integers(1, 400),
    tightness=st.floats(0, 12),
)
def test_any_bodies_give_an_order(number, seed, clumps, tightness):
    random = np.random.default_rng(seed)
    centres = random.uniform(-1, 1, (clumps, 3))
    position = centres[
        random.integers(0, clumps, number)
    ] + 10**-tightness * random.standard_normal((number, 3))
    assert_is_an_order(spatial_order(position), number)


@pytest.mark.parametrize("number", [1, CHUNK, CHUNK + 1, 1000])
def test_given_order_keeps_the_bodies_in_full_chunks(number):
    order = given_order(number)
    assert_is_an_order(order, number)
    np.testing.assert_array_equal(order.bodies, np.arange(number))
    assert (np.diff(used(order))[:-1] == CHUNK).all()


@pytest.mark.filterwarnings("error")
def test_distances_that_overflow_are_passed_over_in_silence():
    position = 1e300 * np.random.default_rng(1).standard_normal((3 * CHUNK, 3))
    assert_is_an_order(spatial_order(position), len(position))


def test_bodies_at_one_place():
    assert_is_an_order(spatial_order(np.full((700, 3), 0.25)), 700)


@pytest.mark.parametrize("bodies", [plummer(8192, 2), random_box(8192, 1)])
def test_smooth_distributions_are_cut_into_full_chunks(bodies):
    """One sphere in four has a body so far out that the curve leaps there; not this one."""
    assert len(used(spatial_order(bodies.position))) - 1 == 8192 // CHUNK


def test_chunks_do_not_straddle_tight_clusters():
    bodies = clustered(n=4096, clusters=16)
    order = spatial_order(bodies.position)
    ends = used(order)
    extents = [
        np.ptp(bodies.position[order.bodies[a:b]], axis=0).max()
        for a, b in zip(ends, ends[1:], strict=False)
    ]
    assert max(extents) < 3e-3  # clusters of radius 1e-3 in a box of width 2


@pytest.mark.parametrize(("number", "chunks"), [(CHUNK - 1, 1), (CHUNK, 2), (CHUNK + 1, 2)])
def test_bodies_that_fill_no_chunk_are_not_cut(number, chunks):
    position = 1e-3 * np.random.default_rng(1).standard_normal((number, 3))
    position[number // 2 :] += 10.0
    assert spatial_order(position).chunks == chunks


def test_an_order_survives_as_rows():
    order = spatial_order(clustered().position)
    heads = [
        heads_of(order.starts, first, last)
        for first, last in ((0, 1000), (1000, 1000), (1000, 4096))
    ]
    again = Order.from_heads(order.bodies, np.concatenate(heads))
    np.testing.assert_array_equal(again.bodies, order.bodies)
    np.testing.assert_array_equal(again.starts, order.starts)


def test_morton_keys_of_the_corners_of_a_cube():
    corners = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)], dtype=float)
    keys = morton_keys(corners)
    assert (np.diff(keys) > 0).all()
    assert keys[0] == 0
    assert keys[-1] == 2**63 - 1


def test_rows_that_name_a_body_twice_are_no_order():
    with pytest.raises(FileError, match="does not name every body once"):
        Order.from_heads(np.array([0, 2, 2], np.int32), np.array([1, 0, 0], np.uint8))


def test_rows_of_ranks_with_a_chunk_each_may_have_too_many_of_them():
    bodies = np.arange(5, dtype=np.int32)
    assert Order.from_heads(bodies, np.array([1, 1, 1, 0, 0], np.uint8)) is None
    assert used(Order.from_heads(bodies, np.array([1, 0, 1, 0, 0], np.uint8))).tolist() == [0, 2, 5]


def test_the_first_row_of_a_share_starts_a_chunk():
    order = Order.from_heads(np.arange(5, dtype=np.int32), np.array([0, 0, 1, 0, 0], np.uint8))
    assert used(order).tolist() == [0, 2, 5]


def test_no_bodies_have_an_order():
    order = spatial_order(np.zeros((0, 3)))
    assert (len(order.bodies), order.starts.tolist(), order.chunks) == (0, [0], 0)


# ---- On devices ----------------------------------------------------------------------------------

DISTRIBUTIONS = {
    "plummer": lambda: plummer(20000, 1).position,
    "box": lambda: random_box(131072, 2).position,
    "clustered": lambda: clustered(30000, 200).position,
    "a grid, with many at one position": lambda: np.round(random_box(5000, 3).position * 8) / 8,
    "pairs that leap": lambda: np.repeat(random_box(4000, 4).position, 2, axis=0),
    "far from the origin": lambda: plummer(3000, 5).position * 1e16 + 1e17,
    "one": lambda: np.array([[1.0, 2.0, 3.0]]),
    "none": lambda: np.zeros((0, 3)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_device_finds_the_order_of_the_host(backend, name):
    position = DISTRIBUTIONS[name]()
    expected, found = spatial_order(position), spatial_order(backend.upload(position), backend.xp)
    np.testing.assert_array_equal(backend.download(found.bodies), expected.bodies)
    np.testing.assert_array_equal(found.starts, expected.starts)


@pytest.mark.parametrize("own", [slice(0, 700), slice(100, 350), slice(300, 300), slice(699, 700)])
def test_indices_of_own_bodies(backend, own):
    order = spatial_order(plummer(700, 2).position)
    state = make_state(backend, own, np.ones(700))
    set_order(backend, state, order)
    source_index = backend.download(state.source_index)
    own_order = backend.download(state.own_order)
    np.testing.assert_array_equal(order.bodies[source_index], np.arange(own.start, own.stop))
    np.testing.assert_array_equal(own_order, np.argsort(source_index))
    assert backend.download(state.chunks)[0] == order.chunks == 3
