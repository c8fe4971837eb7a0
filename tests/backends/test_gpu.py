"""What a GPU queues, and in which order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bodies import make_backend

from hybrid_nbody.backends import gpu_copies, staging

PARTS = {
    "all": lambda array: array,
    "a column": lambda array: array[:, 1],
    "some rows": lambda array: array[::2],
    "turned over": lambda array: array.T,
}


@pytest.mark.gpu
@pytest.mark.parametrize("part", PARTS)
def test_downloads_leave_the_stream_on_which_work_is_queued(part):
    """CuPy's own download of an array with gaps would leave another one as the current stream."""
    backend = make_backend("gpu")
    host = np.arange(12.0).reshape(3, 4)
    rows = PARTS[part](backend.upload(host))
    expected = PARTS[part](host)
    np.testing.assert_array_equal(backend.download(rows), expected)
    with backend.to_host(rows) as staged:
        np.testing.assert_array_equal(staged, expected)
    assert backend.cupy.cuda.get_current_stream() == backend.stream


@given(length=st.integers(0, 1 << 40))
def test_memory_for_a_message_is_a_quarter_longer_at_most_but_for_short_ones(length):
    size = staging.size_for(length)
    assert length <= size <= max(staging.LEAST_BYTES, 1.25 * length)


@pytest.mark.gpu
def test_messages_of_all_lengths_pass_through_memory_of_few_sizes(monkeypatch):
    backend = make_backend("gpu")
    pinned = backend.pinned
    sizes = set()

    def noted(size, dtype):
        sizes.add(size)
        return pinned(size, dtype)

    monkeypatch.setattr(backend, "pinned", noted)
    received = []
    for length in range(0, 20_000, 37):
        rows = backend.upload(np.full(length, float(length)))
        with backend.to_host(rows) as sent, backend.from_host(rows) as arriving:
            arriving[:] = -sent
        received.append(rows)
    for rows in received:
        np.testing.assert_array_equal(rows.get(), np.full(len(rows), -float(len(rows))))
    assert 1 < len(sizes) < 30


@pytest.mark.gpu
def test_memory_that_an_upload_is_still_to_read_is_not_lent_again():
    backend = make_backend("gpu")
    arrays = [backend.zeros(5000, "f8") for _ in range(5)]
    busy = backend.zeros(1 << 27, "f8")
    backend.synchronize()
    for _ in range(50):  # uploads are queued behind some hundredths of a second of work
        busy += 1
    for number, rows in enumerate(arrays):
        with backend.from_host(rows) as arriving:
            arriving[:] = number
    for number, rows in enumerate(arrays):
        np.testing.assert_array_equal(rows.get(), np.full(5000, float(number)))


@pytest.mark.gpu
@pytest.mark.parametrize("most_pinned", [0, 1 << 20])
def test_a_copy_arrives_as_it_was_in_pinned_memory_or_other(monkeypatch, most_pinned):
    monkeypatch.setattr(gpu_copies, "MOST_PINNED", most_pinned)
    backend = make_backend("gpu")
    before = np.arange(3000.0).reshape(1000, 3)
    array = backend.upload(before)
    copies = [backend.start_download(array) for _ in range(3)]
    array += 1
    for copy in copies:
        np.testing.assert_array_equal(copy.rows(), before)
        assert copy.nbytes == before.nbytes


@pytest.mark.gpu
@pytest.mark.parametrize("fetched", [0, 3, 40], ids=lambda number: f"after {number}")
def test_small_copies_hold_what_the_arrays_held_wherever_they_are_fetched(fetched):
    backend = make_backend("gpu")
    arrays = [backend.upload(np.full((size, 3), float(size))) for size in (0, 1, 331, 20_000)]
    copies = []
    for number in range(40):
        copies += [(backend.start_download(array), array.get()) for array in arrays]
        if number == fetched:
            copies[-1][0].rows()
        for array in arrays:
            array *= 1.5
    for copy, expected in copies:
        np.testing.assert_array_equal(copy.rows(), expected)
        assert copy.nbytes == expected.nbytes


ONE_BATCH = gpu_copies.BATCH_BYTES // 24
"""Positions in as many bytes as come to the host at once."""


@pytest.mark.parametrize("size", [0, 1, 331, ONE_BATCH, ONE_BATCH + 1])
def test_an_array_that_is_handed_over_arrives(backend_name, size):
    backend = make_backend(backend_name)
    array = backend.empty((size, 3), np.float64)
    assert array.shape == (size, 3)
    array[...] = 1.5
    array *= 2
    copy = backend.hand_over(array)
    np.testing.assert_array_equal(copy.rows(), np.full((size, 3), 3.0))
    assert copy.nbytes == 24 * size


MEMORY_ALLOCATION = 2
"""CUDA's error where there is no memory."""


@pytest.mark.gpu
def test_a_copy_arrives_where_no_memory_can_be_pinned(monkeypatch):
    backend = make_backend("gpu")

    def refuse(shape, dtype):
        raise backend.cupy.cuda.runtime.CUDARuntimeError(MEMORY_ALLOCATION)

    monkeypatch.setattr(backend, "pinned", refuse)
    copy = backend.start_download(backend.upload(np.ones((5, 3))))
    np.testing.assert_array_equal(copy.rows(), np.ones((5, 3)))
