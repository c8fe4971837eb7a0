"""Experiment B of the course, gravity in a plane, against a float64 program of a few lines.

a_i = G sum_j m_j (r_j - r_i) / (|r_j - r_i|^2 + eps^2)^(3/2); then v += a dt, then r += v dt.
"""

import numpy as np
import pytest

from hybrid_nbody.nbody.initial_conditions import random_square
from hybrid_nbody.running.start import build

NUMBER, CELLS, STEPS = 1000, 50, 100
G, SOFTENING, DT = 9.8, 2.0, 0.01
NEAREST = 1e-6
"""No body of the reference is so near to the edge of a cell: one that is rounded must not change
cells."""


@pytest.fixture(scope="module")
def truth():
    """Positions, (N, 2), after all steps."""
    bodies = random_square(NUMBER, seed=1)
    position, velocity = bodies.position[:, :2].copy(), np.zeros((NUMBER, 2))
    for _ in range(STEPS):
        x, y = position.T
        distance_squared = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2 + SOFTENING**2
        weight = G * bodies.mass / (distance_squared * np.sqrt(distance_squared))
        velocity += DT * (weight @ position - weight.sum(axis=1)[:, None] * position)
        position += DT * velocity
    assert np.abs(position * CELLS - np.round(position * CELLS)).min() > NEAREST * CELLS
    return position


def model(communicator, backend="cpu", precision="double", number=NUMBER, cells=CELLS, **compute):
    values = {
        "model": "nbody",
        "bodies": {"kind": "random-square", "n": number},
        "gravity": {"G": G, "softening": SOFTENING, "precision": precision},
        "time": {"integrator": "euler", "dt": DT, "steps": STEPS},
        "activity_map": {"cells": cells},
        "compute": {"backend": backend, **({"threads": 1} if backend == "cpu" else {}), **compute},
    }
    return build(values, "test", communicator).model


def whole(model, name):
    """Return all rows of a field on every rank."""
    field = model.fields()[name]
    return np.concatenate(model.communicator.gather(field.host(0, field.rows)))


def after(steps, model):
    """Return what a model arrives at, on every rank; the devices of two models may differ."""
    model.backend.use()
    model.advance(steps)
    return {
        name: whole(model, name) for name in ("bodies/position", "bodies/velocity", "activity/map")
    }


def map_of(position):
    """Return what the map of these bodies is."""
    counts, _, _ = np.histogram2d(position[:, 1], position[:, 0], CELLS, range=((0, 1), (0, 1)))
    return counts * CELLS / len(position)


# Largest difference of a coordinate, which is of order 1, seen on a CPU: 2e-16, 1.1e-8, 1.1e-8.
@pytest.mark.parametrize(
    ("precision", "atol"), [("double", 1e-13), ("mixed", 1e-7), ("single", 1e-7)]
)
def test_positions_and_map_of_the_reference(truth, alone, backend_name, precision, atol):
    square = model(alone, backend_name, precision)
    square.advance(STEPS)
    np.testing.assert_allclose(whole(square, "bodies/position")[:, :2], truth, rtol=0, atol=atol)
    np.testing.assert_array_equal(whole(square, "activity/map"), map_of(truth))


@pytest.mark.mpi
@pytest.mark.parametrize("exchange", ["allgather", "ring"])
@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
def test_bodies_of_a_plane_stay_in_it(communicator, backend_name, precision, exchange):
    """Exactly: every term of the z component is zero."""
    square = model(communicator, backend_name, precision, number=70, exchange=exchange)
    square.advance(20)
    assert np.abs(whole(square, "bodies/velocity")[:, :2]).min() > 0
    for name in ("position", "velocity", "acceleration"):
        assert not whole(square, f"bodies/{name}")[:, 2].any()
    np.testing.assert_array_equal(
        whole(square, "activity/map"), map_of(whole(square, "bodies/position"))
    )


@pytest.mark.mpi
@pytest.mark.parametrize("precision", ["single", "double"])
def test_any_number_of_ranks_gives_the_same_bits(communicator, alone, backend_name, precision):
    """Uneven shares, and more ranks than rows of the map."""
    shares = (
        {"exchange": "allgather", "balance": list(range(communicator.size))}
        if communicator.size > 1
        else {}
    )
    square, single = (
        model(ranks, backend_name, precision, number=101, cells=3, **how)
        for ranks, how in ((communicator, shares), (alone, {}))
    )
    for steps in (1, 30):
        found, expected = (after(steps, some) for some in (square, single))
        for name, values in found.items():
            np.testing.assert_array_equal(values, expected[name])


def test_the_map_follows_a_restored_state(alone):
    """A resumed run shows the map of its checkpoint before the first step."""
    square = model(alone, number=60, cells=4)
    square.advance(80)
    saved = {name: field.host(0, field.rows) for name, field in square.fields().items()}
    fresh = model(alone, number=60, cells=4)
    assert (whole(fresh, "activity/map") != saved["activity/map"]).any()
    fresh.restore(saved.__getitem__, square.scalars() | {"initial_energy": 0.0})
    np.testing.assert_array_equal(whole(fresh, "activity/map"), saved["activity/map"])
