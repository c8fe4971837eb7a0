"""How wrong single precision gets forces: what is estimated of it, and what is said."""

import numpy as np
import pytest
from support.bodies import make_backend, make_gravity

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.config import Gravity
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.precision_range import MEDIAN_ERROR, MOST_ERROR, warnings_of
from hybrid_nbody.nbody.rounding import Path, force_errors
from hybrid_nbody.nbody.sources import spatial_order

NUMBER = 6144


def clumps(size, width):
    """Return bodies in clumps in a box of 2."""
    random = np.random.default_rng(size)
    middles = random.uniform(-1, 1, (NUMBER // size, 3))
    position = np.repeat(middles, size, axis=0)
    position += random.normal(scale=width, size=position.shape)
    return Bodies(position, np.zeros_like(position), np.full(len(position), 1 / NUMBER))


def estimated(bodies, softening):
    """Return the estimate for the chunks that a run would have."""
    order = spatial_order(bodies.position)
    starts, ends = (order.starts[k : order.chunks + k] for k in (0, 1))
    path = bodies.position[order.bodies]
    origin = np.repeat(path[(starts + ends) // 2], ends - starts, axis=0)
    return force_errors(Path(path, origin, bodies.mass[order.bodies]), softening)


def found(bodies, precision, softening):
    """Return the errors of half of the accelerations, and of one in a hundred."""
    gravity = make_gravity(make_backend("cpu"), bodies, precision, softening)
    some = np.arange(0, len(bodies), 12)
    true = reference.accelerations(bodies.position, bodies.mass, softening, targets=some)
    errors = np.linalg.norm(gravity.state.acceleration[some] - true, axis=1)
    return np.percentile(errors, [50, 99]) / np.sqrt(np.mean(np.sum(true**2, axis=1)))


@pytest.mark.parametrize("size", [32, 48])
@pytest.mark.parametrize("width", [1e-4, 1e-3])
def test_the_errors_in_tight_clumps_are_of_the_right_size(size, width):
    bodies = clumps(size, width)
    expected = found(bodies, "single", 1e-3)
    assert expected[0] > MEDIAN_ERROR
    errors = estimated(bodies, 1e-3)
    assert 0.4 < errors.median / expected[0] < 2.5
    assert 0.4 < errors.most / expected[1] < 2.5


@pytest.mark.parametrize("width", [1e-4, 1e-3])
def test_tight_clumps_are_warned_of_and_mixed_precision_helps(width):
    bodies = clumps(32, width)
    errors = estimated(bodies, 1e-3)
    warnings = warnings_of(bodies, Gravity(precision="single", softening=1e-3))
    (warning,) = (text for text in warnings if "half of the accelerations" in text)
    assert f"more than {errors.median:.1e} of their rms" in warning
    assert f"one in a hundred by more than {errors.most:.1e}" in warning
    assert warning.endswith("take gravity.precision: mixed")
    median, most = found(bodies, "mixed", 1e-3)
    assert median < MEDIAN_ERROR
    assert most < MOST_ERROR
    assert not warnings_of(bodies, Gravity(precision="mixed", softening=1e-3))


@pytest.mark.parametrize(
    "bodies", [plummer(NUMBER, seed=1), clumps(256, 1e-3), clumps(NUMBER, 1.0), clumps(512, 1e-4)]
)
def test_there_is_no_warning_where_single_precision_does(bodies):
    softening = 1e-3
    assert not warnings_of(bodies, Gravity(precision="single", softening=softening))
    median, most = found(bodies, "single", softening)
    assert median < MEDIAN_ERROR
    assert most < MOST_ERROR


@pytest.mark.parametrize("number", [2, 3, 40])
def test_few_bodies_are_rounded_little(number):
    bodies = plummer(number, seed=4)
    assert estimated(bodies, 0.01).most < MOST_ERROR


def test_numbers_out_of_range_are_the_guard_s():
    bodies = plummer(300, seed=5)
    bodies.position[7] = np.nan
    bodies.position[8] = 1e300
    with np.errstate(all="ignore"):  # as in a run
        errors = estimated(bodies, 0.01)
    assert np.isfinite(errors).all()
