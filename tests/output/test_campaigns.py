"""Short campaigns: kills, power cuts and damage never make a wrong number, nor lose a frame."""

import pytest
from support.campaigns import crash_campaign, damage_campaign, undisturbed


@pytest.fixture(scope="module", params=["nbody", "fluid"])
def run(request, tmp_path_factory):
    """Return a run of each model, whose files are made in many small steps."""
    return undisturbed(tmp_path_factory.mktemp("run"), request.param, pause=0.0)


def test_every_state_opens_to_its_complete_frames(run, tmp_path):
    found = crash_campaign(run, tmp_path, states=60, resumes=3, seed=1)
    assert found["kill", "opened"] > 5
    assert found["kill in a write", "opened"] > 5
    assert found["power cut", "opened"] > 5
    assert found["resumed", "ended alike"] == 3


def test_damage_is_named(run, tmp_path):
    found = damage_campaign(run, tmp_path, rounds=40, resumes=2, seed=2)
    assert sum(count for (_, result), count in found.items() if result == "named") > 10
    assert sum(found.values()) == 42
