"""Fixtures of the fluid tests."""

import pytest
from support.bodies import make_backend
from support.fluids import threads_for
from support.ranks import alone, communicator

__all__ = ["alone", "communicator"]


@pytest.fixture
def backend(backend_name, communicator):
    """A backend of each kind."""
    return make_backend(backend_name, threads_for(communicator), communicator.local_rank)
