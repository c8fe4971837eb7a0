"""Models in equilibrium stay what they are: the radii that hold shares of their mass do not move.

Each has 2048 bodies, whose forces upon each other are softened by a twentieth of the half-mass
radius r, and is followed for ten dynamical times sqrt(r^3 / (G m)), m being the mass within r.

The radius that holds a share f of N bodies drawn from a profile has a standard error of
sqrt(f (1 - f) / N) d ln r / d f; that of the difference of two, drawn ten dynamical times apart, is
sqrt(2) times as large. Two of these and 1 % are allowed: 7 to 13 %, and 16 to 22 % of a halo of
half as many bodies. Spheres were found to change by 0.1 to 8 %.
"""

import numpy as np
import pytest
from support.ranks import alone

from hybrid_nbody import Simulation
from hybrid_nbody.nbody.bodies import Bodies, joined
from hybrid_nbody.nbody.initial.galaxy import Galaxy, drawn_galaxy
from hybrid_nbody.nbody.initial.models import drawn_hernquist, drawn_king, drawn_nfw
from hybrid_nbody.nbody.initial_conditions import plummer

__all__ = ["alone"]

pytestmark = pytest.mark.filterwarnings("ignore:time.dt")  # of the closest pair

NUMBER = 2048
TIMES = 10
STEPS = 25
"""Of a dynamical time."""

SHARES = np.array([0.2, 0.5, 0.8])

SPHERES = {
    "plummer": lambda: plummer(NUMBER, seed=2),
    "hernquist": lambda: drawn_hernquist(NUMBER, seed=2).all(),
    "nfw": lambda: drawn_nfw(NUMBER, seed=2).all(),
    "king": lambda: drawn_king(NUMBER, seed=2).all(),
}


def distances(position, axes=3):
    """Return the distances of bodies from their median, or from the axis through it."""
    offset = position - np.median(position, axis=0)
    return np.linalg.norm(offset[:, :axes], axis=1)


def moved(before, after):
    """Return the relative changes of the radii that hold some shares, over what is allowed."""
    inner, outer = (np.log(np.quantile(before, SHARES + step)) for step in (-0.1, 0.1))
    error = np.sqrt(SHARES * (1 - SHARES) / len(before)) * (outer - inner) / 0.2
    change = np.quantile(after, SHARES) / np.quantile(before, SHARES) - 1
    return np.abs(change) / (2 * np.sqrt(2) * error + 0.01)


def followed(bodies, half, ranks, halo=None):
    """Return the positions after ten dynamical times of a radius, in a halo or without one."""
    mass = bodies.mass[distances(bodies.position) < half].sum()
    if halo:
        mass += halo["mass"] * (half / (half + halo["scale"])) ** 2
    time = np.sqrt(half**3 / mass)
    with Simulation.from_bodies(
        bodies.position,
        bodies.velocity,
        bodies.mass,
        dt=time / STEPS,
        softening=half / 20,
        gravity={"external": [halo]} if halo else {},
        compute={"backend": "cpu", "threads": 1},
        communicator=ranks,
    ) as simulation:
        simulation.run(steps=TIMES * STEPS)
        return np.array(simulation.positions)


@pytest.mark.parametrize("kind", SPHERES)
def test_spheres_keep_their_radii(kind, alone):
    bodies = SPHERES[kind]()
    before = distances(bodies.position)
    after = distances(followed(bodies, np.median(before), alone))
    assert moved(before, after).max() < 1


def test_a_sphere_whose_bodies_are_too_slow_does_not(alone):
    """By a tenth: what is in equilibrium is told from what is nearly so."""
    made = plummer(NUMBER, seed=2)
    before = distances(made.position)
    slow = Bodies(made.position, 0.9 * made.velocity, made.mass)
    after = distances(followed(slow, np.median(before), alone))
    assert moved(before, after).max() > 1


def test_a_halo_keeps_its_radii_around_a_disc(alone):
    parts = [part.all() for part in drawn_galaxy(NUMBER, seed=2).values()]
    before = distances(parts[1].position)
    after = distances(followed(joined(parts), np.median(before), alone)[len(parts[0]) :])
    assert moved(before, after).max() < 1


def test_a_disc_keeps_its_radii_in_a_halo(alone):
    """In a smooth halo: bodies of a few thousand, nine times as heavy, stir the disc up."""
    disc = drawn_galaxy(2 * NUMBER, seed=2)["disc"].all()
    galaxy = Galaxy()
    halo = {"kind": "hernquist", "mass": galaxy.halo_mass, "scale": galaxy.halo_scale}
    before = distances(disc.position, 2)
    after = distances(followed(disc, np.median(before), alone, halo), 2)
    assert moved(before, after).max() < 1
