"""The CUDA source that the functions of a cell become compiles, without a GPU."""

import pytest
from support.nvrtc import compile_to_cubin, oldest_and_newest, words_for

from hybrid_nbody.backends.cells.cuda_text import cuda_source
from hybrid_nbody.backends.cells.gpu_sequence import sequence_source
from hybrid_nbody.backends.cells.translation import translated
from hybrid_nbody.fluid.kernels.cells import MODULES


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("architecture", oldest_and_newest())
def test_functions_of_cells_compile(dtype, architecture):
    functions = translated(MODULES)
    kernels = [name for name, function in functions.items() if function.role]
    cubin = compile_to_cubin(cuda_source(functions, dtype), words_for({}), architecture)
    assert {"subtract_gradient", "friction_moment", "advect"} < set(kernels)
    for name in kernels:
        assert f"run_{name}\0".encode() in cubin


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("architecture", oldest_and_newest())
def test_sequences_compile(dtype, architecture):
    source = sequence_source(translated(MODULES), dtype)
    assert "call_relax(call)" in source
    assert b"run_calls\0" in compile_to_cubin(source, words_for({}), architecture)
