"""Orbits of a few bodies, here and in REBOUND: the same steps, to rounding.

`pip install rebound`; without it the test is skipped.
"""

import numpy as np
import pytest
from support.ranks import alone, communicator

from hybrid_nbody import Simulation

__all__ = ["alone", "communicator"]

DT, STEPS = 1e-2, 1000

PROBLEMS = {
    "two bodies": (
        [1.0, 0.5],
        [[0.5, 0, 0], [-1, 0, 0]],
        [[0, 0.3, 0], [0, -0.6, 0]],
    ),
    "five bodies": (
        [1.0, 1e-3, 5e-4, 3e-5, 2e-6],
        [[0, 0, 0], [1, 0, 0], [0, 1.7, 0.1], [-2.6, 0, -0.2], [0, -4.1, 0]],
        [[0, 0, 0], [0, 1, 0], [-0.77, 0, 0], [0, -0.62, 0.01], [0.49, 0, 0]],
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_leapfrog_is_that_of_rebound(name, alone):
    """That of REBOUND drifts, kicks and drifts: half a step later it is the same sequence."""
    rebound = pytest.importorskip("rebound", reason="pip install rebound")
    masses, positions, velocities = map(np.array, PROBLEMS[name])
    here = Simulation.from_bodies(
        positions,
        velocities,
        masses,
        dt=DT,
        gravity={"precision": "double"},
        compute={"backend": "cpu", "threads": 1},
        communicator=alone,
    )
    there = rebound.Simulation()
    there.integrator = "leapfrog"
    there.dt = DT
    velocities = velocities + 0.5 * DT * here.device.accelerations
    for mass, (x, y, z), (vx, vy, vz) in zip(
        masses, positions + 0.5 * DT * velocities, velocities, strict=True
    ):
        there.add(m=mass, x=x, y=y, z=z, vx=vx, vy=vy, vz=vz)
    for _ in range(STEPS):
        here.step()
        there.steps(1)
        theirs = [np.subtract(body.xyz, 0.5 * DT * np.array(body.vxyz)) for body in there.particles]
        np.testing.assert_allclose(here.positions, theirs, rtol=0, atol=1e-12)
