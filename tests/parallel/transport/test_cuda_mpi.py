"""MPI on the arrays of GPUs, with arrays that show no more than their address."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.ranks import same_bits
from support.transports import LONG, SHARES, neighbours, rows_of

from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport import cuda_mpi
from hybrid_nbody.parallel.transport.cuda_mpi import CudaMpiTransport


class Device:
    """Rows that only say where they are, as those of a GPU do; the address is the host's."""

    def __init__(self, rows):
        self.rows, self.size = rows, rows.size
        interface = rows.__array_interface__
        self.__cuda_array_interface__ = {
            key: interface[key] for key in ("shape", "typestr", "data")
        } | {"version": 3}

    def __len__(self):
        return len(self.rows)


class Waiting:
    """A backend that counts how often somebody waits for its device."""

    def __init__(self):
        self.waits = 0

    def synchronize(self):
        self.waits += 1


@pytest.mark.mpi
@pytest.mark.parametrize("weights", SHARES)
def test_cuda_aware_mpi_gathers_what_the_device_has_done(communicator, weights):
    backend, partition = Waiting(), Partition.weighted(100, SHARES[weights](communicator.size))
    whole, own = rows_of(100, (3,), "f8"), partition.share(communicator.rank)
    array = np.zeros_like(whole)
    array[own] = whole[own]
    CudaMpiTransport(backend, communicator).allgather(Device(array), partition)
    assert same_bits(array, whole)
    assert backend.waits == 1


@pytest.mark.mpi
@pytest.mark.parametrize("weights", SHARES)
def test_cuda_aware_mpi_adds_up_what_the_device_has_done(communicator, weights):
    backend, partition = Waiting(), Partition.weighted(100, SHARES[weights](communicator.size))
    array, own = rows_of(100, (3,), "f8"), partition.share(communicator.rank)
    out = np.zeros((own.stop - own.start, 3))
    CudaMpiTransport(backend, communicator).reduce_scatter(Device(array), Device(out), partition)
    assert same_bits(out, communicator.size * array[own])
    assert backend.waits == 1


@pytest.mark.mpi
def test_cuda_aware_mpi_carries_messages_and_finds_the_largest(communicator):
    backend = Waiting()
    transport = CudaMpiTransport(backend, communicator)
    after, before = neighbours(communicator)
    into = np.zeros((LONG, 3), "f4")
    largest = np.array([communicator.rank, -communicator.rank], "i4")
    messages = transport.begin(
        [(after, Device(np.full_like(into, communicator.rank)))], [(before, Device(into))]
    )
    assert backend.waits == 1
    messages.finish()
    assert (into == before).all()
    transport.maximum(Device(largest))
    assert largest.tolist() == [communicator.size - 1, 0]
    assert not transport.recordable


def test_a_blocking_operation_is_watched(alone, monkeypatch):
    watched = []
    monkeypatch.setattr(cuda_mpi, "Watchdog", lambda wait, report: watched.append(wait))
    transport = CudaMpiTransport(Waiting(), alone)
    during = []
    alone_comm = SimpleNamespace(
        Allreduce=lambda *arguments, op: during.append(watched[0].since is not None)
    )
    monkeypatch.setattr(transport, "communicator", SimpleNamespace(comm=alone_comm))
    transport.maximum(np.zeros(1))
    assert during == [True]
    assert watched[0].since is None
