"""``bench split`` with stand-ins of devices of known speed, and as a user calls it on a CPU."""

import argparse
import csv
import json
from pathlib import Path

import pytest
from support.command import call, refused
from support.devices import Clock, Helper, Main

from hybrid_nbody.benchmarks import add_arguments
from hybrid_nbody.benchmarks.gravity.split import (
    MULTIPLES,
    SHARES,
    Problem,
    conclusions,
    draw,
    expected,
    optimum,
    ratio,
    read_threads,
    words,
)
from hybrid_nbody.benchmarks.harness import machine
from hybrid_nbody.benchmarks.harness.measure import Times
from hybrid_nbody.errors import InputError

NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
BODIES = 2048
MAIN, HELPER = 9e9, 1e9


def rows_of(main, helper, helper_fixed=0.0):
    """Return the rows of a problem on two stand-ins of so many interactions a second."""
    clock = Clock()
    problem = Problem(
        Main(clock, main), Helper(clock, helper, helper_fixed), "single", BODIES, repeats=3
    )
    rows = []
    for task in problem.tasks():
        rows.append(task.measure(rows, lambda: None))
    return rows


@pytest.fixture(scope="module")
def rows():
    """Those of a main device that is nine times as fast as its helper."""
    return rows_of(MAIN, HELPER)


def test_each_share_takes_as_long_as_its_slower_part(rows):
    assert len(rows) == 2 + len(MULTIPLES) + len(SHARES) + 1
    for row in rows:
        seconds = max((1 - row["share"]) * BODIES**2 / MAIN, row["share"] * BODIES**2 / HELPER)
        assert row["median_s"] == pytest.approx(seconds, rel=1e-2)  # a share is one of whole bodies
        assert row["interactions_per_s"] == pytest.approx(BODIES**2 / row["median_s"])
        if row["kind"] != "alone":
            assert row["expected_s"] == pytest.approx(seconds, rel=1e-2)
            assert row["against_alone"] == pytest.approx(
                BODIES**2 / MAIN / row["median_s"], rel=1e-2
            )


def test_the_optimum_is_predicted_found_and_chosen(rows):
    (found,) = conclusions(rows)
    assert found["main_rate"] == pytest.approx(MAIN, rel=1e-6)
    assert found["cpu_rate"] == pytest.approx(HELPER, rel=1e-6)
    assert found["predicted_share"] == pytest.approx(0.1, rel=1e-6)
    assert found["predicted_s"] == pytest.approx(0.9 * BODIES**2 / MAIN, rel=1e-6)
    assert found["best_share"] == pytest.approx(0.1, rel=1e-3)
    assert found["best_against_alone"] == pytest.approx(1 / 0.9, rel=1e-2)
    assert found["auto_share"] == pytest.approx(0.1, rel=0.05)
    assert found["auto_against_alone"] == pytest.approx(1 / 0.9, rel=0.05)
    assert found["auto_keeps_promise"]
    assert found["claimed_against_main"] == pytest.approx(1 / 0.9, rel=1e-2)
    lines = words(rows)
    assert "predicted optimum 10.00% on the CPU" in lines[0]
    assert "LESS" not in "".join(lines)


def test_a_helper_that_is_not_worth_its_while_is_left_out():
    (found,) = conclusions(rows_of(main=1e11, helper=1e8, helper_fixed=1e-3))
    assert found["auto_share"] == 0.0
    assert found["auto_against_alone"] == pytest.approx(1.0, abs=1e-3)
    assert found["claimed_against_main"] < 0.01


def test_a_choice_below_the_promise_is_said(rows):
    worse = [row | ({"against_alone": 0.97} if row["kind"] == "auto" else {}) for row in rows]
    assert not conclusions(worse)[0]["auto_keeps_promise"]
    assert "0.970 of the better device alone, LESS than the 0.98 that are promised" in "".join(
        words(worse)
    )


def test_stopped_before_both_devices_were_measured_nothing_is_concluded(rows):
    assert conclusions(rows[:1]) == []
    assert draw(rows[:1], {"cpu": "a processor", "threads": 2}).get_axes()


