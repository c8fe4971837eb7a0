"""``bench scaling`` as a user calls it: on two ranks and on one, refused, and stopped."""

import argparse
import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.bodies import make_backend
from support.command import ROOT, call

from hybrid_nbody.benchmarks import add_arguments
from hybrid_nbody.benchmarks.harness.machine import Devices
from hybrid_nbody.benchmarks.scaling.experiment import SIZES, check, check_threads, draw
from hybrid_nbody.benchmarks.scaling.forecast import points_of
from hybrid_nbody.benchmarks.scaling.problems import Network, problem_of, read
from hybrid_nbody.errors import InputError

SETTINGS = {"PYTHONPATH": ROOT, "CUDA_VISIBLE_DEVICES": ""}
SMALL = (
    "--bodies",
    "128",
    "--cells",
    "8",
    "--sweeps",
    "2",
    "--repeats",
    "2",
    "--threads",
    "1",
    "--output",
    "out",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The text, the rows and the whole JSON of small problems on one and two ranks."""
    from conftest import _run_on_ranks

    folder = tmp_path_factory.mktemp("bench")
    words = ["-m", "hybrid_nbody", "bench", "scaling", "--exchange", "allgather,ring", *SMALL]
    result = _run_on_ranks(2, *words, cwd=folder, env=os.environ | SETTINGS)
    assert result.returncode == 0, result.stdout + result.stderr
    content = json.loads((folder / "out" / "scaling.json").read_text())
    with open(folder / "out" / "scaling.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(content["rows"])
    assert (folder / "out" / "scaling.png").read_bytes().startswith(b"\x89PNG")
    assert content["outcome"] == "finished"
    return result.stdout, content["rows"], content


def test_every_problem_has_a_row_on_one_rank_and_on_two(finished):
    _, rows, _ = finished
    found = [
        (row["model"], row["exchange"], row["kind"], row["size"], row["ranks"]) for row in rows
    ]
    expected = [
        ("gravity", exchange, kind, 128, ranks)
        for kind in ("strong", "weak")
        for exchange in ("allgather", "ring")
        for ranks in (1, 2)
    ]
    expected += [
        ("fluid", "halo", kind, 8, ranks) for kind in ("strong", "weak") for ranks in (1, 2)
    ]
    assert found == expected


def test_efficiency_is_that_of_a_rank_over_the_first(finished):
    for first, second in zip(finished[1][::2], finished[1][1::2], strict=True):
        assert first["efficiency"] == 1.0
        assert first["calls"] == second["calls"]
        work = 2.0 if first["kind"] == "weak" else 1.0
        assert second["work"] == pytest.approx(work * first["work"], rel=2e-2)
        assert second["efficiency"] == pytest.approx(second["rate"] / first["rate"] / 2, rel=1e-12)
        assert second["rate"] == pytest.approx(second["work"] / second["median_s"], rel=1e-12)


def test_one_rank_is_measured_once_for_both_kinds_but_for_every_exchange(finished):
    alone = {"allgather": set(), "ring": set(), "halo": set()}
    for row in (row for row in finished[1] if row["ranks"] == 1):
        alone[row["exchange"]].add((row["median_s"], row["sd_s"]))
    assert [len(times) for times in alone.values()] == [1, 1, 1]
    assert alone["allgather"] != alone["ring"]
    for exchange in ("allgather", "ring"):
        assert len(points_of(finished[1], "gravity", exchange)) == 3


def test_the_parts_of_each_rank_add_up(finished):
    for row in finished[1]:
        assert len(row["compute_s"]) == len(row["wait_s"]) == row["ranks"]
        assert min(row["wait_s"]) == 0.0
        assert row["exchange_s"] >= 0.0
        sums = [
            compute + row["exchange_s"] + wait
            for compute, wait in zip(row["compute_s"], row["wait_s"], strict=True)
        ]
        assert max(sums) == pytest.approx(row["watched_s"], rel=1e-9)
        assert (row["exchange_s"] > 0) == (row["ranks"] == 2)


def test_bytes_and_messages_of_a_step(finished):
    """Half of the positions come with one allgather, a block with masses and order in a ring."""
    for row in (row for row in finished[1] if row["model"] == "gravity"):
        if row["ranks"] == 1:
            assert (row["bytes"], row["messages"], row["exchanges"]) == (0, 0, 0)
        else:
            assert (row["messages"], row["exchanges"]) == (1, 1)
            other = (row["bodies"] + 1) // 2  # of the rank with fewer
            assert row["bytes"] >= 24 * other
            assert (row["bytes"] == 24 * other) == (row["exchange"] == "allgather")
    strong, weak = (row for row in finished[1] if row["model"] == "fluid" and row["ranks"] == 2)
    assert strong["bytes"] == pytest.approx(weak["bytes"], rel=0.01)  # planes, and sums of each
    assert strong["bytes"] > 0
    assert strong["messages"] >= strong["exchanges"] >= 6 * 2  # six solves of two sweeps
    assert strong["reductions"] >= 2


def test_the_model_is_fitted_and_what_it_says_is_said(finished):
    text, rows, content = finished
    assert {(found["model"], found["exchange"]) for found in content["fits"]} == {
        ("gravity", "allgather"), ("gravity", "ring"), ("fluid", "halo"),
    }  # fmt: skip
    assert content["network"] == {"latency": 2e-6, "bandwidth": 5e10}
    assert "gravity, allgather: a step takes a + b * bytes + work / rate" in text
    for found in content["predictions"]:
        assert found["ranks"] in (64, 512, 4096)
        assert found["seconds"] is None or found["seconds"] > 0
    assert "mpirun -n 4" not in text


def test_the_machine_says_where_each_rank_computes(finished):
    machine = finished[2]["machine"]
    assert machine["ranks"] == len(machine["placement"]) == 2
    assert machine["transport"] == "host"
    assert machine["threads"] == 1
    assert {"mpi", "cpu", "numpy", "hybrid_nbody"} <= set(machine)


def test_the_picture_can_be_drawn_from_the_json(finished):
    figure = draw(finished[1], finished[2]["machine"])
    titles = [axes.get_title(loc="left") for axes in figure.get_axes()]
    assert titles[:2] == ["Strong: one problem", "Weak: the same work per rank"]
    bars = [patch for patch in figure.get_axes()[2].patches if patch.get_width() > 0]
    shared = [row for row in finished[1] if row["ranks"] == 2]
    # every bar is a whole step
    assert sum(patch.get_width() for patch in bars) == pytest.approx(2 * len(shared))


def test_one_rank_alone_measures_what_it_can(tmp_path):
    words = (
        "--models",
        "gravity",
        "--kinds",
        "strong",
        "--bodies",
        "64",
        "--repeats",
        "1",
        "--output",
        "out",
    )
    result = call(tmp_path, "bench", "scaling", *words, environment=SETTINGS)
    assert result.returncode == 0, result.stderr
    (row,) = json.loads((tmp_path / "out" / "scaling.json").read_text())["rows"]
    assert (row["ranks"], row["efficiency"], row["wait_s"]) == (1, 1.0, [0.0])
    assert "the points do not tell these apart" in result.stdout
    assert "mpirun -n 4 hybrid-nbody bench scaling" in result.stdout


@pytest.mark.gpu
def test_a_gpu_alone(tmp_path):
    words = ("--backend", "gpu", "--bodies", 4096, "--cells", 16, "--repeats", 2, "--output", "out")
    result = call(tmp_path, "bench", "scaling", *words, timeout=170)
    assert result.returncode == 0, result.stdout + result.stderr
    content = json.loads((tmp_path / "out" / "scaling.json").read_text())
    assert [row["model"] for row in content["rows"]] == ["gravity"] * 2 + ["fluid"] * 2
    assert all(row["median_s"] > 0 for row in content["rows"])
    assert "multiprocessors" in content["machine"]


NETWORK = "must be a number greater than 0, alone or with one of"


def settings(*words, size=1):
    """Return what the command line asks for, as `size` ranks understand it."""
    parser = argparse.ArgumentParser()
    add_arguments(parser, Path)
    return read(parser.parse_args(["scaling", *words]), size)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--models", "gas"],
            "--models: allowed are gravity, fmm, fluid, staggered, ball, "
            "separated by commas (got 'gas')",
        ),
        (
            ["--kinds", "mild"],
            "--kinds: allowed are strong, weak, separated by commas (got 'mild')",
        ),
        (
            ["--exchange", "halo"],
            "--exchange: allowed are allgather, ring, separated by commas (got 'halo')",
        ),
        (
            ["--ranks", "1,2"],
            "--ranks: must be whole numbers separated by commas, at least 1 and at most 1 "
            "(got '1,2')",
        ),
        (
            ["--models", "fluid", "--bodies", "64"],
            "--bodies: is for gravity and fmm alone (got --models fluid)",
        ),
        (
            ["--models", "fluid", "--exchange", "ring"],
            "--exchange: is for gravity alone (got --models fluid)",
        ),
        (
            ["--models", "fmm", "--exchange", "ring"],
            "--exchange: is for gravity alone (got --models fmm)",
        ),
        (
            ["--models", "gravity", "--cells", "8"],
            "--cells: is for fluid, staggered and ball alone (got --models gravity)",
        ),
        (
            ["--models", "gravity", "--sweeps", "8"],
            "--sweeps: is for fluid and staggered alone (got --models gravity)",
        ),
        (["--latency", "2 parsecs"], f"--latency: {NETWORK} s, ms, us, µs, ns (got '2 parsecs')"),
        (["--bandwidth", "0"], f"--bandwidth: {NETWORK} B/s, MB/s, GB/s, TB/s, Gbit/s (got '0')"),
        (["--repeats", "0"], "--repeats: must be a whole number, at least 1 (got '0')"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(InputError) as error:
        settings(*arguments)
    assert str(error.value) == message


def test_trees_share_bodies_or_grow_with_the_ranks():
    asked = settings("--models", "fmm", "--bodies", "1000", size=4)
    strong, weak = asked.series(SIZES["cpu"])
    assert [strong.bodies(4), weak.bodies(4)] == [1000, 4000]
    assert [strong.share(4), weak.share(4)] == [250, 1000]
    assert weak.work(4) == 4000.0
    values = asked.values(weak, 4)
    assert values["bodies"]["n"] == 4000
    assert values["gravity"]["solver"] == "fmm"
    assert "exchange" not in values["compute"]
    row = {"model": "fmm", "kind": "weak", "size": 1000, "exchange": "tree"}
    assert problem_of(row) == weak


def test_trees_have_a_size_of_their_own():
    (one,) = settings("--models", "fmm", "--kinds", "strong").series(SIZES["gpu"])
    assert one.size == 4194304


def test_threads_are_refused_where_none_compute():
    check_threads("2", "cpu")
    check_threads(None, "gpu")
    with pytest.raises(InputError, match="--threads: these ranks compute on GPUs alone"):
        check_threads("2", "gpu")


@pytest.mark.parametrize(
    ("words", "network"),
    [
        ((), Network(2e-6, 5e10)),
        (("--latency", "1.5e-6", "--bandwidth", "12.5e9"), Network(1.5e-6, 1.25e10)),
        (("--latency", "800ns", "--bandwidth", "400 Gbit/s"), Network(8e-7, 5e10)),
    ],
)
def test_the_network_in_friendly_units(words, network):
    found = settings(*words).network
    assert found.latency == pytest.approx(network.latency, rel=1e-12)
    assert found.bandwidth == pytest.approx(network.bandwidth, rel=1e-12)


@pytest.mark.parametrize(
    ("size", "counts"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (6, [1, 2, 4, 6])]
)
def test_numbers_of_ranks_double_up_to_all(size, counts):
    assert settings(size=size).counts == counts
    assert settings("--ranks", f"{size},1", size=size).counts == sorted({1, size})


@pytest.mark.parametrize(
    ("words", "size", "message"),
    [
        (
            ("--bodies", "900000000000"),
            1,
            "--bodies: 900000000000 bodies need 4.29e+05 GiB in memory, and ",
        ),
        (
            ("--bodies", "900000000000"),
            2,
            "--bodies: 1272792206136 bodies need 1.21e+06 GiB in memory, and ",
        ),
        (
            ("--cells", "4096"),
            1,
            "--cells: 4096 needs 4.1e+03 GiB in memory (strong scaling), and ",
        ),
        (
            ("--cells", "4", "--ranks", "8"),
            8,
            "--cells: 4 cannot be shared among 8 ranks (strong scaling): at most 4",
        ),
    ],
)
def test_problems_that_do_not_fit_are_refused(words, size, message):
    asked = settings("--models", "gravity" if "--bodies" in words else "fluid", *words, size=size)
    with pytest.raises(InputError) as error:
        check(
            asked,
            asked.series(SIZES["cpu"]),
            Devices(make_backend("cpu"), None, "none"),
            local_size=size,
        )
    assert str(error.value).startswith(message)


def test_a_refusal_on_two_ranks_is_said_once_and_nothing_is_written(tmp_path, mpirun):
    words = [
        "-m",
        "hybrid_nbody",
        "bench",
        "scaling",
        "--models",
        "fluid",
        "--cells",
        "4000",
        "--kinds",
        "weak",
    ]
    result = mpirun(2, *words, cwd=tmp_path, env=os.environ | SETTINGS)
    assert result.returncode == 2
    text = "--cells: 4000 a rank are 8000 along z on 2 ranks (weak scaling), more than 4096"
    assert result.stderr.count(text) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_its_own_is_left_alone(tmp_path, mpirun):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    result = mpirun(
        2, "-m", "hybrid_nbody", "bench", "scaling", *SMALL, cwd=tmp_path, env=os.environ | SETTINGS
    )
    assert result.returncode == 2
    assert result.stderr.count("holds thesis.txt, which is not of `bench scaling`") == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_stopped_it_keeps_what_is_done(tmp_path):
    from conftest import _mpirun, _python

    many = ",".join(map(str, range(64, 264)))
    words = [*_mpirun(), "-n", "2", *_python(os.environ | SETTINGS), "-m", "hybrid_nbody"]
    words += ["bench", "scaling", "--models", "gravity"]
    words += ["--bodies", many, "--repeats", "1", "--threads", "1", "--output", "out"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(words, cwd=tmp_path, env=os.environ | SETTINGS, **pipes) as process:
        deadline = time.monotonic() + 60
        table = tmp_path / "out" / "scaling.csv"
        while (
            not (table.exists() and len(table.read_text().splitlines()) > 3)
            and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate(timeout=60)
    assert process.returncode == 75, text
    content = json.loads((tmp_path / "out" / "scaling.json").read_text())
    assert content["outcome"] == "stopped by SIGTERM"
    assert 3 <= len(content["rows"]) < 800
    assert f"{len(content['rows'])} of 800 rows kept" in text
    assert (tmp_path / "out" / "scaling.png").exists()
