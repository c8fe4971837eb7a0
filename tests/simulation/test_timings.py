"""The seconds of a run, by name."""

import time

import pytest

from hybrid_nbody.simulation.timings import MOST_LATER, Timings


def test_timings_keep_the_order_of_first_use_and_know_nothing_of_other_names():
    timings = Timings()
    for name, seconds in (("force", 1.0), ("exchange", 0.5), ("force", 2.0)):
        timings.add(name, seconds)
    assert list(timings.seconds.items()) == [("force", 3.0), ("exchange", 0.5)]
    assert timings["rest"] == 0.0
    assert "rest" not in timings.seconds


def test_timings_measure_a_block_that_fails():
    timings = Timings()
    for _ in range(2):
        with pytest.raises(KeyError), timings.measure("block"):
            time.sleep(0.01)
            raise KeyError
    assert 0.02 <= timings["block"] < 0.5


def test_timings_of_work_under_way_are_asked_for_when_more_is_given_or_somebody_reads():
    timings = Timings()
    asked = []

    def work(number):
        return lambda: asked.append(number) or float(number)

    for number in range(1, MOST_LATER + 1):
        timings.add_later("force", work(number))
    assert asked == []
    timings.add_later("exchange", work(100))
    assert asked == [1]
    assert timings["exchange"] == 100.0
    assert timings["force"] == sum(range(MOST_LATER + 1))
    assert asked == [*range(1, MOST_LATER + 1), 100]
