"""How the threads of a CPU start."""

import sys

import pytest
from support.command import python

from hybrid_nbody.backends.cpu import without_package

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


RUN = """
import sys
from hybrid_nbody.cli.main import main

sys.exit(main(["run", sys.argv[1]]))
"""

JOB = """\
model: nbody
bodies: {kind: figure-eight}
time: {dt: 1e-3, steps: 2}
compute: {backend: cpu, threads: 1}
output: {directory: OUT}
"""


def test_a_cache_that_cannot_be_written_is_told_once(tmp_path):
    """A file stands where its folder would be, which stops the superuser as well."""
    (tmp_path / "file").write_text("")
    (tmp_path / "job.yaml").write_text(JOB.replace("OUT", str(tmp_path / "out")))
    cache = str(tmp_path / "file" / "cache")
    text = python(RUN, str(tmp_path / "job.yaml"), NUMBA_CACHE_DIR=cache)
    warning = f"warning: the cache of kernels, {cache}, cannot be written (Not a directory): they"
    assert text.count(warning) == 1
    assert "finished at step 2" in text


FULL_DISK = """
import resource
import numpy as np
from hybrid_nbody.backends.caches import cache_faults
from hybrid_nbody.backends.cpu import CpuBackend
CpuBackend(1)
from hybrid_nbody.nbody.kernels.cpu.sums import add_scaled
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
for dtype in ("f4", "f8"):
    result = np.ones((2, 3), dtype)
    add_scaled(result, 2.0, result)
    print(result.sum())
print(len(cache_faults), cache_faults[0])
"""


def test_a_disk_that_fills_costs_the_kernels_of_the_cache_alone(tmp_path):
    text = python(FULL_DISK, NUMBA_CACHE_DIR=str(tmp_path))
    *sums, fault = text.splitlines()
    assert sums == ["18.0", "18.0"]
    why = "the file size limit is reached"
    assert fault.startswith(f"1 the cache of kernels, {tmp_path}, cannot be written ({why})")


NO_SPACE = """
import resource
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.errors import FileError
CpuBackend(1)
from hybrid_nbody.backends.cells.cpu import loaded
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    loaded("number = 1\\n" * 100)
except FileError as error:
    print(error)
"""


def test_a_disk_too_full_for_a_source_is_named(tmp_path):
    text = python(NO_SPACE, NUMBA_CACHE_DIR=str(tmp_path))
    assert text.startswith(f"{tmp_path / 'generated'}: the source of kernels cannot be written")
    assert list((tmp_path / "generated").iterdir()) == []


def test_a_package_is_refused_as_long_as_it_is_said_to_be_missing(tmp_path, monkeypatch):
    (tmp_path / "here_today.py").write_text("answer = 42")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    with without_package("here_today"), pytest.raises(ModuleNotFoundError, match="here_today"):
        import here_today
    assert sys.meta_path == finders
    import here_today

    monkeypatch.delitem(sys.modules, "here_today")
    assert here_today.answer == 42


def test_a_package_that_is_there_already_stays():
    import json

    with without_package("json"):
        import json as again
    assert again is json
