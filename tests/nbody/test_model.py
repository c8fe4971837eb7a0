"""The N-body model: batches, ranks, restarts and diagnostics."""

import numpy as np
import pytest
from support.bodies import make_backend, make_model, whole
from support.devices import hybrid

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.forces.direct import STEPS_BETWEEN_SORTS
from hybrid_nbody.nbody.initial_conditions import plummer, random_box
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.sources import spatial_order

PRECISIONS = ("single", "mixed", "double")


def unequal(bodies):
    """Return bodies with masses that differ: sums of equal ones go another way."""
    masses = bodies.mass * np.random.default_rng(8).uniform(0.5, 1.5, len(bodies))
    return Bodies(bodies.position, bodies.velocity, masses)


def state_of(model):
    """Return positions and velocities of all bodies."""
    return whole(model, "bodies/position"), whole(model, "bodies/velocity")


def assert_same_bits(first, second):
    """Compare two states bit by bit."""
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("integrator", ["leapfrog", "euler"])
@pytest.mark.parametrize("masses", [unequal, lambda bodies: bodies], ids=["unequal", "equal"])
def test_the_length_of_batches_does_not_matter(alone, backend, precision, integrator, masses):
    """Across the multiples of 512 steps at which sources are sorted anew, too."""
    runs, bodies = [], masses(plummer(80, 1))
    for batches in ([600], [1, 2, 509, 1, 87], [300, 300]):
        model = make_model(bodies, 1e-3, alone, backend, integrator, precision, 0.05)
        for steps in batches:
            model.advance(steps)
        runs.append(state_of(model))
    assert model.step == 600
    assert model.time == 0.6
    assert_same_bits(runs[0], runs[1])
    assert_same_bits(runs[0], runs[2])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_backends_agree_to_rounding(alone, backend, precision):
    bodies = plummer(500, 2)
    here = make_model(bodies, 1e-3, alone, backend, precision=precision, softening=0.05)
    truth = make_model(bodies, 1e-3, alone, make_backend("cpu"), precision="double", softening=0.05)
    for model in (here, truth):
        model.advance(20)
    tolerance = 1e-13 if precision == "double" else 1e-7
    np.testing.assert_allclose(state_of(here)[0], state_of(truth)[0], rtol=0, atol=tolerance)


@pytest.mark.mpi
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("integrator", ["leapfrog", "euler"])
def test_any_number_of_ranks_gives_the_bits_of_one(
    communicator, alone, backend, precision, integrator
):
    """Across a sort of the sources, which every rank must do alike."""
    bodies = unequal(plummer(700, 3))
    options = {
        "backend": backend,
        "integrator": integrator,
        "precision": precision,
        "softening": 0.02,
    }
    shared = make_model(bodies, 1e-3, communicator, **options)
    single = make_model(bodies, 1e-3, alone, **options)
    for model in (shared, single):
        model.step = STEPS_BETWEEN_SORTS - 10
        model.advance(20)
    np.testing.assert_array_equal(np.sort(whole(shared, "gravity/order")), np.arange(700))
    assert_same_bits(state_of(shared), state_of(single))
    assert shared.diagnostics() == single.diagnostics()


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("mixed", [False, True])
def test_ranks_of_several_backends_take_the_roots_order(communicator, mixed):
    """Backends differ by their names, whatever their arrays are made of."""
    backend = hybrid(0.3) if mixed and communicator.rank else make_backend("cpu")
    model = make_model(plummer(60, 4), 1e-3, communicator, backend)
    mine = spatial_order(random_box(60, seed=communicator.rank).position)
    root = communicator.broadcast(mine.bodies)
    assert (mine.bodies == root).all() == communicator.is_root
    np.testing.assert_array_equal(model.force.agree(mine).bodies, root if mixed else mine.bodies)


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 3, 257])
def test_uneven_and_empty_shares_give_the_same_bits(communicator, alone, backend, number):
    bodies = random_box(number, 4)
    weights = [
        float(rank % 2 == communicator.size % 2 or rank == communicator.size - 1)
        for rank in range(communicator.size)
    ]
    shared = make_model(bodies, 1e-3, communicator, backend, softening=0.1, weights=weights)
    single = make_model(bodies, 1e-3, alone, backend, softening=0.1)
    for model in (shared, single):
        model.advance(10)
    assert_same_bits(state_of(shared), state_of(single))
    # repr: a lone body has a nan virial ratio
    assert repr(shared.diagnostics()) == repr(single.diagnostics())


