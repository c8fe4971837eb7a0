"""How the threads of a CPU start."""

from support.command import python

START = """
import sys
from hybrid_nbody.backends.cpu import CpuBackend

CpuBackend(1)
import numba

assert numba.njit(lambda x: x + 1)(1) == 2
assert "scipy" not in sys.modules, "it takes a fifth of a second"
import scipy.linalg

assert scipy.linalg.norm([3.0, 4.0]) == 5
"""


def test_numba_starts_without_scipy_which_can_be_imported_all_the_same():
    python(START)
