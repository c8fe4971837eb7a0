"""Memory that arrays leave: kept for the next ones, unless a person has chosen otherwise."""

import subprocess
import sys

import pytest

from hybrid_nbody.backends.heap import keep_freed_memory

PROGRAM = """
import resource
import numpy as np
from hybrid_nbody.backends.heap import keep_freed_memory

def pages_cleared():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        arrays = [np.ones(1 << 19) for _ in range(10)]  # 4 MiB each
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = pages_cleared()
if not keep_freed_memory():
    print("no such library")
    raise SystemExit
pages_cleared()
print(first, pages_cleared())
"""


def test_memory_is_kept():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    if "no such library" in result.stdout:
        pytest.skip("the C library is not that of GNU, or a variable says how it treats memory")
    first, then = map(int, result.stdout.split())
    assert then < first / 10


@pytest.mark.parametrize(
    "chosen",
    [{"MALLOC_TRIM_THRESHOLD_": "131072"}, {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=9"}],
)
def test_what_a_person_has_chosen_stays(chosen):
    assert not keep_freed_memory(chosen)
