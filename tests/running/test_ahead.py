"""Imports that are made while MPI starts."""

from support.command import python

BESIDE_MPI = """
import sys
from hybrid_nbody.parallel.communicator import start_mpi
from hybrid_nbody.running.ahead import importing_ahead

ranks = start_mpi(importing_ahead())
assert "hybrid_nbody.running.start" in sys.modules
from mpi4py import MPI

assert ranks.size == 1
for every in (MPI.COMM_WORLD, MPI.COMM_SELF):
    assert every.Get_errhandler() == MPI.ERRORS_RETURN
try:
    MPI.COMM_WORLD.send(1, dest=5)
except MPI.Exception as error:
    print("raised", error.Get_error_class() == MPI.ERR_RANK)
"""

FAILING = """
import sys, threading
threading.excepthook = lambda arguments: print("told", arguments)
from hybrid_nbody.running import ahead

sys.modules["hybrid_nbody.running.start"] = None
with ahead.importing_ahead():
    print("block")
print("after")
"""


def test_mpi_starts_beside_the_imports_and_its_errors_are_raised():
    assert "raised True" in python(BESIDE_MPI)


def test_an_import_that_fails_is_left_to_where_it_is_used():
    assert python(FAILING).split() == ["block", "after"]
