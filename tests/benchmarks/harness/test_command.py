"""``bench`` as a user calls it: its results, its refusals, and what a stop leaves."""

import csv
import json
import os
import signal
import subprocess
import time

import pytest
from support.command import ROOT, call, refused
from support.forked import ready_python

from hybrid_nbody.benchmarks import BENCHMARKS
from hybrid_nbody.benchmarks.gravity.sizes import crossover
from hybrid_nbody.benchmarks.harness.measure import expected_seconds
from hybrid_nbody.benchmarks.ladder.rungs import LADDERS

NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


def measured(folder, name, *arguments):
    """Run a benchmark; return its text and its rows, which CSV and JSON hold alike."""
    result = call(
        folder, "bench", name, "--output", "out", "--repeats", 2, *arguments, environment=NO_GPU
    )
    assert result.returncode == 0, result.stdout + result.stderr
    content = json.loads((folder / "out" / f"{name}.json").read_text())
    with open(folder / "out" / f"{name}.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(content["rows"])
    assert (folder / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert content["outcome"] == "finished"
    assert content["command"].startswith(f"hybrid-nbody bench {name} ")
    assert {"cpu", "cores", "memory_bytes", "numpy", "numba", "python", "hybrid_nbody"} <= set(
        content["machine"]
    )
    return result.stdout, content["rows"]


def test_ladder(tmp_path):
    text, rows = measured(tmp_path, "ladder", "--sizes", 256)
    assert [(row["ladder"], row["rung"]) for row in rows] == [
        (name, rung.name) for name, ladder in LADDERS.items() for rung in ladder.rungs
    ]
    without = [row for row in rows if row["device"] == "gpu"]
    assert {row["note"] for row in without} == {"needs a GPU"}
    assert "one GPU thread (needs a GPU)" in text
    for row in rows:
        if row["device"] == "cpu" and row["note"] == "":
            assert row["interactions_per_s"] == pytest.approx(256**2 / row["median_s"])
            assert row["within_tolerance"] == 1.0
    first, second = rows[:2]
    assert second["speedup_before"] == pytest.approx(
        second["interactions_per_s"] / first["interactions_per_s"]
    )


def test_threads(tmp_path):
    _, rows = measured(tmp_path, "threads", "--sizes", 256, "--threads", 1)
    assert [row["threads"] for row in rows] == [1] * 5
    assert {"struct of arrays in C, float64", "production (double), CPU"} < {
        row["loop"] for row in rows
    }
    assert {row.get("efficiency", 1.0) for row in rows} == {1.0}


def test_sizes(tmp_path):
    text, rows = measured(tmp_path, "sizes", "--sizes", "64,512")
    assert [(row["precision"], row["bodies"]) for row in rows] == [
        (precision, bodies) for precision in ("single", "mixed", "double") for bodies in (64, 512)
    ]
    assert rows[-1]["error_max"] < 1e-12 < rows[1]["error_max"]
    assert "double on CPU" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["ladder", "--sizes", "1e3"],
            "--sizes: must be whole numbers separated by commas, at least 2 (got '1e3')",
        ),
        (
            ["sizes", "--sizes", "1"],
            "--sizes: must be whole numbers separated by commas, at least 2 (got '1')",
        ),
        (["ladder", "--repeats", "0"], "--repeats: must be a whole number, at least 1 (got '0')"),
        (
            ["ladder", "--ladders", "A,B"],
            "--ladders: allowed are A, C, E, separated by commas (got 'A,B')",
        ),
        (
            ["blocks", "--unrolls", "0"],
            "--unrolls: must be whole numbers separated by commas, at least 1 and at most 1024 "
            "(got '0')",
        ),
    ],
)
def test_refusals(tmp_path, arguments, message):
    assert refused(tmp_path, "bench", *arguments) == message


