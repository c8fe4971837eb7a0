"""Many small systems side by side: the steps of single ones, energies, refusals."""

import numpy as np
import pytest
from support.nvrtc import compile_to_cubin, oldest_and_newest, words_for
from support.ranks import alone

from hybrid_nbody import Simulation, Systems
from hybrid_nbody.errors import InputError, NumericalError
from hybrid_nbody.nbody.kernels.gpu import systems as gpu

__all__ = ["alone"]

RANDOM = np.random.default_rng(4)


def some(number, bodies):
    """Return positions, velocities and masses of some systems."""
    shape = (number, bodies, 3)
    masses = RANDOM.uniform(0.5, 1.5, shape[:2])
    return RANDOM.normal(size=shape), 0.3 * RANDOM.normal(size=shape), masses


@pytest.mark.parametrize("backend", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("integrator", ["leapfrog", "yoshida4", "euler"])
@pytest.mark.parametrize("bodies", [2, 5, 32])
def test_each_steps_as_one_alone(backend, integrator, bodies, alone):
    given = some(3, bodies)
    options = {"dt": 1e-3, "softening": 0.1, "G": 0.7, "communicator": alone}
    together = Systems(*given, integrator=integrator, backend=backend, **options)
    together.run(30)
    for system in range(3):
        single = Simulation.from_bodies(
            *(array[system] for array in given),
            gravity={"precision": "double"},
            time={"integrator": integrator},
            compute={"backend": "cpu", "threads": 1},
            **options,
        )
        single.run(steps=30)
        found = together.positions[system]
        np.testing.assert_allclose(found, single.positions, rtol=0, atol=1e-12)
        moving = together.velocities[system]
        np.testing.assert_allclose(moving, single.velocities, rtol=0, atol=1e-12)
        assert together.energies[system] == pytest.approx(single.energy, rel=1e-12)
        error = single.diagnostics["relative_energy_error"]
        assert together.energy_errors[system] == pytest.approx(error, rel=0, abs=1e-12)


def test_steps_add_up_and_masses_may_be_shared(alone):
    position, velocity, masses = some(4, 3)
    options = {"dt": 1e-2, "softening": 0.2, "backend": "cpu", "communicator": alone}
    whole = Systems(position, velocity, masses[0], **options)
    parts = Systems(position, velocity, np.tile(masses[0], (4, 1)), **options)
    whole.run(10)
    parts.run(4)
    parts.run(6)
    np.testing.assert_array_equal(whole.positions, parts.positions)
    assert repr(parts) == "Systems(4 of 3 bodies, t=0.1, steps=10)"


def test_what_is_wrong_is_said(alone):
    position, velocity, masses = some(2, 3)
    options = {"dt": 0.1, "backend": "cpu", "communicator": alone}
    with pytest.raises(InputError, match=r"positions: must be an \(S, n, 3\) array, n from 2"):
        Systems(position[0], velocity[0], masses[0], **options)
    with pytest.raises(InputError, match=r"velocities: must be a \(2, 3, 3\) array"):
        Systems(position, velocity[:1], masses, **options)
    with pytest.raises(InputError, match=r"masses: must be a \(2, 3\) array \(got \(2,\)\)"):
        Systems(position, velocity, masses[:, 0], **options)
    with pytest.raises(InputError, match="integrator: must be one of leapfrog"):
        Systems(position, velocity, masses, integrator="hermite4", **options)
    for key, value in {"dt": 0, "softening": -1, "backend": "hybrid"}.items():
        with pytest.raises(InputError, match=f"{key}: must be"):
            Systems(position, velocity, masses, **(options | {key: value}))
    for steps in (1.5, "3", True, -1):
        with pytest.raises(InputError, match="run: steps must be a whole number, at least 0"):
            Systems(position, velocity, masses, **options).run(steps)
    position[1, 0] = position[1, 1]
    bad = Systems(position, velocity, masses, **options)
    with pytest.raises(NumericalError, match="1 of 2 systems, the first of them system 1"):
        bad.run(1)


@pytest.mark.parametrize("architecture", oldest_and_newest())
@pytest.mark.parametrize("bodies", [2, 8, 32])
def test_the_kernel_compiles(architecture, bodies):
    options = words_for(gpu.defines(bodies), ())
    assert b"run_systems" in compile_to_cubin(gpu.SOURCE.read_text(), options, architecture)
