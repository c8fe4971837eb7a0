"""Fixtures of the N-body tests."""

import pytest
from support.bodies import make_backend
from support.config_texts import config_of, faults_of, in_folder

from hybrid_nbody.parallel.communicator import Communicator

__all__ = ["config_of", "faults_of", "in_folder"]


@pytest.fixture
def backend(backend_name, communicator):
    """Each backend in turn."""
    return make_backend(backend_name, local_rank=communicator.local_rank)


@pytest.fixture(scope="session")
def communicator(comm):
    """All ranks."""
    return Communicator(comm)


@pytest.fixture(scope="session")
def alone():
    """This rank by itself."""
    from mpi4py import MPI

    return Communicator(MPI.COMM_SELF)
