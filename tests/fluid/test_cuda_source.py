"""Every CUDA source of the fluid compiles for old and new GPUs, on a machine without one."""

import pytest
from support.nvrtc import architectures, compile_to_cubin

from hybrid_nbody.backends.gpu import compile_options
from hybrid_nbody.fluid.kernels import gpu_layout
from hybrid_nbody.fluid.kernels.multigrid import gpu as multigrid
from hybrid_nbody.fluid.slab import Slab

KERNELS = {
    "sweeps": (b"sweep", b"relax_colour", b"residual", b"exceeds", b"begin_solve", b"end_iteration", b"end_solve"),
    "tiles": (b"relax_1", b"relax_2", b"redo", b"settle", b"bring_home"),
    "transport": (b"advect", b"correct"),
    "cells": (b"split", b"merge", b"divergence", b"subtract_gradient", b"confine", b"largest", b"plane_sums"),
    "multigrid": (b"sweep", b"average_rows", b"average_planes", b"centre", b"correct", b"correct_colours"),
}
SOURCES = gpu_layout.SOURCES | {"multigrid": multigrid.SOURCE}
WALLS = Slab((7, 5, 6), ("free-slip", "no-slip", "free-slip"), 0, 6)
PERIODIC = Slab((512, 512, 512), ("periodic", "periodic", "periodic"), 0, 512)
PART = Slab((84, 84, 84), ("free-slip", "no-slip", "periodic"), 20, 30)
OLD, *_, NEW = architectures()


@pytest.mark.parametrize("source", KERNELS)
@pytest.mark.parametrize("slab", [WALLS, PERIODIC, PART], ids=["walls", "periodic", "part"])
@pytest.mark.parametrize(("dtype", "architecture"), [("f4", OLD), ("f4", NEW), ("f8", NEW)])
def test_sources_compile(source, slab, dtype, architecture):
    options = compile_options(gpu_layout.defines(slab, dtype), gpu_layout.OPTIONS)
    cubin = compile_to_cubin(SOURCES[source].read_text(), options, architecture)
    for kernel in KERNELS[source]:
        assert kernel + b"\0" in cubin
