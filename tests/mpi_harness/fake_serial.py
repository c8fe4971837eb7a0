"""For tests/test_harness.py: tests that run on one rank only, or on one rank too."""

import pytest


def test_unmarked():
    pass


@pytest.mark.mpi
def test_marked(comm):
    assert comm.size >= 1


@pytest.mark.mpi(min_size=2)
def test_needs_two(comm):
    assert comm.size >= 2


@pytest.mark.gpu
def test_on_gpu():
    import cupy

    assert int(cupy.arange(3).sum()) == 3
