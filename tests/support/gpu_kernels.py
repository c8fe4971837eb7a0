"""Slabs of one GPU, and fields on them, for the tests of the GPU's fluid kernels."""

import numpy as np
import pytest
from support.fluid_kernels import ghosts_of_signs

from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.kernels.gpu import kernels as gpu
from hybrid_nbody.fluid.kernels.gpu import red_black
from hybrid_nbody.fluid.kernels.gpu import tiling as gpu_tiles
from hybrid_nbody.fluid.kernels.gpu.layout import LANES
from hybrid_nbody.fluid.kernels.gpu.resident_boxes import Boxes
from hybrid_nbody.fluid.kernels.gpu.tiling import SMALL_TILES, Tiling
from hybrid_nbody.fluid.stencil import POISSON, diffusion

CASES = {
    "walls": ((70, 75, 10), Boundary.of_axes(("free-slip", "no-slip", "free-slip"))),
    "odd": ((135, 5, 7), Boundary.of_axes(("no-slip", "free-slip", "no-slip"))),
    "periodic": ((132, 70, 8), Boundary.of_axes(("periodic", "periodic", "periodic"))),
    "mixed": ((20, 34, 6), Boundary.of_axes(("periodic", "free-slip", "periodic"))),
    "ring": ((128, 34, 6), Boundary.of_axes(("periodic", "no-slip", "periodic"))),
    "ring in y": ((70, 32, 7), Boundary.of_axes(("no-slip", "periodic", "free-slip"))),
    "one": ((1, 1, 1), Boundary.of_axes(("free-slip", "free-slip", "free-slip"))),
}
RTOL = {"f4": 2e-5, "f8": 1e-12}

STENCILS = {
    "poisson": POISSON,
    "diffusion": diffusion(0.7, ghosts_of_signs(1, -1, 1)),
    "mirrored": diffusion(2.5, ghosts_of_signs(-1, -1, -1)),
}

LEAST_THREADS = 256
LEAST_WALK = 12
"""Planes of a walk that tells when the first of them are complete."""
MOST_BLOCKS = 100
"""That run at once on any GPU these tests are for."""


def in_boxes(planes, thread_rows):
    """Return a function that keeps a grid in boxes of `planes`; the last may be smaller."""

    def make_residence(kernels):
        slab, (_, ny, nz) = kernels.slab, kernels.slab.cells
        along = -(-nz // planes)
        rows = min(ny, max(2 * thread_rows + 1, -(-ny // (MOST_BLOCKS // along))))
        threads = max(LEAST_THREADS, -(-(-(-rows // thread_rows) * slab.half) // LANES) * LANES)
        boxes = Boxes(
            rows, min(planes, nz), -(-ny // rows), along, thread_rows, threads, slab.half + 3
        )
        return red_black.ResidentSolver(kernels, boxes)

    return make_residence


def in_passes(*tiling, stages=(2, 2)):
    """Return a function that solves in passes with such tiles; stages depend on the iterations."""

    def make_passes(kernels):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                red_black, "tiling_of", lambda _, __, count, ___: Tiling(*tiling, stages[count - 1])
            )
            return red_black.TiledSolver(kernels)

    return make_passes


def in_long_walks(kernels):
    """Solve on a GPU of five multiprocessors: three have tiles, two push planes meanwhile."""
    facts = kernels.backend.facts() | {"multiprocessors": 5}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_tiles, "LONG_WALK", LEAST_WALK)
        patch.setattr(kernels.backend, "facts", lambda: facts)
        return red_black.TiledSolver(kernels)


WAYS = {
    "resident": red_black.fastest_solver,
    "deep boxes": in_boxes(4, 2),
    "boxes of all planes": in_boxes(32, 3),
    "tiles": in_passes(4, 8, 1, 1, stages=(4, 3)),
    "tall tiles": in_passes(8, 4, 1, 1, stages=(2, 6)),
    "aligned tiles": in_passes(4, 8, 1, 4, stages=(4, 3)),
    "wide tiles": in_passes(4, 8, 2, 4),
    "small tiles": in_passes(*SMALL_TILES[-1][:-1]),
}
OTHER_WAYS = {"long walks": in_long_walks}

MADE = {}


def make(backend, case, dtype, first=0, planes=None, way="resident"):
    """Return the kernels of a slab, compiled once."""

    cells, boundary = case
    slab = Slab(cells, boundary, first, cells[2] if planes is None else planes)
    key = slab, dtype, way
    if key not in MADE:
        MADE[key] = gpu.Kernels(backend, slab, dtype)
        if way != "resident":
            MADE[key].pass_solver = (WAYS | OTHER_WAYS)[way](MADE[key])
    return MADE[key]


def values(case, seed=0, scale=1.0):
    nx, ny, nz = case[0]
    return scale * np.random.default_rng(seed).uniform(-1, 1, (nz, ny, nx))


def upload(kernels, whole):
    """Return the slab's planes of a global array with their halo; behind walls it is NaN."""
    slab, array = kernels.slab, kernels.field()
    host = np.full(slab.shape, np.nan, kernels.dtype)
    for plane in range(slab.planes + 2):
        z = slab.first + plane - 1
        if slab.periodic[2] or 0 <= z < slab.cells[2]:
            host[plane] = whole[z % slab.cells[2]]
    array.set(host)
    return array


def colours_of(kernels, whole):
    """Return the same as colours."""
    field, colours = upload(kernels, whole), kernels.colours()
    kernels.fill(colours, np.nan)
    kernels.split(field, colours)
    return colours


def merged(kernels, colours):
    field = kernels.field()
    kernels.merge(colours, field)
    return inner(kernels, field)


def inner(kernels, field):
    return kernels.backend.download(field)[1:-1].astype(float)


def close(found, expected, dtype, factor=1.0):
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=factor * RTOL[dtype] * max(np.abs(expected).max(), 1e-3)
    )


def rounded(array, dtype):
    return array.astype(dtype).astype(float)