def test_more_threads_than_cores_are_refused(tmp_path):
    cores = len(os.sched_getaffinity(0))
    assert refused(tmp_path, "bench", "threads", "--threads", cores + 1) == (
        "--threads: must be whole numbers separated by commas, "
        f"at least 1 and at most {cores} (got '{cores + 1}')"
    )


def test_more_bodies_than_memory_says_how_much_there_is(tmp_path):
    message = refused(
        tmp_path, "bench", "ladder", "--sizes", "1000,900000000000", environment=NO_GPU
    )
    assert message.startswith("--sizes: 900000000000 bodies need 4.29e+05 GiB in memory, and ")
    assert " GiB are free; at most " in message


def test_blocks_without_a_gpu(tmp_path):
    message = refused(tmp_path, "bench", "blocks", environment=NO_GPU)
    assert message.startswith("no GPU can be used: ")
    assert message.endswith(
        "this needs an NVIDIA GPU, its driver and the extra cuda12 or cuda13 "
        "(hybrid-nbody doctor says more)"
    )


def test_several_ranks_are_refused(tmp_path):
    message = refused(tmp_path, "bench", "ladder", environment={"PMI_SIZE": "4"})
    assert message == "this benchmark runs in one process, not in 4: start it without mpirun"


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_help(tmp_path, benchmark):
    assert f"    {benchmark.name} " in call(tmp_path, "bench", "--help").stdout
    text = call(tmp_path, "bench", benchmark.name, "--help", environment={"COLUMNS": "120"}).stdout
    assert benchmark.summary in text
    assert f"(default: output/bench-{benchmark.name})" in text


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
def test_stopped_it_keeps_what_is_done(tmp_path, number, name):
    sizes = ",".join(map(str, range(64, 164)))
    variables = os.environ | {"PYTHONPATH": ROOT} | NO_GPU
    words = [*ready_python(variables), "-m", "hybrid_nbody", "bench", "sizes"]
    words += ["--sizes", sizes, "--repeats", "50"]
    with subprocess.Popen(
        [*words, "--output", "out"], cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while len(rows_on_disk(tmp_path / "out" / "sizes.csv")) < 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        text, _ = process.communicate(timeout=30)
    assert process.returncode == 75
    content = json.loads((tmp_path / "out" / "sizes.json").read_text())
    assert content["outcome"] == f"stopped by {name}"
    assert len(content["rows"]) == len(rows_on_disk(tmp_path / "out" / "sizes.csv")) >= 1
    assert f"{content['outcome']}: {len(content['rows'])} of 300 rows kept" in text
    assert "G inter-" in text
    assert (tmp_path / "out" / "sizes.png").exists()


def rows_on_disk(path):
    return path.read_text().splitlines()[1:] if path.exists() else []


# ---- Sizes ---------------------------------------------------------------------------------------


def rates(device, *pairs):
    return [
        {
            "device": device,
            "precision": "single",
            "bodies": n,
            "interactions_per_s": rate,
            "median_s": n * n / rate,
        }
        for n, rate in pairs
    ]


def test_the_crossover_is_interpolated():
    rows = rates("cpu", (100, 4e9), (400, 4e9), (800, 4e9)) + rates(
        "gpu", (100, 2e9), (400, 8e9), (800, 16e9)
    )
    number, rate = crossover(rows, "single")
    assert number == pytest.approx(200)
    assert rate == pytest.approx(4e9)


def test_no_crossover():
    assert crossover(rates("cpu", (100, 4e9), (400, 4e9)), "single") is None
    assert (
        crossover(
            rates("cpu", (100, 1e9), (400, 1e9)) + rates("gpu", (100, 2e9), (400, 8e9)), "single"
        )
        is None
    )


def test_the_time_of_a_row_is_expected_from_the_one_before():
    assert expected_seconds(rates("cpu", (100, 1e4)), 200) == pytest.approx(4.0, rel=1e-12)
    assert expected_seconds([], 200) == 0.0
