"""For tests/test_harness.py: a test file that holds one test more on rank 1."""

import pytest
from mpi4py import MPI


@pytest.mark.mpi
@pytest.mark.parametrize("number", range(2 if MPI.COMM_WORLD.rank == 1 else 1))
def test_barrier(comm, number):
    comm.Barrier()
