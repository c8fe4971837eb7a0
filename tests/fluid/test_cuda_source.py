"""Every CUDA source of the fluid compiles for old and new GPUs, on a machine without one."""

import pytest
from support.nvrtc import architectures, compile_to_cubin

from hybrid_nbody.backends.gpu import compile_options
from hybrid_nbody.fluid.kernels import gpu
from hybrid_nbody.fluid.slab import Slab

KERNELS = {
    "sweeps": (b"relax_1", b"relax_2", b"redo", b"settle", b"bring_home", b"sweep", b"residual", b"exceeds"),
    "transport": (b"advect", b"correct"),
    "cells": (b"split", b"merge", b"divergence", b"subtract_gradient", b"confine", b"largest", b"plane_sums"),
}
SLABS = {
    "walls": Slab((7, 5, 6), ("free-slip", "no-slip", "free-slip"), 0, 6),
    "periodic": Slab((512, 512, 512), ("periodic", "periodic", "periodic"), 0, 512),
    "part": Slab((84, 84, 84), ("free-slip", "no-slip", "periodic"), 20, 30),
}


@pytest.mark.parametrize("source", KERNELS)
@pytest.mark.parametrize("architecture", architectures())
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("slab", SLABS.values(), ids=SLABS)
def test_sources_compile(source, architecture, dtype, slab):
    options = compile_options(gpu.defines(slab, dtype))
    cubin = compile_to_cubin(gpu.SOURCES[source].read_text(), options, architecture)
    for kernel in KERNELS[source]:
        assert kernel + b"\0" in cubin
