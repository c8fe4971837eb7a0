"""Simulations of fluids from arrays, the end of a `with` block, and warnings."""

import warnings

import numpy as np
import pytest
from support.ranks import alone, communicator

from hybrid_nbody import Simulation
from hybrid_nbody.errors import InputError

__all__ = ["alone", "communicator"]

RANDOM = np.random.default_rng(3)
DENSITY = RANDOM.random((6, 8, 10))
VELOCITY = RANDOM.normal(size=(6, 8, 10, 3))
COMPUTE = {"backend": "cpu", "threads": 1}


def fluid(communicator, *arrays, **keys):
    """Return a simulation of a fluid from arrays, which only the root passes."""
    given = arrays if communicator.is_root else (None,) * len(arrays)
    options = {
        "dt": 0.02,
        "dtype": "float64",
        "compute": COMPUTE,
        "boundary": "periodic",
        "grid": "collocated",
    }
    return Simulation.from_fluid(*given, communicator=communicator, **(options | keys))


@pytest.mark.mpi
def test_a_fluid_starts_from_arrays_of_the_root(communicator):
    simulation = fluid(communicator, DENSITY, VELOCITY)
    assert simulation.config.grid.cells == (10, 8, 6)
    np.testing.assert_array_equal(simulation.gathered("fluid/density"), DENSITY)
    np.testing.assert_array_equal(simulation.gathered("fluid/velocity"), VELOCITY)
    total = simulation.diagnostics["total_density"]
    np.testing.assert_allclose(total, DENSITY.sum(), rtol=1e-13)


@pytest.mark.mpi
@pytest.mark.parametrize("grid", ["collocated", "staggered"])
@pytest.mark.parametrize("output", [{"planes": [3]}, {"stride": 2}, {"fields": ["velocity"]}])
def test_what_files_would_hold_of_a_fluid_does_not_matter(communicator, grid, output):
    simulation = fluid(communicator, DENSITY, VELOCITY, grid=grid, output=output)
    np.testing.assert_array_equal(simulation.gathered("fluid/density"), DENSITY)
    simulation.density = 2 * simulation.density
    np.testing.assert_array_equal(simulation.gathered("fluid/density"), 2 * DENSITY)
    assert simulation.gathered("fluid/velocity").shape == VELOCITY.shape


@pytest.mark.mpi
def test_several_ranks_step_it_to_the_bits_of_one(communicator, alone):
    several = fluid(communicator, DENSITY, VELOCITY)
    one = Simulation.from_fluid(
        DENSITY,
        VELOCITY,
        dt=0.02,
        dtype="float64",
        compute=COMPUTE,
        boundary="periodic",
        grid="collocated",
        communicator=alone,
    )
    for simulation in (several, one):
        simulation.step(2)
    np.testing.assert_array_equal(several.gathered("fluid/density"), one.density)
    np.testing.assert_array_equal(several.gathered("fluid/velocity"), one.velocity)
    assert not np.array_equal(one.velocity, VELOCITY)


def test_a_flow_along_the_box_carries_the_density_with_it(alone):
    """A uniform flow moves what it carries by a whole cell in a step of h / speed."""
    uniform = np.zeros((8, 8, 8, 3))
    uniform[..., 0] = 1.0
    density = np.zeros((8, 8, 8))
    density[3, 4, 2] = 1.0
    moved = fluid(alone, density, uniform, dt=1 / 8, viscosity=0.0, diffusion=0.0)
    moved.step(3)
    np.testing.assert_allclose(moved.density, np.roll(density, 3, axis=2), rtol=0, atol=1e-12)
    np.testing.assert_allclose(moved.velocity, uniform, rtol=0, atol=1e-12)
    assert moved.time == pytest.approx(3 / 8, rel=1e-12)


def test_what_is_not_given_is_at_rest_and_empty(alone):
    still = fluid(alone, cells=(4, 6, 8), viscosity=0.5, fluid={"diffusion": 0.25})
    assert still.density.shape == (8, 6, 4)
    assert (still.config.fluid.viscosity, still.config.fluid.diffusion) == (0.5, 0.25)
    assert not still.velocity.any()
    assert fluid(alone, cells=4).config.grid.cells == (4, 4, 4)


