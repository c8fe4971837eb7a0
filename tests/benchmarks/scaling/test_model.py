"""The model of ``bench scaling``: fits to known coefficients, and predictions by hand."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.configs import loads

from hybrid_nbody.benchmarks.scaling.forecast import (
    SCHEMES,
    Conclusion,
    Demand,
    Fit,
    Forecast,
    Point,
    doublings,
    fit,
    hidden,
    in_a_row,
)
from hybrid_nbody.benchmarks.scaling.problems import (
    FLUIDS,
    Fluid,
    Gravity,
    Network,
    problem_of,
)

RANKS = (1, 2, 4)
NETWORK = Network(latency=1e-6, bandwidth=1e10)
FIT = Fit(fixed=1e-4, per_byte=1e-9, rate=1e12, points=6, worst=0.0)


def points(fixed, per_byte, rate, sizes=(10_000, 40_000)):
    """Return strong scaling of gravity with an allgather, exactly as the model says."""
    found = []
    for number in sizes:
        for ranks in RANKS:
            size, work = 24.0 * number * (ranks - 1) / ranks, number**2 / ranks
            found.append(Point(fixed + per_byte * size + work / rate, size, work))
    return found


@given(fixed=st.floats(1e-6, 1e-3), per_byte=st.floats(1e-11, 1e-8), rate=st.floats(1e9, 1e13))
def test_the_fit_finds_the_coefficients_of_exact_points(fixed, per_byte, rate):
    measured = points(fixed, per_byte, rate)
    found = fit(measured)
    assert found.points == 6
    assert found.worst < 1e-6
    for one in (
        measured
    ):  # a coefficient that hardly counts cannot be told from the rest, but its part can
        assert found.fixed == pytest.approx(fixed, rel=1e-6, abs=1e-6 * one.seconds)
        assert found.per_byte * one.bytes == pytest.approx(
            per_byte * one.bytes, rel=1e-6, abs=1e-6 * one.seconds
        )
        assert one.work / found.rate == pytest.approx(
            one.work / rate, rel=1e-6, abs=1e-6 * one.seconds
        )


def test_no_coefficient_is_negative():
    """Larger messages that take less time: the best line would have b below zero."""
    measured = [
        Point(1e-3 + work * 1e-9 - size * 1e-10, size, work)
        for size, work in ((0, 1e6), (1e6, 5e5), (2e6, 1e6))
    ]
    found = fit(measured)
    assert found.per_byte == 0.0
    assert found.fixed > 0
    assert found.worst > 1e-3


def test_one_rank_alone_tells_all_but_the_price_of_a_byte():
    found = fit([point for point in points(1e-5, 1e-9, 1e10) if point.bytes == 0])
    assert found.per_byte is None
    assert found.fixed == pytest.approx(1e-5, rel=1e-9)
    assert found.rate == pytest.approx(1e10, rel=1e-9)


@pytest.mark.parametrize(
    "measured",
    [
        [],
        points(1e-5, 1e-9, 1e10)[:1],
        points(1e-5, 1e-9, 1e10)[:3],  # one problem: bytes and work are on a line
        [Point(1e-3, 0.0, 1e6), Point(1e-3, 0.0, 2e6)],  # more work takes no longer
    ],
)
def test_too_few_points_are_no_fit(measured):
    assert fit(measured) is None


# ---- What a step asks of a network ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "expected"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (64, 6), (4096, 12)]
)
def test_doublings(ranks, expected):
    assert doublings(ranks) == expected


def test_an_exchange_comes_before_the_work():
    demand = Demand(ranks=4, work=2e9, bytes=5e6, messages=3)
    assert in_a_row(FIT, NETWORK, demand) == pytest.approx(1e-4 + 3e-6 + 5e-4 + 2e-3, rel=1e-12)


def test_a_ring_hides_the_shorter_of_message_and_block():
    """Four blocks of 0.5 ms, three beside messages of 1 us and a third of the bytes each."""
    short = Demand(ranks=4, work=2e9, bytes=3e6, messages=3)
    assert hidden(FIT, NETWORK, short) == pytest.approx(1e-4 + 4 * 5e-4, rel=1e-12)
    long = Demand(ranks=4, work=2e9, bytes=3e8, messages=3)
    assert hidden(FIT, NETWORK, long) == pytest.approx(1e-4 + 5e-4 + 3 * (1e-6 + 1e-2), rel=1e-12)


def gravity_row(kind="strong", exchange="allgather", size=1000, ranks=4, row_bytes=24):
    problem = Gravity(kind, size, exchange)
    counts = {
        "bytes": row_bytes * problem.bodies(ranks) * (ranks - 1) / ranks,
        "exchanges": 1.0,
        "reductions": 0.0,
    }
    head = {"model": "gravity", "kind": kind, "exchange": exchange, "size": size, "ranks": ranks}
    return head | counts | {"median_s": 1e-3, "largest_share": problem.share(ranks)}


@pytest.mark.parametrize(("scheme", "messages"), [(0, 6), (1, 63)])
def test_gravity_gathers_every_body_but_its_own(scheme, messages):
    row = gravity_row(size=6400, row_bytes=30)
    forecast = Forecast(
        Gravity("strong", 6400, "allgather"), SCHEMES["allgather"][scheme], FIT, NETWORK, row
    )
    expected = 1e-4 + messages * 1e-6 + 30 * 6300 / 1e10 + 6400 * 100 / 1e12
    assert forecast.seconds(64) == pytest.approx(expected, rel=1e-12)
    one = 1e-4 + 6400**2 / 1e12
    assert forecast.seconds(1) == pytest.approx(one, rel=1e-12)
    assert forecast.efficiency(64) == pytest.approx(one / (64 * expected), rel=1e-12)
    assert forecast.efficiency(1) == pytest.approx(1.0)


def test_weak_scaling_compares_work_a_second():
    free = Network(latency=1e-10, bandwidth=1e20)
    forecast = Forecast(
        Gravity("weak", 1000, "allgather"), SCHEMES["allgather"][0], FIT, free, gravity_row("weak")
    )
    assert forecast.series.bodies(64) == 8000
    # as much work a rank, and a network that is free
    assert forecast.efficiency(64) == pytest.approx(1.0, rel=1e-4)


def fluid_row(kind="strong", size=64, ranks=4):
    counts = {"bytes": 2e6, "exchanges": 100.0, "reductions": 2.0}
    problem = {
        "model": "fluid",
        "kind": kind,
        "exchange": "halo",
        "size": size,
        "sweeps": 20,
        "ranks": ranks,
    }
    return problem | counts | {"median_s": 1e-3, "largest_share": 64**3 / ranks}


@pytest.mark.parametrize(("measured_on", "received"), [(2, 4e6), (3, 2e6), (4, 2e6)])
def test_a_slab_has_two_neighbours(measured_on, received):
    """What was counted with one neighbour, on two ranks, is doubled."""
    forecast = Forecast(
        Fluid("strong", 64, 20), SCHEMES["halo"][0], FIT, NETWORK, fluid_row(ranks=measured_on)
    )
    expected = 1e-4 + (100 + 2 * 4) * 1e-6 + received / 1e10 + 64 * 64 * 4 / 1e12
    assert forecast.seconds(16) == pytest.approx(expected, rel=1e-12)


def test_a_box_has_no_more_ranks_than_planes():
    forecast = Forecast(Fluid("strong", 64, 20), SCHEMES["halo"][0], FIT, NETWORK, fluid_row())
    assert forecast.seconds(64) is not None
    assert forecast.seconds(512) is None
    assert forecast.efficiency(512) is None
    weak = Forecast(Fluid("weak", 64, 20), SCHEMES["halo"][0], FIT, NETWORK, fluid_row("weak"))
    assert weak.seconds(4096) == pytest.approx(weak.seconds(64) + 6 * 2 * 1e-6, rel=1e-12)


# ---- From rows to conclusions --------------------------------------------------------------------


def rows_of_gravity():
    rows = []
    for size in (10_000, 40_000):
        for ranks in RANKS:
            row = gravity_row(size=size, ranks=ranks)
            rows.append(
                row | {"median_s": 2e-5 + 1e-9 * row["bytes"] + row["largest_share"] / 1e12}
            )
    return rows


def test_the_largest_problem_is_predicted_from_all_rows():
    conclusion = Conclusion(NETWORK)
    summary = conclusion.summary(rows_of_gravity())
    (found,) = summary["fits"]
    assert found["fixed"] == pytest.approx(2e-5, rel=1e-6)
    assert found["per_byte"] == pytest.approx(1e-9, rel=1e-6)
    assert found["rate"] == pytest.approx(1e12, rel=1e-6)
    assert {(row["size"], row["kind"]) for row in summary["predictions"]} == {(40_000, "strong")}
    assert [row["ranks"] for row in summary["predictions"]] == [64, 512, 4096] * 2
    tree = summary["predictions"][0]
    expected = 2e-5 + 6e-6 + 24 * 40_000 * 63 / 64 / 1e10 + 40_000**2 / 64 / 1e12
    assert tree["seconds"] == pytest.approx(expected, rel=1e-6)


def test_a_fit_that_cannot_be_made_is_said_and_predicts_nothing():
    conclusion, rows = Conclusion(NETWORK), rows_of_gravity()[:3]
    assert conclusion.forecasts(rows) == []
    (line,) = conclusion.lines(rows)
    assert "the points do not tell these apart" in line


def test_a_fluid_on_one_rank_predicts_nothing():
    alone = {
        size: {"bytes": 0.0, "largest_share": size**3, "median_s": 1e-5 + size**3 / 1e9}
        for size in (32, 64)
    }
    rows = [fluid_row(size=size, ranks=1) | figures for size, figures in alone.items()]
    assert Conclusion(NETWORK).fits(rows)["fluid", "halo"].rate == pytest.approx(1e9, rel=1e-6)
    assert Conclusion(NETWORK).forecasts(rows) == []


# ---- Problems ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_rank_does_as_much_where_the_problem_grows(ranks):
    gravity, fluid = Gravity("weak", 1000, "allgather"), Fluid("weak", 32, 20)
    assert gravity.work(ranks) / ranks == pytest.approx(1e6, rel=1e-3)
    assert fluid.cells(ranks) == (32, 32, 32 * ranks)
    assert fluid.share(ranks) == fluid.work(ranks) / ranks == 32**3


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_largest_share_of_a_problem_that_stays(ranks):
    assert Gravity("strong", 1000, "ring").share(ranks) == math.ceil(1000 / ranks) * 1000
    assert Fluid("strong", 32, 20).share(ranks) == 32 * 32 * math.ceil(32 / ranks)


@pytest.mark.parametrize("model", ["staggered", "ball"])
def test_fluids_have_as_much_to_do_on_each_rank(model):
    """In units of cells and steps all ranks have the same fluid; and a ball each."""
    weak = FLUIDS[model]("weak", 16, 20)
    alone, together = (loads(json.dumps(weak.config(ranks)), model) for ranks in (1, 4))
    assert together.grid.cells == (16, 16, 64)
    for config in (alone, together):
        h = 1 / max(config.grid.cells)
        assert config.fluid.viscosity * config.time.dt / h**2 == pytest.approx(8e-4, rel=1e-12)
    balls = (1, 4) if model == "ball" else (0, 0)
    assert (len(alone.obstacles), len(together.obstacles)) == balls
    assert problem_of({"model": model, "kind": "weak", "size": 16, "sweeps": 20}) == weak
