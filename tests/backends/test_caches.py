"""Caches of compiled kernels that cannot be written."""

import os
import sys
from unittest.mock import MagicMock

import pytest

from hybrid_nbody.backends import caches
from hybrid_nbody.backends.gpu import GpuBackend


@pytest.fixture
def faults(monkeypatch):
    """What is told of caches in this test."""
    monkeypatch.setattr(caches, "cache_faults", found := [])
    return found


@pytest.fixture
def one_gpu(monkeypatch):
    """A stand-in for CuPy that sees one GPU."""
    cupy = MagicMock()
    cupy.cuda.runtime.getDeviceCount.return_value = 1
    cupy.cuda.runtime.getDeviceProperties.return_value = {"name": b"a stand-in"}
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupy.cuda", cupy.cuda)


def test_a_change_of_any_kernel_makes_another_cache(tmp_path):
    path = tmp_path / "fluid" / "kernels" / "cpu" / "sweep.py"
    path.parent.mkdir(parents=True)
    path.write_text("a = 1")
    before = caches.digest_of_kernels(tmp_path)
    assert caches.digest_of_kernels(tmp_path) == before
    path.write_text("a = 2")
    assert caches.digest_of_kernels(tmp_path) != before


def test_a_cache_of_cupy_that_cannot_be_written_is_told_and_replaced(
    one_gpu, faults, tmp_path, monkeypatch
):
    """A file stands where the folder would be, which stops the superuser as well."""
    (tmp_path / "file").write_text("")
    cache = str(tmp_path / "file" / "cupy")
    monkeypatch.setenv("CUPY_CACHE_DIR", cache)
    GpuBackend()
    assert faults == [
        f"the cache of kernels, {cache}, cannot be written (Not a directory): they are compiled at "
        "every start; set CUPY_CACHE_DIR to a folder that can be written"
    ]
    assert os.environ["CUPY_CACHE_DIR"] != cache
    GpuBackend()
    assert len(faults) == 1


def test_a_cache_of_cupy_that_can_be_written_stays(one_gpu, faults, tmp_path, monkeypatch):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cupy"))
    GpuBackend()
    assert faults == []
    assert os.environ["CUPY_CACHE_DIR"] == str(tmp_path / "cupy")
