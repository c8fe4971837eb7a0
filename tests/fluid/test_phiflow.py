"""Smoke that rises around a ball, here and in PhiFlow: as much of it, in the same place.

`pip install phiflow`; without it the test is skipped. PhiFlow takes a minute for its 50 steps.
"""

import numpy as np
import pytest
from support.ranks import alone, communicator

from hybrid_nbody import Simulation

__all__ = ["alone", "communicator"]

CELLS, DT, STEPS = 32, 0.02, 50
CENTRE, RADIUS, BUOYANCY = (0.5, 0.5, 0.5), 0.15, 0.5

places = (np.arange(CELLS) + 0.5) / CELLS
Z, Y, X = np.meshgrid(places, places, places, indexing="ij")
DISTANCE = np.sqrt((X - 0.5) ** 2 + (Y - 0.2) ** 2 + (Z - 0.45) ** 2)
SMOKE = 0.5 * (1.0 - np.tanh((DISTANCE - 0.12) / 0.03))
"""A ball of smoke below and beside the solid one, at (z, y, x)."""


def here(ranks):
    """Return the smoke after some steps."""
    with Simulation.from_fluid(
        SMOKE,
        dt=DT,
        viscosity=0.0,
        compute={"backend": "cpu", "threads": 1},
        obstacles=[{"sphere": {"centre": list(CENTRE), "radius": RADIUS}}],
        fluid={
            "diffusion": 0.0,
            "buoyancy": BUOYANCY,
            "advection": "maccormack",
            "conserve": False,
        },
        communicator=ranks,
    ) as simulation:
        simulation.run(steps=STEPS)
        return np.array(simulation.density)


def there(flow):
    """Return the same from PhiFlow."""
    flow.math.set_global_precision(64)
    box = flow.Box(x=1, y=1, z=1)
    values = flow.tensor(SMOKE.transpose(2, 1, 0), flow.spatial("x,y,z"))
    smoke = flow.CenteredGrid(values, flow.ZERO_GRADIENT, bounds=box)
    velocity = flow.StaggeredGrid(0, 0, x=CELLS, y=CELLS, z=CELLS, bounds=box)
    ball = flow.Obstacle(
        flow.Sphere(flow.vec(**dict(zip("xyz", CENTRE, strict=True))), radius=RADIUS)
    )
    quiet = [flow.math.NotConverged, flow.math.Diverged]
    pressure = None
    for _ in range(STEPS):
        smoke = flow.advect.mac_cormack(smoke, velocity, DT)
        lift = (smoke * (0, BUOYANCY, 0)).at(velocity)
        velocity = flow.advect.mac_cormack(velocity, velocity, DT) + lift * DT
        solve = flow.Solve("CG", 1e-5, 1e-5, x0=pressure, max_iterations=300, suppress=quiet)
        velocity, pressure = flow.fluid.make_incompressible(velocity, ball, solve)
    return smoke.values.numpy("z,y,x")


def middle(smoke):
    """Return the centre of mass of smoke, in edges of the box."""
    return [np.average(place, weights=smoke) for place in (X, Y, Z)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_smoke_is_where_phiflow_has_it(alone):
    flow = pytest.importorskip("phi.flow", reason="pip install phiflow")
    ours, theirs = here(alone), there(flow)
    assert ours.sum() == pytest.approx(theirs.sum(), rel=0.02)
    np.testing.assert_allclose(middle(ours), middle(theirs), rtol=0, atol=0.02)
    assert middle(ours)[1] > middle(SMOKE)[1] + 0.05
