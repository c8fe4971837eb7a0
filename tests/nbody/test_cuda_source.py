"""Every CUDA source compiles for old and new GPUs, on a machine without one."""

import pytest
from support.nvrtc import architectures, compile_to_cubin

from hybrid_nbody.backends.gpu import compile_options
from hybrid_nbody.nbody.kernels import gpu
from hybrid_nbody.nbody.kernels.precision import PRECISIONS


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("architecture", architectures())
def test_gravity_compiles(precision, architecture):
    cubin = compile_to_cubin(gpu.SOURCE.read_text(), compile_options(gpu.defines(precision)), architecture)
    for kernel in (b"pack", b"accelerations_softened", b"accelerations_unsoftened", b"potentials", b"add_scaled"):
        assert kernel in cubin


def test_a_fault_in_the_source_is_found():
    with pytest.raises(ValueError, match="undefined"):
        compile_to_cubin(
            gpu.SOURCE.read_text().replace("rsqrtf(x)", "rsqurtf(x)"), compile_options({"SINGLE": 1, "CHUNK": 256}), 90
        )
