"""Smoke that rises around a ball, here and in PhiFlow: as much of it, in the same place.

`pip install phiflow`; without it the test is skipped. On a core PhiFlow takes two minutes for its
50 steps of 32^3 cells, and six for those of 64^3.
"""

import faulthandler

import numpy as np
import pytest
from support.ranks import alone, communicator

from hybrid_nbody import Simulation

__all__ = ["alone", "communicator"]

DT, STEPS = 0.02, 50
CENTRE, RADIUS, BUOYANCY = (0.5, 0.5, 0.5), 0.15, 0.5


def places(cells):
    """Return the coordinates x, y and z of the centres of all cells, at (z, y, x)."""
    along = (np.arange(cells) + 0.5) / cells
    return np.meshgrid(along, along, along, indexing="ij")[::-1]


def smoke_of(cells):
    """Return a ball of smoke below and beside the solid one, at (z, y, x)."""
    x, y, z = places(cells)
    distance = np.sqrt((x - 0.5) ** 2 + (y - 0.2) ** 2 + (z - 0.45) ** 2)
    return 0.5 * (1.0 - np.tanh((distance - 0.12) / 0.03))


def here(smoke, ranks):
    """Return the smoke after some steps."""
    with Simulation.from_fluid(
        smoke,
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


def there(given, flow):
    """Return the same from PhiFlow."""
    cells = len(given)
    flow.math.set_global_precision(64)
    box = flow.Box(x=1, y=1, z=1)
    values = flow.tensor(given.transpose(2, 1, 0), flow.spatial("x,y,z"))
    smoke = flow.CenteredGrid(values, flow.ZERO_GRADIENT, bounds=box)
    velocity = flow.StaggeredGrid(0, 0, x=cells, y=cells, z=cells, bounds=box)
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
    return [np.average(place, weights=smoke) for place in places(len(smoke))]


@pytest.fixture
def wide_indices(monkeypatch):
    """Let PhiML number the entries of its matrix in 64 bits: of 64^3 cells, 32 are too few."""
    backend = pytest.importorskip("phiml.backend").NUMPY
    numbered = backend.ravel_multi_index

    def in_64_bits(index, *arguments, **options):
        return numbered(np.asarray(index, np.int64), *arguments, **options)

    monkeypatch.setattr(backend, "ravel_multi_index", in_64_bits)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("cells", [32, 64])
def test_smoke_is_where_phiflow_has_it(cells, wide_indices, alone):
    flow = pytest.importorskip("phi.flow", reason="pip install phiflow")
    faulthandler.cancel_dump_traceback_later()  # it takes longer than any test of ours may
    before = smoke_of(cells)
    ours = here(before, alone)
    theirs = there(before, flow)
    assert ours.sum() == pytest.approx(theirs.sum(), rel=0.02)
    np.testing.assert_allclose(middle(ours), middle(theirs), rtol=0, atol=0.02)
    assert middle(ours)[1] > middle(before)[1] + 0.05