def test_the_picture_marks_prediction_best_and_choice(rows):
    figure = draw(rows, {"cpu": "a processor", "threads": 2})
    labels = set(figure.get_axes()[0].get_legend_handles_labels()[1])
    assert labels == {
        "expected",
        "measured",
        "predicted optimum",
        "the better device alone",
        "best measured",
        "chosen by auto",
    }
    whole, near = figure.get_axes()
    assert whole.get_xlim()[1] == pytest.approx(1.02)
    assert near.get_xlim()[1] == pytest.approx(1.02 * 0.35)


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.0, 2.0), (0.1, 1.8), (0.2, 1.6), (0.25, 2.0), (1.0, 8.0)]
)  # fmt: skip
def test_what_is_expected_by_hand(share, seconds):
    assert expected(share, main=2.0, cpu=8.0) == pytest.approx(seconds)
    assert optimum(main=2.0, cpu=8.0) == pytest.approx(0.2)


def test_speeds_in_turn_are_compared_turn_by_turn():
    """A clock that doubles on the way does not change the ratio."""
    first, second = Times((1.0, 2.0, 4.0)), Times((0.5, 1.0, 2.0))
    assert ratio(first, second) == 2.0


# ---- As a user calls it --------------------------------------------------------------------------


def test_on_a_cpu_that_plays_both_roles(tmp_path):
    options = (
        "--roles",
        "cpu",
        "--sizes",
        256,
        "--precisions",
        "single,double",
        "--threads",
        1,
        "--repeats",
        2,
    )
    result = call(tmp_path, "bench", "split", *options, "--output", "out", environment=NO_GPU)
    assert result.returncode == 0, result.stdout + result.stderr
    content = json.loads((tmp_path / "out" / "split.json").read_text())
    with open(tmp_path / "out" / "split.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(content["rows"]) == 40
    assert (tmp_path / "out" / "split.png").read_bytes().startswith(b"\x89PNG")
    assert [found["precision"] for found in content["conclusions"]] == ["single", "double"]
    assert {row["kind"] for row in content["rows"]} == {"alone", "near", "everywhere", "auto"}
    assert "256 bodies, double: CPU, 1 thread beside CPU, 1 thread" in result.stdout
    assert "auto took" in result.stdout


@pytest.mark.gpu
def test_on_a_gpu_and_the_cpu(tmp_path):
    options = ("--sizes", 4096, "--repeats", 2, "--output", "out")
    result = call(tmp_path, "bench", "split", *options, timeout=170)
    assert result.returncode == 0, result.stdout + result.stderr
    content = json.loads((tmp_path / "out" / "split.json").read_text())
    (found,) = content["conclusions"]
    rates = (found["main_rate"], found["cpu_rate"])
    assert min(rates) > 0
    assert found["predicted_share"] == pytest.approx(rates[1] / sum(rates), rel=1e-12)
    assert 0 <= found["auto_share"] <= 1
    for row in content["rows"]:
        assert row["main"].split(",")[0] == "GPU 0"
        if "note" not in row:
            assert 0 <= row["share"] <= 1
            expected = 4096**2 / row["median_s"]
            assert row["interactions_per_s"] == pytest.approx(expected, rel=1e-12)


def test_without_a_gpu_it_says_what_can_be_done(tmp_path):
    message = refused(tmp_path, "bench", "split", environment=NO_GPU)
    assert message.startswith("no GPU can be used: ")
    assert message.endswith("--roles cpu lets CPU threads play both roles, to see what this does")


def test_bad_options(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    with pytest.raises(InputError) as error:
        read_threads("2")
    assert str(error.value) == "--threads: at most 1, the cores of this process (got 2)"
    with pytest.raises(InputError) as error:
        read_threads("none")
    assert str(error.value) == "--threads: must be a whole number, at least 1 (got 'none')"
    parser = argparse.ArgumentParser()
    add_arguments(parser, Path)
    with pytest.raises(SystemExit):
        parser.parse_args(["split", "--roles", "tpu"])
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(InputError, match="this benchmark runs in one process"):
        machine.find_devices("cpu")
