"""What a run says of itself in words: its state on the way, and at the end how fast it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_nbody.output.summary import (
    OUTPUT_EVENTS,
    advice_on_ranks,
    rate_line,
    state_in_words,
    time_shares,
    time_table,
    with_prefix,
)
from hybrid_nbody.simulation.model import Work
from hybrid_nbody.simulation.timings import Timings


def test_the_state_says_how_fast_and_how_well():
    words = state_in_words(0.25, 2.5e9, "interactions", -1.234e-7)
    assert words == "t = 0.25  2.5 G interactions/s  dE/E -1.2e-07"


def test_an_energy_that_nobody_measured_is_not_shown():
    assert state_in_words(0.25, 2.5e9, "interactions", None) == "t = 0.25  2.5 G interactions/s"
    assert "dE/E +0.0e+00" in state_in_words(0.25, 2.5e9, "interactions", 0.0)


def test_a_speed_that_is_not_known_yet_is_not_shown():
    assert state_in_words(0.25, 0.0, "interactions", None) == "t = 0.25"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 "),
        (1, "1 "),
        (0.1234, "0.123 "),
        (999.4, "999 "),
        (999.6, "1 k "),
        (12345, "12.3 k "),
        (999_499, "999 k "),
        (999_500, "1 M "),
        (2.42e12, "2.42 T "),
        (9.996e14, "1 P "),
        (1e18, "1e+03 P "),
    ],
)
def test_numbers_carry_three_digits_and_a_prefix(number, text):
    assert with_prefix(number) == text


@given(number=st.floats(1e-3, 9e17))
def test_a_number_with_a_prefix_is_right_to_three_digits(number):
    figure, prefix = with_prefix(number)[:-1].partition(" ")[::2]
    size = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[prefix]
    assert float(figure) * size == pytest.approx(number, rel=5.01e-3, abs=0)
    assert float(figure) < 1000


SECONDS = st.floats(0, 1e4)
PARTS = ("force", "fluid", "exchange")


@given(
    parts=st.dictionaries(st.sampled_from(PARTS), SECONDS),
    events=st.dictionaries(st.sampled_from([*OUTPUT_EVENTS, "loop", "advance", "stop"]), SECONDS),
    more=SECONDS,
)
def test_shares_add_up_to_the_total(parts, events, more):
    in_parts = {name: parts[name] for name in PARTS if name in parts}
    in_events = Timings()
    in_events.seconds.update(events)
    named = sum(parts.get(name, 0) for name in PARTS) + sum(
        events.get(name, 0) for name in OUTPUT_EVENTS
    )
    rows = time_shares(in_events, in_parts, named + more)
    assert sum(seconds for _, seconds in rows) == pytest.approx(named + more, rel=1e-12, abs=1e-9)
    names = [name for name, _ in rows]
    shown = [name for name in PARTS if parts.get(name, 0) > 0]
    assert names == [*shown, *(name for name in OUTPUT_EVENTS if events.get(name, 0) > 0), "rest"]
    assert all(seconds >= 0 for _, seconds in rows)


def test_the_table_has_a_line_for_each_part():
    rows = [("force", 9.0), ("exchange", 0.25), ("rest", 0.75)]
    assert time_table(rows, 10.0).splitlines() == [
        "where the time went",
        "  force             9.000 s   90.0%",
        "  exchange          0.250 s    2.5%",
        "  rest              0.750 s    7.5%",
        "  total            10.000 s",
    ]


def test_rates_are_those_of_the_whole_run():
    line = rate_line(Work("interactions", 8192.0**2, 20), 1000, 10.0)
    assert (
        line == "1000 steps in 10.000 s: 6.71 G interactions/s, 134.2 GFLOP/s at 20 operations each"
    )


# ---- The number of ranks -------------------------------------------------------------------------


def test_one_rank_is_advised_where_exchanges_take_longer_than_forces():
    assert advice_on_ranks([0.2, 0.3], [1.3, 1.4]) == (
        "one rank would be faster: forces and exchanges took 1.5 s, the forces of all 2 ranks "
        "together only 0.5 s"
    )


@pytest.mark.parametrize(
    ("forces", "exchanges"),
    [
        ([2.0], [0.0]),
        ([1.0, 1.0], [0.9, 0.9]),  # about as fast on one
        ([0.1, 0.1], [0.2, 0.2]),  # too short to tell
        ([1.0, 9.0], [8.5, 0.5]),  # one rank waited for a slow one
        ([1.0, 1.0], [0.2, 9.0]),  # one rank waited for another's output
    ],
    ids=["alone", "close", "short", "uneven", "output"],
)
def test_no_other_number_of_ranks_is_advised_where_that_is_not_sure(forces, exchanges):
    assert advice_on_ranks(forces, exchanges) == ""
