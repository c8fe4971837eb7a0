"""Rows that ranks write while steps go on: as they were when a copy was begun."""

from dataclasses import replace

import numpy as np
import pytest

from hybrid_nbody.downloads import Download, OnHost
from hybrid_nbody.output.sharing import begin_on_root, own_rows, own_share
from hybrid_nbody.parallel import rows
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.simulation.model import Field

NUMBER = 23


class OnTheWay(Download):
    """A copy that notes when it is asked for."""

    def __init__(self, rows):
        self.copy = rows.copy()
        self.nbytes = rows.nbytes
        self.asked = 0

    def rows(self):
        """See `Download`."""
        self.asked += 1
        return self.copy


class Device:
    """An array of all ranks on their devices, which changes, and the copies begun of it."""

    def __init__(self, communicator, weights, index=None):
        self.index = Partition.weighted(NUMBER, weights).share(communicator.rank)
        if index is not None:
            self.index = index
        self.rows = whole()[self.index].copy()
        self.copies = []

    def start(self):
        """Begin a copy."""
        self.copies.append(OnTheWay(self.rows))
        return self.copies[-1]

    def field(self, starts=True):
        """Return the array as a field that begins copies, or does not."""
        return Field(
            name="bodies/position",
            shape=(NUMBER, 3),
            dtype=np.dtype("f8"),
            units="length",
            description="where bodies are",
            index=self.index,
            host=lambda first, last: self.rows[first:last].copy(),
            start=self.start if starts else None,
        )

    def step(self):
        """Change all rows."""
        self.rows += 100


def whole():
    """Return all rows as they are at first."""
    return np.arange(3.0 * NUMBER).reshape(NUMBER, 3)


def every_weight(size):
    """Return how rows may be shared out among ranks: some get none."""
    return [[1.0] * size, [1.0] + [0.0] * (size - 1), [float(rank) for rank in range(1, size + 1)]]


@pytest.mark.mpi
@pytest.mark.parametrize("kind", range(3))
def test_a_rank_writes_its_share_as_it_was(communicator, kind):
    device = Device(communicator, every_weight(communicator.size)[kind])
    share = own_share(device.field(), communicator)
    device.step()
    own = own_rows(device.field(), communicator)
    assert sum(copy.asked for copy in device.copies) == 0
    assert share.nbytes == whole()[own].nbytes
    assert share.rows().tolist() == whole()[own].tolist()


@pytest.mark.mpi
def test_a_rank_copies_nothing_again_where_it_writes_what_it_owns(communicator):
    device = Device(communicator, [1.0] * communicator.size)
    device.index = own_rows(device.field(), communicator)
    device.rows = whole()[device.index].copy()
    share = own_share(device.field(), communicator)
    assert np.shares_memory(share.rows(), device.copies[0].copy)


@pytest.mark.mpi
def test_rows_in_any_order_are_shared_at_once(communicator):
    index = np.arange(NUMBER)[communicator.rank :: communicator.size][::-1]
    device = Device(communicator, [1.0] * communicator.size, index)
    share = own_share(device.field(), communicator)
    device.step()
    assert share.rows().tolist() == whole()[own_rows(device.field(), communicator)].tolist()


@pytest.mark.mpi
@pytest.mark.parametrize("kind", range(3))
def test_the_root_gets_the_rows_as_they_were(communicator, monkeypatch, kind):
    device = Device(communicator, every_weight(communicator.size)[kind])
    on_root = begin_on_root(device.field(), communicator)
    device.step()
    assert [copy.asked for copy in device.copies] == [0]
    monkeypatch.setattr(rows, "SLAB_BYTES", 2 * whole()[0].nbytes)
    found = on_root().rows()
    expected = whole() if communicator.is_root else whole()[:0]
    assert found.tolist() == expected.tolist()
    assert [copy.asked for copy in device.copies] == [min(len(device.rows), 1)]


@pytest.mark.mpi(min_size=2)
def test_no_rank_copies_what_devices_gather(communicator):
    device = Device(communicator, [1.0] * communicator.size)
    field = replace(device.field(), gather=lambda: OnHost(whole()))
    on_root = begin_on_root(field, communicator)
    device.step()
    assert on_root().rows().tolist() == whole().tolist()
    assert device.copies == []


@pytest.mark.mpi
@pytest.mark.parametrize("starts", [True, False])
def test_a_frame_holds_nothing_of_a_later_step(communicator, starts):
    device = Device(communicator, [1.0] * communicator.size)
    field = device.field(starts)
    share, on_root = own_share(field, communicator), begin_on_root(field, communicator)
    device.step()
    assert share.rows().tolist() == whole()[own_rows(field, communicator)].tolist()
    assert on_root().rows().tolist() == (whole() if communicator.is_root else whole()[:0]).tolist()
