"""The memory of a rank against its estimate, by which grids are refused."""

import gc
import tracemalloc

import numpy as np
import pytest
from support import configs
from support.bodies import make_backend
from support.fluids import make_halo

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.fluid.build import event_of
from hybrid_nbody.fluid.on_faces import USUAL_DEPTH, Staggered

PLANES = 48
MESSAGE_CELLS = 1 << 22
"""Those of a GPU: all coarse grids are complete. Rows of 92 cells need little padding on a CPU."""

FLUID = """\
model: fluid
grid: {{cells: [92, 92, {planes}]}}
fluid: {{grid: staggered, dtype: float64, boundary: [no-slip, no-slip, periodic]}}
solver: {{method: {method}, max_iterations: 2}}
sources: {{events: [{{step: 0, velocity: [0, 1, 0]}}]}}
time: {{dt: 1e-3, steps: 1}}
compute: {{backend: cpu, threads: 1}}
"""
BALL = "obstacles: [{sphere: {centre: [0.3, 0.3, 0.2], radius: 0.1}}]\n"


def bytes_of_arrays():
    """Return the bytes of all arrays since memory is traced."""
    gc.collect()
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    traces = tracemalloc.take_snapshot().filter_traces([arrays])
    return sum(found.size for found in traces.statistics("filename"))


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize(
    ("method", "obstacles"),
    [("conjugate-gradients", ""), ("conjugate-gradients", BALL), ("multigrid", "")],
    ids=["conjugate gradients", "ball", "multigrid"],
)
def test_a_rank_holds_no_more_than_estimated(communicator, monkeypatch, method, obstacles):
    monkeypatch.setattr(CpuBackend, "message_cells", MESSAGE_CELLS)
    planes = PLANES * communicator.size
    config = configs.loads(FLUID.format(planes=planes, method=method) + obstacles, "test.yaml")
    scheme, backend = Staggered(config), make_backend("cpu")
    halo = make_halo(backend, communicator, planes, scheme.periodic)
    events = [event_of(event, config.grid.centre) for event in config.sources.events]
    tracemalloc.start()
    try:
        model = scheme.model(backend, halo, events, mixed=False)
        model.stepper.advection._fit_windows(USUAL_DEPTH)
        model.advance(1)
        held = bytes_of_arrays()
    finally:
        tracemalloc.stop()
    estimate = scheme.rank_bytes(PLANES) + scheme.complete_bytes(MESSAGE_CELLS)
    assert model.stepper.projection.iterations > 0
    assert 0.8 * estimate < held <= estimate
