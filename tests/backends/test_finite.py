"""Which numbers a device takes for finite."""

import numpy as np
import pytest
from support.bodies import make_backend
from support.nvrtc import compile_to_cubin, oldest_and_newest, words_for

from hybrid_nbody.backends.finite import SOURCE


@pytest.mark.parametrize("size", [0, 1, 31, 1000, 100_001])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_number_that_is_not_finite_is_found_wherever_it_is(backend_name, size, bad):
    backend = make_backend(backend_name)
    array = np.random.default_rng(3).standard_normal((size, 3)) * 1e300
    assert backend.start_look(backend.upload(array))() == [3 * size]
    for row in {0, size // 2, size - 1} if size else ():
        spoilt = array.copy()
        spoilt[row:, 1] = bad
        assert backend.start_look(backend.upload(spoilt))() == [3 * row + 1]


@pytest.mark.parametrize("spoilt", [0, 1, 2])
def test_of_several_arrays_each_is_looked_at(backend_name, spoilt):
    backend = make_backend(backend_name)
    arrays = [backend.upload(np.ones((5, 3))), np.ones(7), backend.upload(np.ones((0, 3)))]
    places = [15, 7, 0]
    assert backend.start_look(*arrays)() == places
    arrays[spoilt] = backend.upload(np.array([1.0, np.nan]))
    places[spoilt] = 1
    assert backend.start_look(*arrays)() == places
    del arrays[spoilt], places[spoilt]
    assert backend.start_look(*arrays)() == places
    assert backend.start_look()() == []


def test_a_look_is_at_the_numbers_as_they_are_now(backend_name):
    backend = make_backend(backend_name)
    array = backend.upload(np.array([1.0, np.nan, 2.0]))
    look = backend.start_look(array)
    array[1] = 0.0
    assert look() == [1]
    assert backend.start_look(array)() == [3]


@pytest.mark.parametrize("architecture", oldest_and_newest())
def test_the_kernel_compiles(architecture):
    code = SOURCE.read_text()
    assert b"find_bad" in compile_to_cubin(code, words_for({}), architecture)
