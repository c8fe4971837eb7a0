"""For tests/test_harness.py: a test file that cannot be imported on rank 1."""

import pytest
from mpi4py import MPI

if MPI.COMM_WORLD.rank == 1:
    raise ImportError("no such library on this node")


@pytest.mark.mpi
def test_barrier(comm):
    comm.Barrier()
