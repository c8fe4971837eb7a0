"""The share of the helper, with stand-ins whose speeds are known, on a clock that they move.

With rates m and h of the two devices the best share is h / (h + m), and a force then takes m / (h +
m) of the time that the main device takes alone.
"""

import pytest
from support.bodies import make_backend, make_gravity
from support.devices import hybrid

from hybrid_nbody.nbody.initial_conditions import random_box
from hybrid_nbody.nbody.kernels.hybrid.kernels import FORCE_ALONE
from hybrid_nbody.nbody.kernels.hybrid.share import FORCES_BETWEEN, STEP, Readings, best_share

NUMBER = 1000


def gravity_of(backend):
    return make_gravity(backend, random_box(NUMBER, 1), "single", 0.1)


def seconds_of(gravity, forces):
    """Return the seconds of a force, on the clock of the stand-ins."""
    backend, kernels = gravity.backend, gravity.kernels
    start = backend.mark()
    kernels.run(gravity.state, FORCE_ALONE, forces)
    return backend.elapsed(start, backend.mark()) / forces


@pytest.mark.parametrize(("main", "helper"), [(1e9, 1e8), (1e8, 1e9), (1e9, 1e9), (1e9, 3e7)])
def test_the_share_fits_the_rates(main, helper):
    gravity = gravity_of(hybrid(main=main, helper=helper))
    choice = gravity.kernels.choice
    assert choice.rates.main == pytest.approx(main, rel=1e-9)
    assert choice.rates.helper == pytest.approx(helper, rel=1e-9)
    assert choice.rates.predicted == pytest.approx(helper / (helper + main), rel=1e-9)
    assert choice.share == pytest.approx(helper / (helper + main), rel=0.05)
    assert seconds_of(gravity, 10) == pytest.approx(NUMBER**2 / (main + helper), rel=0.01)


USELESS = {
    "a slow helper": ({"helper": 1e5}, 0.0),
    "a helper that takes long to begin": ({"helper_fixed": 1.0}, 0.0),
    "a main device that takes long to begin": ({"main_fixed": 1.0, "helper": 1e9}, 1.0),
}


@pytest.mark.parametrize("name", USELESS)
def test_a_device_alone_is_taken_where_the_other_is_of_no_use(name):
    speeds, share = USELESS[name]
    gravity = gravity_of(hybrid(**speeds))
    assert gravity.kernels.share == share
    assert gravity.kernels.count == share * NUMBER


@pytest.mark.parametrize("main", [1e9, 2e8])
@pytest.mark.parametrize("helper", [2e9, 1e8, 2e7])
@pytest.mark.parametrize("main_fixed", [0.0, 1e-3, 1e-2])
@pytest.mark.parametrize("helper_fixed", [0.0, 5e-4, 3e-3])
def test_never_slower_than_the_better_device(main, helper, main_fixed, helper_fixed):
    alone = min(main_fixed + NUMBER**2 / main, helper_fixed + NUMBER**2 / helper)
    gravity = gravity_of(hybrid("auto", main, helper, main_fixed, helper_fixed))
    assert seconds_of(gravity, 10) <= alone / 0.98


def test_choosing_leaves_the_bodies_where_they_are():
    bodies = random_box(NUMBER, 1)
    gravity = gravity_of(hybrid())
    assert (gravity.state.position == bodies.position).all()
    assert not gravity.state.velocity.any()


def test_what_was_chosen_is_said():
    gravity = gravity_of(hybrid(main=1e9, helper=1e8))
    assert gravity.kernels.remark.startswith(
        "cpu_share 0.0909 chosen (a force by share: 0: 1 ms, 0.0909: 0.91 ms; "
    )
    assert gravity.kernels.remark.endswith(" 0.0909 predicted from 1e+09 and 1e+08 interactions/s)")
    assert gravity_of(hybrid(0.25)).kernels.remark == "cpu_share 0.25, as asked for"
    assert gravity_of(make_backend("cpu")).kernels.remark == ""  # there is no choice


# ---- Adapting ------------------------------------------------------------------------------------


def test_the_share_follows_speeds_that_drift():
    gravity = gravity_of(hybrid(main=1e9, helper=1e8))
    kernels, helper, shares = gravity.kernels, gravity.backend.helper, []
    for rate in (4e7, 2e8):
        helper.rate = rate
        for _ in range(25):
            shares.append(kernels.share)
            kernels.run(gravity.state, FORCE_ALONE, FORCES_BETWEEN)
        assert kernels.share == pytest.approx(rate / (rate + 1e9), rel=0.15)
    changes = [after / before for before, after in zip(shares, shares[1:], strict=False)]
    assert min(changes) == 0.5  # while it cost more than it saved
    assert 1 < max(changes) <= 1 + STEP + 1e-9


def test_a_helper_that_no_longer_pays_is_given_up():
    gravity = gravity_of(hybrid(main=1e9, helper=1e8))
    assert gravity.kernels.share > 0.08
    gravity.backend.helper.fixed = 1.0
    gravity.kernels.run(gravity.state, FORCE_ALONE, 12 * FORCES_BETWEEN)
    assert gravity.kernels.share == 0.0


def test_a_fixed_share_stays():
    gravity = gravity_of(hybrid(0.5))
    gravity.kernels.run(gravity.state, FORCE_ALONE, 3 * FORCES_BETWEEN)
    assert gravity.kernels.share == 0.5
    assert gravity.kernels.readings.forces >= 3 * FORCES_BETWEEN


def test_steady_speeds_change_nothing():
    gravity = gravity_of(hybrid(main=1e9, helper=1e8))
    before = gravity.kernels.share
    gravity.kernels.run(gravity.state, FORCE_ALONE, 3 * FORCES_BETWEEN)
    assert gravity.kernels.share == before


@pytest.mark.parametrize(
    ("tried", "share"),
    [
        ({0.0: 1.0, 0.1: 0.9, 1.0: 5.0}, 0.1),
        ({0.0: 1.0, 0.1: 0.995}, 0.0),  # too little to be sure
        ({0.0: 1.0, 0.5: 0.6, 1.0: 0.5}, 1.0),
        ({0.0: 1.0}, 0.0),
    ],
)
def test_both_together_must_be_faster_by_a_margin(tried, share):
    assert best_share(tried) == share


def test_balance_by_hand():
    """At a share of 0.2 the helper took twice as long as the main device: its rate is an eighth."""
    readings = Readings()
    readings.add(main=1.0, helper=2.0, total=2.0)
    assert readings.balanced(0.2) == pytest.approx(1 / 9, rel=1e-15)
