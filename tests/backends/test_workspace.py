"""Scratch memory is made once for a name, a shape and a type."""

import numpy as np
import pytest

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.workspace import Workspace


@pytest.fixture
def workspace():
    return Workspace(CpuBackend(1).zeros)


def test_an_array_is_made_once_and_keeps_what_it_holds(workspace):
    first = workspace.array("partial sums", (2, 3), "f8")
    assert (first.shape, first.dtype) == ((2, 3), np.float64)
    first[:] = 7
    assert workspace.array("partial sums", (2, 3), np.float64) is first
    assert (first == 7).all()


@pytest.mark.parametrize(
    "other", [("totals", (2, 3), "f8"), ("partial sums", (3, 2), "f8"), ("partial sums", 6, "f4")]
)
def test_another_name_shape_or_type_is_other_memory(workspace, other):
    first = workspace.array("partial sums", (2, 3), "f8")
    assert not np.shares_memory(first, workspace.array(*other))
    assert workspace.array("partial sums", (2, 3), "f8") is first


def test_memory_of_the_host_is_made_by_another_function():
    workspace = Workspace(CpuBackend(1).pinned)
    assert workspace.array("velocity", 5, "f4").shape == (5,)
