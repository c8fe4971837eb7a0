"""Fixtures of the fluid tests."""

import pytest
from support.bodies import make_backend
from support.fluid_kernels import BOUNDS, CASES
from support.ranks import alone, communicator

__all__ = ["alone", "communicator"]


@pytest.fixture
def backend(backend_name, communicator):
    """A backend of each kind."""
    return make_backend(backend_name, threads=1, local_rank=communicator.local_rank)


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]} {case[1]}")
def case(request):
    """Cells and boundary of a grid."""
    return request.param


@pytest.fixture(params=BOUNDS)
def dtype(request):
    """A working type."""
    return request.param
