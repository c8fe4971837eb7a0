"""Boxes and tiles cover every grid, and fit into the GPU, for GPUs of all kinds; no GPU is needed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nvrtc import H200

from hybrid_nbody.fluid.kernels.gpu_boxes import OWN_SHARED_MEMORY, boxes_of
from hybrid_nbody.fluid.kernels.gpu_tiles import LANES, SMALLEST, tiling_of
from hybrid_nbody.fluid.slab import Slab

GPUS = st.fixed_dictionaries(
    {
        "multiprocessors": st.integers(1, 150),
        "threads_per_block_limit": st.just(1024),
        "registers_per_block_limit": st.just(65536),
        "shared_memory_per_block_limit": st.sampled_from([65536, 101376, 166912, 232448]),
    }
)
GRIDS = st.tuples(*[st.integers(1, 300)] * 3)
WALLS = ("free-slip",) * 3


@given(GRIDS, st.sampled_from(["f4", "f8"]), GPUS)
def test_boxes_cover_the_grid_and_fit(cells, dtype, gpu):
    slab = Slab.whole(cells, WALLS)
    boxes = boxes_of(slab, dtype, gpu)
    if boxes is None:
        return
    (_, ny, nz), rows = cells, boxes.threads // slab.half * boxes.places
    assert boxes.number <= gpu["multiprocessors"]
    assert (boxes.across - 1) * boxes.rows < ny <= boxes.across * boxes.rows
    assert (boxes.along - 1) * boxes.planes < nz <= boxes.along * boxes.planes
    assert rows >= boxes.rows
    assert boxes.threads % LANES == 0
    assert boxes.threads <= gpu["threads_per_block_limit"]
    assert boxes.memory(dtype) + OWN_SHARED_MEMORY <= gpu["shared_memory_per_block_limit"]


@pytest.mark.parametrize(("edge", "dtype", "fits"), [(168, "f4", True), (200, "f4", False), (84, "f8", True)])
def test_which_grids_an_h200_keeps(edge, dtype, fits):
    assert bool(boxes_of(Slab.whole((edge,) * 3, WALLS), dtype, H200)) == fits


@given(GRIDS, st.sampled_from(["f4", "f8"]), st.sampled_from([1, 2]), GPUS, st.booleans())
def test_tiles_fit(cells, dtype, count, gpu, wraps):
    tiling = tiling_of(Slab.whole(cells, ("periodic",) * 3 if wraps else WALLS), dtype, count, gpu)
    needed = tiling.memory(dtype) + tiling.edges(dtype, count)
    assert tiling == SMALLEST or needed <= gpu["shared_memory_per_block_limit"]
    assert tiling.threads <= gpu["threads_per_block_limit"]
    assert tiling.height > 4 * count


@given(GRIDS, st.sampled_from([1, 2]), st.integers(1, 150))
def test_blocks_share_out_the_whole_grid(cells, count, multiprocessors):
    slab = Slab.whole(cells, WALLS)
    tiling = tiling_of(slab, "f4", count, H200)
    across, rows = tiling.grid(slab, count, multiprocessors)
    assert across * rows <= max(multiprocessors, across)
    assert across * tiling.side * LANES >= slab.half
    strips = int(np.ceil(slab.cells[1] / tiling.height))
    assert 1 <= rows <= max(1, multiprocessors // across)
    assert rows <= 2 * strips * slab.planes
