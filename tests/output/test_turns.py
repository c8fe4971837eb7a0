"""Turns of the threads of a run."""

import sys

import pytest

from hybrid_nbody.output.turns import TURN_SECONDS, short_turns


@pytest.fixture(autouse=True)
def usual_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield
    sys.setswitchinterval(before)


def test_turns_are_short_in_the_block_alone():
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS, rel=0.0, abs=1e-6)
    assert sys.getswitchinterval() == pytest.approx(0.005, rel=0.0, abs=1e-6)


def test_they_are_as_before_after_an_error():
    with pytest.raises(KeyError), short_turns():
        raise KeyError
    assert sys.getswitchinterval() == pytest.approx(0.005, rel=0.0, abs=1e-6)
