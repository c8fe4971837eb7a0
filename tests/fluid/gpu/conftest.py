"""Fixtures of the tests of the GPU's kernels."""

import os

import pytest
from support.bodies import make_backend
from support.gpu_kernels import CASES

# loading a kernel waits for those that wait for it
os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")


@pytest.fixture(scope="module")
def backend():
    """A GPU."""
    return make_backend("gpu")


@pytest.fixture(params=CASES)
def case(request):
    """Cells and boundary of a grid."""
    return CASES[request.param]
