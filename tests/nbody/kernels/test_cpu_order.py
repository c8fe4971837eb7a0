"""The order of a few sources that compiled code finds is that of `sources`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.bodies import make_backend

from hybrid_nbody.nbody.initial_conditions import plummer, random_box
from hybrid_nbody.nbody.kernels.cpu.order import MOST_BODIES, Sorter
from hybrid_nbody.nbody.sources import spatial_order
from hybrid_nbody.nbody.state import State, make_state, set_order

NAMES = ("order", "starts", "chunks", "source_index", "own_order", "orders")

POSITIONS = {
    "a sphere": lambda: plummer(100, 1).position,
    "a box": lambda: random_box(MOST_BODIES, seed=2).position,
    "equal places": lambda: np.repeat(random_box(50, seed=3).position, 3, axis=0),
    "one place": lambda: np.ones((200, 3)),
    "one body": lambda: np.ones((1, 3)),
    "two bodies": lambda: np.array([[1.0, 0, 0], [-1, 0, 0]]),
    "a tight pair and one far away": lambda: np.array([[0.0, 0, 0], [1e-9, 0, 0], [1e9, 0, 0]]),
    "a line backwards": lambda: np.outer(np.linspace(3, -3, 70), [1.0, 0, 0]),
}

places = arrays(float, st.tuples(st.integers(1, 12), st.just(3)), elements=st.floats(-1e9, 1e9))


def at(position: np.ndarray) -> State:
    state = make_state(make_backend("cpu"), slice(0, len(position)), np.ones(len(position)))
    state.position[:] = position
    return state


def assert_sorted_as_by_numpy(position: np.ndarray) -> None:
    found = at(position)
    Sorter(found).sort()
    expected = at(position)
    set_order(make_backend("cpu"), expected, spatial_order(position))
    for name in NAMES:
        true = getattr(expected, name)
        np.testing.assert_array_equal(getattr(found, name), true, err_msg=name)


@pytest.mark.parametrize("name", POSITIONS)
def test_a_few_bodies_are_sorted_as_by_numpy(name):
    assert_sorted_as_by_numpy(POSITIONS[name]())


@settings(deadline=None)
@given(places)
def test_any_few_bodies_are_sorted_as_by_numpy(position):
    assert_sorted_as_by_numpy(position)


def test_bodies_are_sorted_again_where_they_have_moved():
    state = at(random_box(40, seed=5).position)
    sorter = Sorter(state)
    sorter.sort()
    state.position[:] = state.position[::-1].copy()
    sorter.sort()
    expected = at(state.position)
    set_order(make_backend("cpu"), expected, spatial_order(state.position))
    np.testing.assert_array_equal(state.order, expected.order)
    assert state.orders[0] == 2
