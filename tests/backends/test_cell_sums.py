"""Sums over planes: the same bits on hosts and GPUs, and for any share of the planes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cell_functions
from support.bodies import make_backend
from support.ranks import same_bits

from hybrid_nbody.backends.cells import make_program
from hybrid_nbody.backends.cells.sums import sum_of_planes, sum_of_strips

ROWS = 70
"""More than two strips of a GPU."""


@pytest.fixture
def backend(backend_name):
    """A backend of each kind."""
    return make_backend(backend_name, threads=2)


@pytest.fixture(params=["f4", "f8"])
def program(backend, request):
    """The functions of `support.cell_functions`, compiled."""
    return make_program(backend, [cell_functions], request.param)


@given(st.lists(st.integers(-(10**6), 10**6), max_size=300))
def test_all_planes_are_summed_once(numbers):
    assert sum_of_planes(np.array(numbers, np.float64)) == sum(numbers)


def test_halves_are_added():
    """Not one after another: 1 would be lost beside what it does not change."""
    assert sum_of_planes(np.array([1e16, 1.0, -1e16, 1.0])) == 2.0


def test_strips_are_added_from_the_first_one_on():
    found = np.array([[1e16, 1.0, -1e16], [1e16, -1e16, 1.0]])
    np.testing.assert_array_equal(sum_of_strips(found), [0.0, 1.0])


@pytest.mark.parametrize("planes", [0, 1, 2, 3, 64, 65, 1025, 2300])
def test_a_total_is_the_sum_of_the_planes(backend, program, planes):
    sums = np.random.default_rng(planes).normal(size=(planes, 1))
    expected = program.number(sum_of_planes(sums[:, 0]))
    for found in (sums, backend.upload(sums)):
        assert number_in(backend, program, program.total_of(found)) == expected


def test_shares_of_planes_have_the_same_total(backend, program):
    numbers = np.random.default_rng(3).normal(size=(9, ROWS + 2, 9)).astype(program.number)
    array = backend.upload(numbers)
    whole = program.plane_sums(("square", region(1, 8), array), slice(0, 7), 7)
    shared = backend.xp.full(whole.shape, np.nan)
    for first, end in ((0, 3), (3, 3), (3, 7)):
        call = ("square", region(first + 1, end + 1), array)
        own = slice(first, end)
        shared[own] = program.plane_sums(call, own, 7)[own]
    assert same_bits(backend.download(shared), backend.download(whole))
    planes = program.reduce("square", region(1, 8), array)
    total = number_in(backend, program, program.total_of(whole))
    assert total == program.number(sum_of_planes(planes))
    np.testing.assert_allclose(total, (numbers[1:8, 1:-1, 1:-1] ** 2.0).sum(), rtol=1e-5)


def region(first, end):
    """Return the inner cells of some planes."""
    return first, end, 1, ROWS + 1, 1, 8


def number_in(backend, program, total):
    """Return what a function of a cell is given for a total."""
    array = backend.zeros((1, 1, 1), program.number)
    program.run("shift", (0, 1, 0, 1, 0, 1), array, -2.0, total)
    return backend.download(array)[0, 0, 0] / -2.0
