"""Work on arrays that is recorded once for each set of them."""

import numpy as np
import pytest
from support.bodies import make_backend

from hybrid_nbody.backends.replays import MOST_KNOWN, Replays


@pytest.fixture
def backend(backend_name):
    return make_backend(backend_name)


@pytest.fixture
def counted(backend, monkeypatch):
    """Return replays, and the actions that were recorded."""
    recorded = []
    take = backend.recorded

    def record(action):
        recorded.append(action)
        return take(action)

    monkeypatch.setattr(backend, "recorded", record)
    return Replays(backend), recorded


def test_work_is_recorded_once_for_each_set_of_arrays(backend, counted):
    replays, recorded = counted
    first, second = (backend.upload(np.zeros(8)) for _ in range(2))
    for array in (first, second):
        for _ in range(4):
            view = array[:4]  # made anew, at the same place

            def work(view=view):
                view += 1.0

            replays.repeat(work, (view,))
    assert len(recorded) == 2
    for array in (first, second):
        np.testing.assert_array_equal(backend.download(array), [4, 4, 4, 4, 0, 0, 0, 0])


def test_other_arguments_are_other_work(backend, counted):
    replays, recorded = counted
    array = backend.upload(np.zeros(3))

    def add(number):
        view = array[:]
        view += number

    for _ in range(3):
        for number in (1.0, 2.0):
            replays.repeat(lambda number=number: add(number), (array,), number)
    assert len(recorded) == 2
    np.testing.assert_array_equal(backend.download(array), [9.0, 9.0, 9.0])


def test_parts_of_an_array_are_other_arrays(backend, counted):
    replays, recorded = counted
    array = backend.upload(np.zeros(6))
    for part in (array[:2], array[:3], array[3:]):
        replays.repeat(lambda: None, (part,))
    assert len(recorded) == 3


def test_recordings_that_are_not_used_are_dropped(backend, counted):
    replays, recorded = counted
    array = backend.upload(np.zeros(3))
    for number in range(MOST_KNOWN + 1):
        replays.repeat(lambda: None, (array,), number)
        replays.repeat(lambda: None, (array,), 0)
    assert len(recorded) == MOST_KNOWN + 1
    replays.repeat(lambda: None, (array,), 1)
    assert len(recorded) == MOST_KNOWN + 2
