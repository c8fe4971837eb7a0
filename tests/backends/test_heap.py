"""Memory that arrays leave: kept for the next ones, until it is returned."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import resource
from pathlib import Path
import numpy as np
from hybrid_nbody.backends.heap import keep_freed_memory, return_freed_memory

def pages_cleared():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        arrays = [np.ones(1 << 19) for _ in range(10)]  # 4 MiB each
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def pages_held():
    return int(Path("/proc/self/statm").read_text().split()[1])

first = pages_cleared()
if not keep_freed_memory():
    print("no such library")
    raise SystemExit
pages_cleared()
held = pages_held()
then = pages_cleared()
return_freed_memory()
print(first, then, held - pages_held())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for its pages")
def test_memory_is_kept_until_it_is_returned():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    if "no such library" in result.stdout:
        pytest.skip("the C library is not that of GNU")
    first, then, returned = map(int, result.stdout.split())
    assert then < first / 10
    assert returned > 4000  # of 4 KiB, or as many bytes in larger ones
