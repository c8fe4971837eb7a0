"""A grid that several GPUs share, whose planes are written into each other's memory or sent."""

import numpy as np
import pytest
from support import staggered
from support.bodies import make_backend
from support.fluids import DEFAULT, FREE_SLIP, PERIODIC, make_model, state, stirring
from support.ranks import communicator, same_bits, this_rank
from support.staggered import assert_same_planes, fields_after, make_stepper, still

from hybrid_nbody.fluid.kernels.gpu import peers
from hybrid_nbody.fluid.obstacles import Sphere
from hybrid_nbody.fluid.solvers.halos import ExchangedPlanes, PushedPlanes
from hybrid_nbody.fluid.staggered.pressure import Accuracy
from hybrid_nbody.parallel.transport import peer_barrier
from hybrid_nbody.parallel.waiting import LostRankError

__all__ = ["communicator"]

pytestmark = [pytest.mark.gpu, pytest.mark.mpi(min_size=2)]

CELLS = (20, 18, 28)
"""Enough planes for every rank of four to have those that a neighbour reads, whatever the
weights."""

BALL = Sphere((0.5, 0.4, 0.6), 0.2)


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


@pytest.mark.parametrize("faces", ["WALLS", "TUNNEL", "PERIODIC"])
@pytest.mark.parametrize("obstacles", [(), (BALL,)], ids=["plain", "ball"])
@pytest.mark.parametrize("method", ["multigrid", "conjugate-gradients"])
def test_steps_that_are_repeated_have_the_bits_of_one_rank(
    backend, communicator, faces, obstacles, method
):
    """The arrays of the velocity change places in three steps: the seventh is a repetition."""
    physics = still(1e-3, density=(0.0, 0.5, 0.2))
    weights = [1.0 + rank % 2 for rank in range(communicator.size)]

    def found(ranks, shares=None):
        given = (backend, ranks, CELLS, getattr(staggered, faces), physics, "f4", shares)
        accuracy = Accuracy(1e-3, 40, method)
        stepper = make_stepper(*given, obstacles=obstacles, accuracy=accuracy)
        if not stepper.grid.halo.recordable:
            pytest.skip("ranks that share a GPU exchange planes through their hosts")
        assert stepper.repeats.possible
        return fields_after(stepper, wave, 8, 0.02)

    assert_same_planes(found(communicator, weights), found(this_rank()))


def wave(axis, x, y, z):
    """Return a component of a velocity."""
    return np.sin(9 * x + 5 * y + 7 * z + axis)


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
