"""Every CUDA source of the fluid compiles for old and new GPUs, on a machine without one."""

import numpy as np
import pytest
from support.nvrtc import H200, architectures, compile_to_cubin, words_for

from hybrid_nbody.fluid.grid import Boundary, Face, Slab
from hybrid_nbody.fluid.kernels.gpu import layout as gpu_layout
from hybrid_nbody.fluid.kernels.gpu import multigrid
from hybrid_nbody.fluid.kernels.gpu.resident_boxes import boxes_of
from hybrid_nbody.fluid.kernels.gpu.tiling import tiling_of

KERNELS = {
    "red_black": (
        b"sweep",
        b"residual",
        b"exceeds",
        b"begin_solve",
        b"end_iteration",
        b"end_solve",
        b"end_passes",
        b"copy_back",
        b"impose",
    ),
    "budget": (b"sum_changes", b"update_budget", b"scale_changes"),
    "advection": (b"advect", b"advect_velocity", b"correct"),
    "cells": (
        b"split",
        b"split_twice",
        b"merge",
        b"divergence",
        b"subtract_gradient",
        b"confine",
        b"largest",
        b"plane_sums",
    ),
    "multigrid": (
        b"sweep",
        b"restrict_rows",
        b"restrict_finest_rows",
        b"restrict_planes",
        b"subtract_mean",
        b"prolong",
        b"prolong_to_finest",
    ),
    "peers": (b"barrier", b"push", b"push_and_barrier"),
}
SOURCES = gpu_layout.SOURCES | {
    "multigrid": multigrid.SOURCE,
    "peers": gpu_layout.FOLDER / "peers.cu",
}
WALLS = Slab((7, 5, 6), Boundary.of_axes(("free-slip", "no-slip", "free-slip")), 0, 6)
PERIODIC = Slab((512, 512, 512), Boundary.of_axes(("periodic", "periodic", "periodic")), 0, 512)
PART = Slab((84, 84, 84), Boundary.of_axes(("free-slip", "no-slip", "periodic")), 20, 30)
LID = Face("no-slip", (1.0, 0.0, 0.0))
STILL = Face("no-slip")
MOVING = Slab((84, 84, 84), Boundary((STILL, STILL, STILL, LID, STILL, Face("free-slip"))), 20, 64)
OLD, *_, NEW = architectures()

every_slab = pytest.mark.parametrize(
    "slab", [WALLS, PERIODIC, PART, MOVING], ids=["walls", "periodic", "part", "moving"]
)


@pytest.mark.parametrize("source", KERNELS)
@every_slab
@pytest.mark.parametrize(("dtype", "architecture"), [("f4", OLD), ("f4", NEW), ("f8", NEW)])
def test_sources_compile(source, slab, dtype, architecture):
    options = words_for(gpu_layout.defines(slab, dtype), gpu_layout.OPTIONS)
    cubin = compile_to_cubin(SOURCES[source].read_text(), options, architecture)
    for kernel in KERNELS[source]:
        assert kernel + b"\0" in cubin


@every_slab
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("dtype", "architecture"), [("f4", OLD), ("f4", NEW), ("f8", NEW)])
def test_passes_compile(slab, count, dtype, architecture):
    macros = gpu_layout.defines(slab, dtype) | tiling_of(slab, dtype, count, H200).macros(count)
    cubin = compile_to_cubin(
        (gpu_layout.FOLDER / "red_black_tiles.cu").read_text(),
        words_for(macros, gpu_layout.OPTIONS),
        architecture,
    )
    assert b"relax\0" in cubin
    assert (b"redo\0" in cubin) == (count == 1)


@pytest.mark.parametrize(
    ("cells", "boundary", "dtype", "architecture"),
    [
        ((168, 168, 168), "periodic", "f4", NEW),
        ((84, 84, 84), "no-slip", "f8", NEW),
        ((7, 5, 6), "no-slip", "f4", NEW),
        ((64, 64, 64), "periodic", "f4", OLD),
        ((84, 84, 84), "moving", "f4", NEW),
    ],
)
def test_resident_solves_compile(cells, dtype, boundary, architecture):
    moving = boundary == "moving"
    walls = MOVING.boundary if moving else Boundary.of_axes((boundary,) * 3)
    slab = Slab.whole(cells, walls)
    macros = gpu_layout.defines(slab, dtype) | boxes_of(slab, np.dtype(dtype), H200).macros
    source = (gpu_layout.FOLDER / "red_black_resident.cu").read_text()
    assert b"relax\0" in compile_to_cubin(
        source, words_for(macros, gpu_layout.OPTIONS), architecture
    )


def test_walls_that_move_are_compiled_in_only_where_there_are_some():
    still, moving = (gpu_layout.defines(slab, "f4") for slab in (WALLS, MOVING))
    assert (still["FACES"], still["GHOSTS_U"]) == (3, "-1,-1,1")
    assert moving["FACES"] == 6
    assert moving["GHOSTS_U"] == "-1,0.0,-1,0.0,-1,0.0,-1,2.0,-1,0.0,1,0.0"
