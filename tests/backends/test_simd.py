"""Vectors and blocks of compiled loops against NumPy."""

import numpy as np
import pytest
from support.bodies import make_backend

make_backend("cpu")  # Numba reads its settings when it is first imported

from numba import njit  # noqa: E402

from hybrid_nbody.backends import simd  # noqa: E402
from hybrid_nbody.backends.simd import BLOCK, LANES  # noqa: E402

TYPES = [np.float32, np.float64]


@njit
def shuffle(a, result):
    first = simd.load(a, 0)
    second = simd.load(a, LANES)
    even = simd.even_lanes(first, second)
    odd = simd.odd_lanes(first, second)
    simd.store(result, 0, even)
    simd.store(result, LANES, odd)
    simd.store(result, 2 * LANES, simd.interleave_low(even, odd))
    simd.store(result, 3 * LANES, simd.interleave_high(even, odd))


@pytest.mark.parametrize("dtype", TYPES)
def test_even_and_odd_numbers_are_taken_apart_and_put_together(dtype):
    a = np.arange(2 * LANES, dtype=dtype)
    result = np.zeros(4 * LANES, dtype)
    shuffle(a, result)
    np.testing.assert_array_equal(result, np.concatenate([a[::2], a[1::2], a]))


@njit
def copy_part(a, count, result):
    simd.store(result, 0, simd.load_partial(a, 1, count))
    simd.store_partial(result, LANES, simd.load(a, 0), count)


@pytest.mark.parametrize("count", [-3, 0, 1, LANES - 1, LANES, LANES + 5])
def test_a_part_of_a_vector_is_loaded_and_stored(count):
    a = np.arange(1.0, 2 + LANES)
    result = np.full(2 * LANES, -1.0)
    copy_part(a, count, result)
    there = np.arange(LANES) < count
    np.testing.assert_array_equal(result[:LANES], np.where(there, a[1:], 0))
    np.testing.assert_array_equal(result[LANES:], np.where(there, a[:LANES], -1))


@njit
def gather_by_columns(a, index, steps, stride, result):
    along = simd.load(steps, 0)
    found = simd.gather(a, index, (along, along), (stride, 1))
    simd.store(result, 0, found / simd.broadcast(a[1]))


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_are_gathered_from_where_steps_lead(dtype):
    a = np.arange(1, 9 * LANES, dtype=dtype)
    steps = np.random.default_rng(2).integers(-2, 4, LANES).astype(dtype)
    result = np.zeros(LANES, dtype)
    gather_by_columns(a, 3 * LANES, steps, LANES, result)
    places = 3 * LANES + np.arange(LANES) + steps.astype(int) * (LANES + 1)
    np.testing.assert_array_equal(result, a[places] / 2)


@njit
def compare(a, b, result):
    first = simd.load(a, 0)
    second = simd.load(b, 0)
    simd.store(result, 0, simd.maximum(first, second))
    simd.store(result, LANES, simd.minimum(first, second))
    simd.store(result, 2 * LANES, simd.select(first > second, first, simd.fabs(second)))
    return simd.any_of(first > second), simd.all_of(first < second), simd.reduce_max(second)


@pytest.mark.parametrize("dtype", TYPES)
def test_comparisons_take_the_second_number_where_the_first_is_nan(dtype):
    a, b = np.random.default_rng(1).normal(size=(2, LANES)).astype(dtype)
    a[3] = np.nan
    result = np.zeros(3 * LANES, dtype)
    some, all_below, largest = compare(a, b, result)
    np.testing.assert_array_equal(result[:LANES], np.where(a > b, a, b))
    np.testing.assert_array_equal(result[LANES : 2 * LANES], np.where(a < b, a, b))
    np.testing.assert_array_equal(result[2 * LANES :], np.where(a > b, a, np.abs(b)))
    assert (some, all_below, largest) == ((a > b).any(), (a < b).all(), b.max())


@njit
def count_up(start, lane, result):
    numbers = simd.arange_from(start)
    simd.store(result, 0, simd.insert(numbers, lane, start - start))
    return simd.first_lane(numbers)


@pytest.mark.parametrize("lane", [0, 5, LANES - 1, LANES, -1])
def test_a_number_is_inserted_where_there_is_such_a_lane(lane):
    result = np.zeros(LANES)
    assert count_up(7.5, lane, result) == 7.5
    expected = 7.5 + np.arange(LANES)
    expected[np.arange(LANES) == lane] = 0
    np.testing.assert_array_equal(result, expected)


@njit
def inverse_roots(values, result):
    square = simd.block_scalars(values.dtype.type)
    estimate = simd.block_scalars(values.dtype.type)
    for lane in range(BLOCK):
        square[lane] = values[lane]
    simd.estimate_inverse_roots(square, estimate)
    for lane in range(BLOCK):
        result[lane] = estimate[lane]


@pytest.mark.parametrize("dtype", TYPES)
def test_inverse_roots_are_estimated_to_thirteen_bits(dtype):
    values = np.geomspace(1e-6, 1e6, BLOCK).astype(dtype)
    result = np.zeros(BLOCK, dtype)
    inverse_roots(values, result)
    np.testing.assert_allclose(result, 1 / np.sqrt(values), rtol=2.0**-13, atol=0)
