"""A staggered grid that stands for that of a run, where what a run needs is found or measured."""

import gc
import pickle
import weakref

import numpy as np
from support import configs

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.fluid.on_faces import Staggered

ROOT = """
model: fluid
grid: {cells: [64, 32, 16]}
fluid:
  grid: staggered
  boundary: {x-: {inflow: ["(1 - y / 0.5)**0.2 + z", 0, 0]}, x+: outflow, y: free-slip, z: no-slip}
time: {dt: 0.01, steps: 3}
"""


def test_formulas_hold_within_another_box():
    """The middle of its face is that of the run's, though it is a cube; beyond y = 1/2 is none."""
    scheme = Staggered(configs.loads(ROOT, "test.yaml"))
    real = scheme._faces((64, 32, 16)).x_low.velocity
    small = scheme._faces((8, 8, 8)).x_low.velocity
    for y, z in [(0.25, 0.125), (0.5, 0.0)]:
        expected = real.values(np.array([[0.0, y, z]]), 0.0)
        found = small.values(np.array([[0.0, 2 * y, 4 * z]]), 0.0)
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0)
    assert np.isfinite(small.values(np.array([[0.0, 1.0, 1.0]]), 0.0)).all()
    assert small.steady


def test_what_a_scheme_has_made_goes_with_it():
    """And is no part of what a process that helps to compile is sent."""
    ball = "obstacles: [{sphere: {centre: [0.5, 0.25, 0.12], radius: 0.1}}]\n"
    config = configs.loads(ROOT + ball, "test.yaml")
    scheme = Staggered(config)
    backend = CpuBackend(1)
    assert scheme.program(backend) is scheme.program(backend)
    assert scheme.obstacles() is scheme.obstacles()
    helper = pickle.loads(pickle.dumps(scheme))
    assert helper.config == config
    assert helper.obstacles() == scheme.obstacles()
    held = weakref.ref(backend)
    del scheme, backend
    gc.collect()
    assert held() is None
