"""Rows of bodies as they come in, along the curve, and back."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bodies import make_backend

from hybrid_nbody.nbody.kernels.cpu.sums import add_scaled, add_scaled_on_threads
from hybrid_nbody.nbody.kernels.cpu.tree.curve import Curve
from hybrid_nbody.nbody.kernels.cpu.tree.rows import (
    box_of,
    fill_rows,
    reorder_rows,
    scale_rows,
    sorted_bodies,
    unsort,
)

NUMBERS = st.integers(0, 200)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True, params=[1, 2], scope="module")
def threads(request):
    """Each test runs on one thread and on two."""
    before = numba.get_num_threads()
    make_backend("cpu", threads=request.param)
    yield
    numba.set_num_threads(before)


def rows_of(number, seed, columns=5):
    """Return some rows of numbers."""
    return np.random.default_rng(seed).normal(size=(number, columns))


@given(number=NUMBERS, seed=SEEDS)
def test_a_box_holds_all_bodies_and_no_more(number, seed):
    rows = rows_of(number, seed)
    lowest, highest = box_of(rows)
    np.testing.assert_array_equal(lowest, rows[:, :3].min(axis=0, initial=np.inf))
    np.testing.assert_array_equal(highest, rows[:, :3].max(axis=0, initial=-np.inf))


@given(seed=SEEDS, number=st.integers(1, 200), bad=st.sampled_from([np.nan, np.inf, -np.inf]))
def test_there_is_no_box_where_any_number_is_not_finite(seed, number, bad):
    rows = rows_of(number, seed)
    places = np.random.default_rng(seed)
    rows[places.integers(number), places.integers(5)] = bad
    assert box_of(rows) is None


@pytest.mark.parametrize("columns", [4, 5])
@given(number=NUMBERS, seed=SEEDS)
def test_bodies_along_the_curve_are_those_of_the_rows(columns, number, seed):
    rows = rows_of(number, seed, columns)
    order = np.random.default_rng(seed).permutation(number).astype(np.int32)
    bodies = sorted_bodies(rows, Curve(order, ()))
    np.testing.assert_array_equal(bodies.position, rows[order, :3])
    np.testing.assert_array_equal(bodies.mass, rows[order, 3])
    known = rows[order, 4] if columns > 4 else np.ones(number)
    np.testing.assert_array_equal(bodies.acceleration, known)
    np.testing.assert_array_equal(bodies.columns[:, :number], rows[order, :4].T)
    assert not bodies.columns[:, number:].any()


@pytest.mark.parametrize(("column", "width"), [(0, 3), (3, 1)])
@given(sizes=st.lists(st.integers(0, 30), max_size=20), seed=SEEDS)
def test_sums_come_back_in_the_order_of_the_rows_with_the_work(column, width, sizes, seed):
    number = sum(sizes)
    sums = rows_of(number, seed, 4)
    sums[::5] = -0.0
    order = np.random.default_rng(seed).permutation(number).astype(np.int32)
    work = np.arange(1.0, len(sizes) + 1)
    results = np.full((number, width + 1), np.nan)
    starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
    unsort(sums, column, starts, work, order, results)
    np.testing.assert_array_equal(results[order, :width], sums[:, column : column + width])
    assert not np.signbit(results[order[::5], :width]).any()
    np.testing.assert_array_equal(results[order, width], np.repeat(work, sizes))


@given(number=NUMBERS, seed=SEEDS)
def test_rows_have_positions_and_lengths_of_accelerations_in_their_units(number, seed):
    position = rows_of(number, seed, 3)
    acceleration = 1e200 * rows_of(number, seed + 1, 3)  # squares would leave the range
    rows = np.full((number, 5), 7.0)
    fill_rows(position, acceleration, 4.0, 1e200, rows)
    np.testing.assert_array_equal(rows[:, :3], position / 4)
    np.testing.assert_array_equal(rows[:, 3], 7.0)
    expected = np.linalg.norm(acceleration / 1e200, axis=1)
    np.testing.assert_allclose(rows[:, 4], expected, rtol=1e-15, atol=0)


@given(number=NUMBERS, seed=SEEDS, columns=st.integers(3, 5))
def test_accelerations_are_sums_in_their_unit(number, seed, columns):
    sums = rows_of(number, seed, columns)
    acceleration = np.full((number, 3), np.nan)
    scale_rows(sums, 0.3, acceleration)
    np.testing.assert_array_equal(acceleration, 0.3 * sums[:, :3])


@given(number=NUMBERS, seed=SEEDS)
def test_threads_move_bodies_as_one_does(number, seed):
    position = rows_of(number, seed, 3)
    velocity = rows_of(number, seed + 1, 3)
    expected = position.copy()
    add_scaled(expected, 0.3, velocity)
    add_scaled_on_threads(position, 0.3, velocity)
    np.testing.assert_array_equal(position, expected)


@given(number=NUMBERS, seed=SEEDS, columns=st.integers(1, 5))
def test_rows_are_taken_in_an_order_and_put_back(number, seed, columns):
    rows = rows_of(number, seed, columns)
    order = np.random.default_rng(seed).permutation(number).astype(np.int32)
    taken = np.empty_like(rows)
    reorder_rows(rows, order, False, taken)
    np.testing.assert_array_equal(taken, rows[order])
    places = np.empty_like(rows)
    reorder_rows(taken, order, True, places)
    np.testing.assert_array_equal(places, rows)