@pytest.mark.mpi
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_restored_model_continues_with_the_same_bits(communicator, backend, precision):
    """Between two sorts the order of the sources is no longer that of the positions."""
    options = {"backend": backend, "precision": precision, "softening": 0.05}
    bodies = plummer(100, 5)
    model = make_model(bodies, 1e-3, communicator, **options)
    model.diagnostics()
    model.advance(530)
    fields, scalars = model.fields(), model.scalars()
    saved = {name: field.host(0, field.rows) for name, field in fields.items()}
    elsewhere = random_box(100, 6)
    other = make_model(
        Bodies(elsewhere.position, elsewhere.velocity, bodies.mass), 1e-3, communicator, **options
    )
    other.ids = model.ids
    other.restore(lambda name: saved[name], scalars)
    for each in (model, other):
        each.advance(520)
    assert other.step == 1050
    assert_same_bits(state_of(model), state_of(other))
    assert model.diagnostics() == other.diagnostics()


def test_the_initial_energy_is_saved_once_it_is_known(alone, backend):
    bodies = plummer(20, 5)
    model, other = (make_model(bodies, 1e-3, alone, backend, softening=0.1) for _ in range(2))
    saved = {name: field.host(0, field.rows) for name, field in model.fields().items()}
    assert "initial_energy" not in model.scalars()
    other.restore(saved.__getitem__, model.scalars())
    assert other.initial_energy is None
    energy = model.diagnostics()["total_energy"]
    assert model.scalars()["initial_energy"] == energy < 0
    other.restore(saved.__getitem__, model.scalars())
    assert other.initial_energy == energy


def test_diagnostics_against_the_reference(alone, backend):
    bodies = plummer(300, 7)
    model = make_model(bodies, 1e-3, alone, backend, softening=0.03)
    values = model.diagnostics()
    m, x, v = bodies.mass, bodies.position + 0, bodies.velocity
    kinetic = 0.5 * np.sum(m * np.sum(v**2, axis=1))
    potential = 0.5 * np.sum(m * reference.potential(x, m, 0.03))
    radius = np.sort(np.linalg.norm(x - m @ x, axis=1))
    exact = {
        "kinetic_energy": kinetic,
        "potential_energy": potential,
        "total_energy": kinetic + potential,
        "relative_energy_error": 0.0,
        "momentum": m @ v,
        "angular_momentum": np.sum(m[:, None] * np.cross(x, v), axis=0),
        "center_of_mass": m @ x,
        "virial_ratio": 2 * kinetic / -potential,
        "half_mass_radius": radius[149],
        **{f"lagrangian_radius_{percent}": radius[3 * percent - 1] for percent in (10, 25, 75, 90)},
    }
    assert values.keys() == exact.keys() == model.quantities.keys()
    for name, value in exact.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-12, atol=1e-15, err_msg=name)


def test_energy_error_is_relative_to_the_initial_state(alone):
    model = make_model(plummer(200, 8), 1e-2, alone, softening=0.05)
    first = model.diagnostics()["total_energy"]
    model.advance(50)
    values = model.diagnostics()
    assert values["relative_energy_error"] == (values["total_energy"] - first) / abs(first) != 0


def test_momentum_is_conserved_to_rounding(alone, backend):
    model = make_model(plummer(500, 9), 1e-2, alone, backend, precision="double", softening=0.05)
    before = model.diagnostics()
    model.advance(200)
    after = model.diagnostics()
    np.testing.assert_allclose(after["momentum"], before["momentum"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        after["angular_momentum"], before["angular_momentum"], rtol=0, atol=1e-13
    )


def test_leapfrog_runs_backwards(alone):
    """Kick-drift-kick is time-reversible: turning the velocities round leads back to the start."""
    bodies = plummer(50, 10)
    model = make_model(bodies, 1e-3, alone, softening=0.1)
    model.advance(200)
    model.bodies.velocity[:] *= -1
    model.advance(200)
    np.testing.assert_allclose(state_of(model)[0], bodies.position, rtol=0, atol=1e-12)


def test_the_suspect_is_the_fastest_body(alone):
    bodies = plummer(20, 11)
    bodies.velocity[13] = [300.0, 0, 400.0]
    assert make_model(bodies, 1e-3, alone).suspect() == "body 13, the fastest, moves at 500"
