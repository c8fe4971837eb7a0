"""``bench tune`` chooses what is fastest on a GPU on paper, and keeps it where it should."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from support.bodies import make_backend
from support.command import call, refused
from support.nvrtc import architectures, compile_to_cubin, words_for
from support.paper import MODEL, PaperGpu

from hybrid_nbody.backends.tuning import tuning_file
from hybrid_nbody.benchmarks.gravity import tune
from hybrid_nbody.benchmarks.harness.machine import Devices
from hybrid_nbody.benchmarks.harness.runs import ProductionRun, massive_box
from hybrid_nbody.errors import FileError
from hybrid_nbody.nbody.kernels.gpu import kernels as gpu
from hybrid_nbody.nbody.kernels.gpu.layout import DEFAULTS, MOST_FEW, Layout, Tuning, tuning_for
from hybrid_nbody.nbody.precision import PRECISIONS

BEST = {192: 1, 256: 2, 384: 2, 512: 5}
BEST_JERK, BEST_FEW = 3, 64
FOUND = Tuning(few=64, targets=((192, 1), (384, 2), (512, 5)), jerk_targets=3)
ROWS_OF_A_PRECISION = len(BEST) * 6 + 4 + 2 * len(tune.FEW) + len(tune.MORE)


def paper_seconds(name, macros, arguments):
    """Return what a kernel takes on a GPU that is fastest with the choices above."""
    if name == "accelerations":
        return 1e-4 * (1 + abs(macros["TARGETS"] - BEST.get(int(arguments[0]), 1)))
    if name == "accelerations_and_jerks":
        return 1e-4 * (1 + abs(macros["JERK_TARGETS"] - BEST_JERK))
    if name == "run_steps":
        return arguments[0] * (1e-5 if arguments[4] <= BEST_FEW else 1e-3)
    return 1e-6


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the user without anything in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tuned(tmp_path, cache, monkeypatch):
    """A function that runs ``bench tune`` on paper and returns the exit code."""

    def run(seconds=paper_seconds, dry_run=False):
        devices = Devices(make_backend("cpu", threads=1), PaperGpu(seconds))
        monkeypatch.setattr(tune, "find_devices", lambda asked: devices)
        sizes = ",".join(map(str, BEST))
        return tune.run(
            SimpleNamespace(
                repeats=2, sizes=sizes, dry_run=dry_run, output=tmp_path / "out", overwrite=False
            )
        )

    return run


def test_the_fastest_is_chosen_and_kept(tuned, tmp_path, capsys):
    assert tuned() == 0
    assert [tuning_for(MODEL, precision) for precision in PRECISIONS] == [FOUND] * 3
    rows = json.loads((tmp_path / "out" / "tune.json").read_text())["rows"]
    assert len(rows) == 3 * ROWS_OF_A_PRECISION
    for row in rows:
        assert row["interactions_per_s"] == pytest.approx(row["bodies"] ** 2 / row["median_s"])
    assert (tmp_path / "out" / "tune.png").read_bytes().startswith(b"\x89PNG")
    text = capsys.readouterr().out
    assert f"kept for runs on {MODEL}: {tuning_file(MODEL)}" in text
    assert "single: targets of a lane: 1 up to 192, 2 up to 384, 5 up to 512 (default: " in text


def test_a_dry_run_keeps_nothing(tuned, cache, capsys):
    assert tuned(dry_run=True) == 0
    assert not cache.exists()
    assert "bodies in one block: 64 (default: " in capsys.readouterr().out


def test_stopped_it_keeps_the_precisions_that_are_done(tuned, capsys):
    def stopped_in_double(name, macros, arguments):
        if "DOUBLE" in macros and macros["TARGETS"] == 4:
            raise KeyboardInterrupt
        return paper_seconds(name, macros, arguments)

    assert tuned(stopped_in_double) == 75
    assert tuning_for(MODEL, "mixed") == FOUND
    assert tuning_for(MODEL, "double") == DEFAULTS["double"]
    assert "double: not finished, so nothing is chosen" in capsys.readouterr().out


def test_a_cache_that_cannot_be_written(tuned, cache, tmp_path):
    cache.write_text("a file where the folder should be")
    with pytest.raises(FileError, match=r"tuning-paper-gpu\.json: writing failed: "):
        tuned()
    assert json.loads((tmp_path / "out" / "tune.json").read_text())["outcome"] == "finished"


def test_without_a_gpu(tmp_path):
    message = refused(tmp_path, "bench", "tune", environment={"CUDA_VISIBLE_DEVICES": ""})
    assert message.startswith("no GPU can be used: ")


# ---- Choosing ------------------------------------------------------------------------------------


def rows_of(what, times):
    return [
        {"sum": what, "bodies": bodies, "choice": choice, "median_s": seconds}
        for (bodies, choice), seconds in times.items()
    ]


def test_few_ends_where_a_graph_is_faster():
    """One block that is faster again beyond does not count."""
    times = {
        (32, tune.ONE_BLOCK): 1,
        (32, tune.GRAPH): 2,
        (64, tune.ONE_BLOCK): 3,
        (64, tune.GRAPH): 2,
    }
    times |= {(96, tune.ONE_BLOCK): 1, (96, tune.GRAPH): 2}
    others = rows_of(tune.ACCELERATIONS, {(1024, "4"): 1}) + rows_of(tune.JERKS, {(1024, "2"): 1})
    assert tune.choose(rows_of(tune.STEP, times) + others) == Tuning(32, ((1024, 4),), 2)


def test_differences_in_words():
    default = Tuning(128, ((2048, 1),), 3)
    assert default.differences(default) == ["as the defaults"]
    assert Tuning(64, ((1024, 1), (2048, 4)), 3).differences(default) == [
        "bodies in one block: 64 (default: 128)",
        "targets of a lane: 1 up to 1024, 4 up to 2048 (default: 1 up to 2048)",
    ]


# ---- On a GPU ------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_is_tried_compiles(precision):
    for row in (
        {"sum": tune.STEP, "bodies": MOST_FEW, "choice": tune.ONE_BLOCK},
        {"sum": tune.ACCELERATIONS, "bodies": 131072, "choice": str(tune.TARGETS[-1])},
    ):
        number = row["bodies"]
        macros = gpu.defines(precision, Layout.of(number), tune.variant(row), number, number)
        options = words_for(macros, gpu.OPTIONS)
        cubin = compile_to_cubin(gpu.SOURCE.read_text(), options, architectures()[0])
        assert (b"run_steps\0" in cubin) == (row["sum"] == tune.STEP)


def test_the_defaults_have_room_for_few_bodies():
    assert all(default.few <= MOST_FEW for default in DEFAULTS.values())


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
def test_no_choice_changes_a_bit(precision):
    backend, problem, found = make_backend("gpu"), massive_box(1000), []
    for targets in tune.TARGETS:
        run = ProductionRun(backend, problem, precision, tuning=Tuning(0, ((1000, targets),), 1))
        run.force()
        found.append(backend.download(run.state.acceleration))
    for acceleration in found[1:]:
        np.testing.assert_array_equal(acceleration, found[0])


@pytest.mark.gpu
def test_on_a_gpu(tmp_path):
    result = call(
        tmp_path, "bench", "tune", "--sizes", 1024, "--repeats", 2, "--dry-run", timeout=600
    )
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "output" / "bench-tune" / "tune.json").read_text())["rows"]
    assert all(row["error_median"] < 1e-5 for row in rows)
