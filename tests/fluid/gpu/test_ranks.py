"""A grid that several GPUs share, whose planes are written into each other's memory or sent."""

import pytest
from support.bodies import make_backend
from support.fluids import DEFAULT, FREE_SLIP, PERIODIC, make_model, state, stirring
from support.ranks import communicator, same_bits, this_rank

from hybrid_nbody.fluid.solvers.halos import ExchangedPlanes, PushedPlanes

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
