"""Short trials: what is measured is counted right, on as many bodies as it takes."""

import pytest
from support.bodies import make_backend, make_gravity
from support.devices import hybrid

from hybrid_nbody.nbody import calibrate as trial
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels import reference


@pytest.mark.parametrize(("number", "rate"), [(500, 1e9), (5000, 1e6), (5000, 1e9), (5000, 1e12)])
def test_interactions_a_second_on_a_clock_of_known_rate(monkeypatch, alone, number, rate):
    tried = []

    def seconds(backend, kernels, state):
        tried.append(len(state.source_index))
        return len(state.source_index) * len(state.mass) / rate

    monkeypatch.setattr(trial, "_seconds", seconds)
    weights = trial.measured_weights(make_backend("cpu"), "single", 0.1, number, alone)
    assert weights == [pytest.approx(rate, rel=1e-12)]
    assert tried[0] == min(trial.FIRST_TARGETS, number)
    assert tried == sorted(tried)
    enough = tried[-1] * number / rate > trial.LONG_ENOUGH
    assert enough or tried[-1] == number
    assert all(
        targets * number / rate <= trial.LONG_ENOUGH for targets in tried if targets < tried[-1]
    )


@pytest.mark.mpi
def test_every_rank_hears_the_speed_of_all(communicator):
    weights = trial.measured_weights(make_backend("cpu"), "single", 0.1, 300, communicator)
    assert len(weights) == communicator.size
    assert min(weights) > 0
    assert len(set(map(str, communicator.gather(weights)))) == 1


def test_a_trial_beside_a_run_leaves_what_the_backend_of_the_run_remembers(alone):
    """A step is replayed where the helper has no share: in the run, whatever it has in the trial."""
    backend = hybrid(0.0)
    make_gravity(backend, plummer(300, seed=1), "single", 0.1).kernels.fix(0.3)
    trial.measured_weights(backend, "single", 0.1, 300, alone)
    assert backend.helping


def test_a_trial_has_the_targets_that_are_asked_for():
    kernels, state = trial.trial(make_backend("cpu"), 200, "double", 0.1, 30)
    kernels.accelerations(state)
    true = reference.accelerations(state.position, state.mass, 0.1, targets=range(30))
    assert abs(state.acceleration - true).max() < 1e-12 * abs(true).max()
