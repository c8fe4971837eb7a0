"""``bench fluid`` on a CPU: its rows, its refusals, and its loops against the float64 reference."""

import contextlib
import csv
import inspect
import io
import json
import signal
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import why_no_gpu
from support.bodies import make_backend
from support.command import call, refused

from hybrid_nbody.benchmarks.fluid import experiment, layouts, model, sweeps
from hybrid_nbody.benchmarks.fluid.problems import (
    Settings,
    measured,
    per,
    smooth_field,
)
from hybrid_nbody.benchmarks.harness import machine
from hybrid_nbody.benchmarks.harness.measure import Stopped
from hybrid_nbody.cli.main import main
from hybrid_nbody.errors import InputError

NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
SMALL = ("--sizes", "12", "--large", "15", "--poisson", "12", "--repeats", "2", "--output", "out")


def call_without_gpu(folder, *arguments):
    return call(folder, *arguments, environment=NO_GPU, timeout=170)


def call_here(folder, *arguments):
    """Run a command in this process, with a copy that fits in the caches."""
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(text):
        patch.chdir(folder)
        patch.setattr(layouts, "COPY_BYTES", 2**22)
        code = main(list(arguments))
    return subprocess.CompletedProcess(arguments, code, text.getvalue(), "")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The text and the rows of all parts on small grids.

    In this process, which compiles the loops for the tests below, too; where there is a GPU, in
    one that does not see it.
    """
    folder = tmp_path_factory.mktemp("bench")
    run = call_without_gpu if why_no_gpu() == "" else call_here
    result = run(folder, "bench", "fluid", *SMALL)
    assert result.returncode == 0, result.stdout + result.stderr
    content = json.loads((folder / "out" / "fluid.json").read_text())
    with open(folder / "out" / "fluid.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(content["rows"])
    assert (folder / "out" / "fluid.png").read_bytes().startswith(b"\x89PNG")
    assert content["outcome"] == "finished"
    assert {"cpu", "numba", "hybrid_nbody"} <= set(content["machine"])
    return result.stdout, content["rows"]


def of(rows, part, device="cpu"):
    return [row for row in rows if (row["part"], row["device"]) == (part, device)]


def test_every_part_and_rung_has_a_row(finished):
    text, rows = finished
    assert list(dict.fromkeys(row["part"] for row in rows)) == list(experiment.PARTS)
    without = [row for row in rows if row["device"] == "gpu"]
    assert {row["note"] for row in without} == {"needs a GPU"}
    assert len(without) == 1 + 5 + 5 + len(layouts.BLOCKS) + 1 + 5
    assert "red-black, GPU (needs a GPU)" in text


def test_phases(finished):
    rows = of(finished[1], "phases")
    assert [row["rung"] for row in rows] == [
        phase.name for phase in model.PHASES if phase.device == "cpu"
    ]
    for row in rows:
        assert row["cells_per_s"] == pytest.approx(12**3 / row["median_s"])
        assert row["error"] < 2e-6
        assert row["steps"] <= 100
    lexicographic, one, several = rows
    assert lexicographic["iterations"] == 6 * 20
    assert one["threads"] == 1
    assert one["speedup"] == pytest.approx(lexicographic["median_s"] / one["median_s"])
    if one["steps"] == several["steps"]:
        assert one["total"] == several["total"]
        assert one["iterations"] == several["iterations"]


def test_the_passes_on_a_cpu_are_those_of_the_model():
    make_backend("cpu")
    from hybrid_nbody.fluid.kernels.cpu import red_black as cpu_sweeps

    assert sweeps.CPU_PASS == cpu_sweeps.LONGEST_PASS


def test_layouts_and_convergence_have_the_bits_of_the_model(finished):
    copy, *rows = of(finished[1], "layouts")
    for row in rows:
        assert row["bytes_per_s"] == pytest.approx(row["updates_per_s"] * row["bytes_per_cell"])
        assert row["share_of_copy"] == pytest.approx(row["bytes_per_s"] / copy["bytes_per_s"])
        assert row["updates_per_s"] == pytest.approx(16 * 15 * 15 / row["median_s"])
    for row in rows + of(finished[1], "convergence"):
        assert row["error"] < 1e-6
        assert row["same_bits"] == "same"


def test_solvers_reach_the_residual(finished):
    iterations = {row["rung"]: row["iterations"] for row in of(finished[1], "solvers")}
    assert all(row["residual"] <= model.RESIDUAL for row in of(finished[1], "solvers"))
    assert iterations["multigrid"] < iterations["sor"] < iterations["red-black"]


def test_chosen_parts_and_devices_alone(tmp_path):
    chosen = (
        "--parts",
        "solvers",
        "--backend",
        "cpu",
        "--poisson",
        "12",
        "--repeats",
        "2",
        "--output",
        "out",
    )
    result = call(tmp_path, "bench", "fluid", *chosen)
    assert result.returncode == 0, result.stderr
    assert "needs a GPU" not in result.stdout
    rows = json.loads((tmp_path / "out" / "fluid.json").read_text())["rows"]
    assert {(row["part"], row["device"]) for row in rows} == {("solvers", "cpu")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--parts", "phases,speed"],
            "--parts: allowed are phases, layouts, convergence, blocks, edges, solvers, "
            "separated by commas (got 'phases,speed')",
        ),
        (
            ["--sizes", "3"],
            "--sizes: must be whole numbers separated by commas, at least 4 (got '3')",
        ),
        (
            ["--large", "64,2"],
            "--large: must be whole numbers separated by commas, at least 4 (got '64,2')",
        ),
        (
            ["--poisson", "1e2"],
            "--poisson: must be whole numbers separated by commas, at least 4 (got '1e2')",
        ),
        (
            ["--parts", "solvers", "--sizes", "12"],
            "--sizes: is for phases, convergence and edges alone (got --parts solvers)",
        ),
        (
            ["--parts", "phases,solvers", "--large", "12"],
            "--large: is for layouts and blocks alone (got --parts phases,solvers)",
        ),
        (
            ["--parts", "blocks", "--poisson", "12"],
            "--poisson: is for solvers alone (got --parts blocks)",
        ),
        (
            ["--parts", "blocks", "--backend", "cpu"],
            "--backend cpu leaves nothing of --parts blocks: it needs a GPU",
        ),
    ],
)
def test_refusals(tmp_path, arguments, message):
    assert refused(tmp_path, "bench", "fluid", *arguments) == message


def test_a_grid_larger_than_memory_says_what_fits(tmp_path):
    message = refused(tmp_path, "bench", "fluid", "--large", "20000", environment=NO_GPU)
    assert message.startswith("--large: 20000^3 cells need 9.54e+05 GiB in memory, and ")
    assert message.endswith("^3 cells fit")


def test_memory_is_checked_for_the_grids_of_the_chosen_parts(monkeypatch):
    monkeypatch.setattr(machine, "available_memory", lambda: 128 * 100**3 + 1)
    devices = SimpleNamespace(gpu=None)
    experiment.check_memory(devices, "--sizes", 84, "cpu")
    with pytest.raises(
        InputError,
        match=r"^--large: 256\^3 cells need 2 GiB in memory, .* at most \d+\^3 cells fit$",
    ):
        experiment.check_memory(devices, "--large", 256, "cpu")


def test_a_grid_on_a_gpu_needs_little_of_the_host(monkeypatch):
    monkeypatch.setattr(machine, "available_memory", lambda: 24 * 200**3 + 1)
    devices = SimpleNamespace(gpu=SimpleNamespace(free_memory=lambda: 128 * 201**3))
    experiment.check_memory(devices, "--sizes", 200, "gpu")
    with pytest.raises(InputError, match=r"201\^3 cells need .* in memory"):
        experiment.check_memory(devices, "--sizes", 201, "gpu")
    monkeypatch.setattr(machine, "available_memory", lambda: 2**40)
    with pytest.raises(InputError, match=r"202\^3 cells need .* on the GPU"):
        experiment.check_memory(devices, "--sizes", 202, "gpu")


# ---- Loops ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loops():
    make_backend("cpu")
    from hybrid_nbody.benchmarks.fluid import loops as fluid_loops

    return fluid_loops


@pytest.mark.parametrize(
    ("note", "zero", "limit"), [("count", 0, 0.0), ("largest", np.float32(0), 0.5)]
)
def test_iterations_end_when_nothing_changes(loops, note, zero, limit):
    relax, noted = loops.relaxing(getattr(loops, note), zero), np.zeros((2, 4))
    x, b = np.ones((2, 4, 5, 3), np.float32), np.zeros((2, 4, 5, 3), np.float32)
    b[0, 1, 2, 1] = 3.0  # a sixth of it is the first change, and less of it all others
    once, often = x.copy(), x.copy()
    for array, iterations in ((once, 1), (often, 50)):
        relax(array, b, np.float32(1 / 6), np.float32(0.5), iterations, noted, limit)
    np.testing.assert_array_equal(once, often)
    assert not np.array_equal(once, x)


def test_the_loop_that_counts_is_vector_code_and_the_other_is_not(loops):
    vectors = {}
    for name, zero in (("nothing", 0), ("count", 0), ("largest", np.float32(0))):
        relax = loops.relaxing(getattr(loops, name), zero)
        x, b = np.ones((2, 2, 2, 64), np.float32), np.zeros((2, 2, 2, 64), np.float32)
        relax(x, b, np.float32(1 / 6), np.float32(0), 1, np.zeros((2, 2)), -1.0)
        vectors[name] = vector_operations(relax)
    assert vectors["nothing"] > 0
    assert vectors["count"] > 0
    assert vectors["largest"] == 0


def vector_operations(relax):
    """Return how many multiplications of whole vectors the relaxation of a plane holds."""
    sweep = inspect.getclosurevars(relax.py_func).nonlocals["sweep"]
    plane = inspect.getclosurevars(sweep.py_func).nonlocals["relax_plane"]
    return sum(
        "mulps" in line for code in plane.inspect_asm().values() for line in code.splitlines()
    )


# ---- Rows ----------------------------------------------------------------------------------------


def test_runs_do_as_many_steps_as_time_allows():
    assert model.steps_within(1e-4) == 100
    assert model.steps_within(model.LONGEST_RUN / 50.5) == 50
    assert model.steps_within(100.0) == model.FEWEST_STEPS


def test_slow_rows_are_repeated_less_often():
    clock = SimpleNamespace(now=0.0)
    clock.mark, clock.elapsed = lambda: clock.now, lambda start, end: end - start

    def slow():
        clock.now += 6.0

    taken = measured(clock, slow, 10, stop=lambda: None)
    assert taken.seconds == (6.0, 6.0)
    assert per(taken, 20).median == pytest.approx(0.3)
    assert per(taken, 20).calls == 20


def test_a_stop_ends_a_solve():
    def stop():
        raise Stopped(signal.SIGINT)

    problem = model.Poisson(make_backend("cpu"), 12)
    with pytest.raises(Stopped):
        problem.iterations("red-black", stop)


def test_a_smooth_field_has_no_average_and_is_flat_at_walls():
    field = smooth_field(48).astype(float)
    assert abs(field.mean()) < 1e-6
    ends = np.abs(field[:, :, 1] - field[:, :, 0]).max()
    assert ends < 0.3 * np.abs(np.diff(field, axis=2)).max()


@pytest.mark.parametrize(
    ("backend", "devices"), [("auto", {"cpu", "gpu"}), ("cpu", {"cpu"}), ("gpu", {"gpu"})]
)
def test_rungs_of_one_device_are_left_out_where_the_other_is_asked_for(backend, devices):
    settings = Settings(SimpleNamespace(gpu=None, cpu=None), backend, 1, {})
    for name, part in experiment.PARTS.items():
        known = {"gpu"} if name == "blocks" else {"cpu", "gpu"}
        assert {task.measure.args[0]["device"] for task in part.tasks(settings)} == devices & known


def test_the_picture_takes_whatever_was_measured():
    facts = {"cpu": "a processor", "threads": 2}
    phase = {"part": "phases", "device": "cpu", "cells": 42, "rung": "red-black", "median_s": 1e-3}
    bar = {
        "part": "blocks",
        "device": "gpu",
        "cells": 84,
        "rung": "8x8x8",
        "median_s": 1e-3,
        "updates_per_s": 1e9,
    }
    lacking = {
        "part": "solvers",
        "device": "gpu",
        "cells": 64,
        "rung": "sor",
        "note": "needs a GPU",
    }
    for rows, panels in (([], 1), ([lacking], 1), ([phase, lacking], 1), ([phase, bar], 2)):
        assert len(experiment.draw(rows, facts).axes) == panels


def test_best_lines_name_what_was_measured():
    row = {"part": "blocks", "device": "gpu", "rung": "32x8x1", "updates_per_s": 1.2e11}
    lines = experiment.best_lines(
        [row, row | {"rung": "8x8x8", "updates_per_s": 1e11}, {"part": "blocks", "device": "gpu"}]
    )
    assert lines == ["fastest block, GPU: 32x8x1, 120 G cell-iterations/s"]
