"""A grid that several GPUs share, whose planes are written into each other's memory or sent."""

import pytest
from support.bodies import make_backend
from support.fluids import DEFAULT, FREE_SLIP, PERIODIC, make_model, state, stirring
from support.ranks import communicator, same_bits, this_rank

from hybrid_nbody.fluid.kernels.gpu import peers
from hybrid_nbody.fluid.solvers.halos import ExchangedPlanes, PushedPlanes
from hybrid_nbody.parallel.transport import peer_barrier
from hybrid_nbody.parallel.waiting import LostRankError

__all__ = ["communicator"]

pytestmark = [pytest.mark.gpu, pytest.mark.mpi(min_size=2)]

CELLS = (20, 18, 28)
"""Enough planes for every rank of four to have those that a neighbour reads, whatever the
weights."""


@pytest.fixture
def backend(communicator):
    """This rank's GPU."""
    return make_backend("gpu", local_rank=communicator.local_rank)


@pytest.mark.parametrize("boundary", [FREE_SLIP, PERIODIC])
@pytest.mark.parametrize("written", [True, False])
def test_planes_of_others_are_the_same_however_they_come(
    backend, communicator, monkeypatch, boundary, written
):
    weights = [1.0 + rank % 2 for rank in range(communicator.size)]
    arguments = stirring(CELLS), backend, boundary, "f4"
    shared = make_model(CELLS, DEFAULT, communicator, *arguments, weights=weights)
    whole = make_model(CELLS, DEFAULT, this_rank(), *arguments)
    transport = shared.halo.transport
    written = written and transport.peers is not None
    monkeypatch.setattr(transport, "peers", transport.peers if written else None)
    for model in (shared, whole):
        model.advance(6)
    assert isinstance(shared.stepper.solver.pass_halo, PushedPlanes if written else ExchangedPlanes)
    expected = state(whole)
    for name, found in state(shared).items():
        assert same_bits(found, expected[name]), name


def test_a_rank_that_does_not_answer_is_named(backend, communicator, monkeypatch):
    """All other GPUs give up after the time limit; the hosts learn it where they wait for them."""
    monkeypatch.setattr(peer_barrier, "PEER_SECONDS", 0.5)
    model = make_model(CELLS, DEFAULT, communicator, stirring(CELLS), backend, FREE_SLIP, "f4")
    halo = model.halo
    if halo.transport.peers is None:
        pytest.skip("the GPUs cannot write into each other's memory")
    planes = model.kernels.peer_planes(halo.transport.peers, halo.rank, halo.partition.counts)
    silent = communicator.size - 1

    def wait_for_peers():
        planes._launch("barrier", 1, *planes._at_barrier(*peers.NO_LAUNCH))
        backend.synchronize()

    try:
        if communicator.rank != silent:
            with pytest.raises(LostRankError, match=f"rank {silent} did not answer"):
                wait_for_peers()
            planes.barrier.alarm.word[0] = 0
            wait_for_peers()  # nobody waits at later barriers, and nothing more is reported
    finally:
        backend.host_wait.alarms.remove(planes.barrier.alarm)
        communicator.barrier()
