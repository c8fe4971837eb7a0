"""Loops that threads share: every element once, whatever the range and the threads."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import njit

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.threads import each_on_threads, on_threads

LARGEST = 40


@njit(error_model="numpy", _nrt=False)
def count(start, stop, step, counts, shift):
    for k in range(start, stop):
        counts[k - shift] += step


@njit(error_model="numpy", _nrt=False, nogil=True)
def count_on_threads(first, last, step, counts, shift):
    on_threads(count, first, last, (step, counts, shift))


@njit(error_model="numpy", _nrt=False)
def count_at(k, step, counts, shift):
    counts[k - shift] += step


@njit(error_model="numpy", _nrt=False, nogil=True)
def count_each_on_threads(first, last, step, counts, shift):
    each_on_threads(count_at, first, last, (step, counts, shift))


@pytest.fixture(params=[1, 2])
def threads(request):
    """Use some threads for a test."""
    yield CpuBackend(request.param)
    CpuBackend(1)


@pytest.mark.parametrize("count_all", [count_on_threads, count_each_on_threads])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.integers(-LARGEST, LARGEST), length=st.integers(-LARGEST, LARGEST))
def test_every_element_is_computed_once(threads, count_all, first, length):
    counts = np.zeros(3 * LARGEST)
    count_all(first, first + length, 0.5, counts, -LARGEST)
    expected = np.zeros(3 * LARGEST)
    expected[first + LARGEST : first + LARGEST + max(length, 0)] = 0.5
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("count_all", [count_on_threads, count_each_on_threads])
def test_arguments_have_their_types(threads, count_all):
    counts = np.zeros(4, np.int32)
    count_all(0, 4, 3, counts, 0)
    assert counts.tolist() == [3, 3, 3, 3]