@pytest.mark.mpi
def test_on_the_staggered_grid_faces_get_the_mean_of_two_cells(communicator):
    """Of a wave sin(kx) in y, which has no divergence, means along y leave all."""
    phase = 2 * np.pi * np.arange(10) / 10
    wave = np.zeros((6, 8, 10, 3))
    wave[..., 1] = np.sin(phase)
    wave[..., 0] = 1.0
    simulation = fluid(communicator, DENSITY, wave, grid="staggered")
    np.testing.assert_array_equal(simulation.gathered("fluid/density"), DENSITY)
    found = simulation.gathered("fluid/velocity")
    np.testing.assert_allclose(found, wave, rtol=0, atol=1e-12)
    simulation.density = 3 * simulation.density
    np.testing.assert_array_equal(simulation.gathered("fluid/density"), 3 * DENSITY)
    np.testing.assert_allclose(simulation.gathered("fluid/velocity"), found, rtol=0, atol=1e-15)
    simulation.step()
    assert simulation.diagnostics["total_density"] == pytest.approx(3 * DENSITY.sum(), rel=1e-9)


@pytest.mark.mpi
def test_the_density_is_set_and_the_flow_goes_on(communicator):
    changed = fluid(communicator, DENSITY, VELOCITY)
    other = fluid(communicator, DENSITY, VELOCITY)
    changed.step(2)
    other.step(2)
    own = changed.density
    changed.density = 2 * own
    np.testing.assert_array_equal(changed.density, 2 * own)
    np.testing.assert_array_equal(changed.velocity, other.velocity)
    assert (changed.steps, changed.dt) == (2, 0.02)
    changed.step()
    other.step()
    np.testing.assert_allclose(changed.density, 2 * other.density, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(changed.velocity, other.velocity)
    changed.velocity = 0 * changed.velocity
    assert not changed.velocity.any()
    with pytest.raises(InputError, match="density: this rank needs an array of shape"):
        changed.density = own[:, :3]


@pytest.mark.parametrize(
    ("arrays", "keys", "text"),
    [
        ((), {}, "from_fluid: give density, velocity or cells"),
        ((DENSITY[0],), {}, r"density: must be a \(nz, ny, nx\) array of numbers \(got \(8, 10\)"),
        ((None, DENSITY), {}, r"velocity: must be a \(nz, ny, nx, 3\) array"),
        ((DENSITY, VELOCITY[:4]), {}, r"velocity: its cells \(z, y, x\) must be \(6, 8, 10\)"),
        ((DENSITY,), {"cells": 8}, r"density: its cells \(z, y, x\) must be \(8, 8, 8\)"),
        ((DENSITY * np.inf,), {}, "density: every number must be finite"),
        ((), {"cells": [4, 4]}, "cells: must be a whole number, or three"),
        (
            (),
            {"cells": 4, "viscocity": 1},
            r"fluid\.viscocity: unknown key; did you mean .visc",
        ),
    ],
)
def test_wrong_fluids_are_named(alone, arrays, keys, text):
    with pytest.raises(InputError, match=text):
        fluid(alone, *arrays, **keys)


# ---- The end, and warnings -----------------------------------------------------------------------

PAIR = ([[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]], [1, 1])


@pytest.mark.mpi
def test_a_block_closes_its_simulation(communicator):
    with fluid(communicator, DENSITY) as simulation:
        simulation.step()
    assert repr(simulation) == "Simulation(model=fluid, closed)"
    simulation.close()
    for use in (simulation.step, lambda: simulation.density, lambda: simulation.time):
        with pytest.raises(InputError, match="this simulation is closed; make another one"):
            use()


def test_a_block_closes_it_after_an_error_too(alone):
    with pytest.raises(ZeroDivisionError), fluid(alone, cells=4) as simulation:
        raise ZeroDivisionError
    assert "closed" in repr(simulation)


def test_what_a_run_warns_of_is_a_warning_at_the_line_that_asked(alone):
    with pytest.warns(UserWarning, match=r"time\.dt: 0\.5 is long beside the shortest") as caught:
        Simulation.from_bodies(*PAIR, dt=0.5, softening=0.1, compute=COMPUTE, communicator=alone)
    assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Simulation.from_bodies(*PAIR, dt=1e-3, softening=0.1, compute=COMPUTE, communicator=alone)


def test_a_warning_comes_once_however_often_bodies_change(alone):
    with pytest.warns(UserWarning) as caught:
        few = Simulation.from_bodies(
            *PAIR, dt=0.5, softening=0.1, compute=COMPUTE, communicator=alone
        )
        few.remove(few.add([[3, 0, 0]], [[0, 0, 0]], [0.1]))
    assert len(caught) == 1
