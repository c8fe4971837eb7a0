"""The command `square` as a user of the course calls it."""

import json
import os
import sys
import time
from argparse import Namespace
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from support import configs
from support.command import ROOT, call
from support.ranks import alone
from support.runs import contents

from hybrid_nbody.analysis.presentation import Figures
from hybrid_nbody.cli import square
from hybrid_nbody.cli.square import configuration
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kind import NBodyKind
from hybrid_nbody.nbody.model import NBodyModel

__all__ = ["alone"]


def arguments(bodies="20", cells="4", mode="cpu", **options):
    """Return what the command line makes of some words."""
    defaults = {
        "iterations": "5",
        "file": None,
        "seed": "1",
        "animation": None,
        "output": None,
        "overwrite": False,
    }
    return Namespace(bodies=bodies, cells=cells, mode=mode, **defaults | options)


@pytest.mark.parametrize(
    ("mode", "backend", "threads"),
    [("CPU", "cpu", 1), ("OpenMP", "cpu", "auto"), ("cuda", "gpu", "auto")],
)
def test_modes_in_any_case(mode, backend, threads):
    config = configs.loads(json.dumps(configuration(arguments(mode=mode))), "square")
    assert (config.compute.backend, config.compute.threads) == (backend, threads)


def test_it_is_the_run_of_the_example():
    """But for the numbers that are asked for."""
    ours = configs.loads(
        json.dumps(configuration(arguments("1000", "50", iterations="600"))), "square"
    )
    example = configs.load(os.path.join(ROOT, "input", "flat.yaml"))
    for section in ("seed", "bodies", "gravity", "time", "activity_map"):
        assert getattr(ours, section) == getattr(example, section)


def test_every_wrong_argument_is_named():
    with pytest.raises(InputError) as caught:
        configuration(arguments("1e3", "0", "gpu", iterations="-1", seed="x", animation="flat.png"))
    assert str(caught.value).split("\n") == [
        "N: must be a whole number from 1 to 1000000000 (got '1e3')",
        "D: must be a whole number from 1 to 4096 (got '0')",
        "MODE: must be cpu, openmp or cuda (got 'gpu')",
        "-i: must be a whole number from 1 to 1000000000000000 (got '-1')",
        "--seed: must be a whole number from 0 to 1000000000000000 (got 'x')",
        "--animation: must end in .gif or .mp4 (got 'flat.png')",
        "--animation: a run with -i is timed and makes none; leave out one of the two",
    ]


def test_arguments_that_nothing_would_heed_are_refused(tmp_path):
    with pytest.raises(InputError) as caught:
        configuration(
            arguments(iterations=None, animation=str(tmp_path / "none" / "a.gif"), overwrite=True)
        )
    assert "--overwrite: is for --output DIR" in str(caught.value)
    assert "--animation: there is no folder" in str(caught.value)
    with pytest.raises(InputError, match="-i: must be a whole number"):
        configuration(arguments(iterations=""))


def test_numbers_that_overflow_end_it(tmp_path):
    (tmp_path / "heavy.csv").write_text("0.1, 0.2, 0, 0, 1e308\n0.8, 0.7, 0, 0, 1e308\n")
    result = call(tmp_path, "square", 2, 4, "cpu", "-i", 5, "-f", "heavy.csv")
    assert (result.returncode, result.stdout) == (3, "")
    assert "not a finite number" in result.stderr


def test_timing_leaves_nothing_behind(tmp_path):
    (tmp_path / "two.csv").write_text("# x, y, vx, vy, m\n0.25f, 0.5f, , , 1\n, , 0, 0, \n")
    result = call(tmp_path, "flat", 2, 4, "OPENMP", "-i", 7, "-f", "two.csv")  # its older name
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("2 bodies, CPU, ")
    assert ": 7 iterations in " in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["two.csv"]


@pytest.mark.parametrize("keeps", [False, True])
def test_an_animation_where_there_is_no_display(tmp_path, alone, monkeypatch, capsys, keeps):
    """Of a run that is kept, it is in its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(square, "can_open", lambda: False)
    monkeypatch.setattr(square, "FRAMES", 3)
    where = tmp_path / "kept" if keeps else tmp_path
    asked = arguments(iterations=None, output=where if keeps else None)
    assert square.run(asked, alone, time.monotonic()) == 0
    output, errors = capsys.readouterr()
    assert f"{'kept/' if keeps else ''}square.gif\n" in output
    assert errors.splitlines()[-1].startswith(f"picture {3 + keeps}/{3 + keeps} (100%)")
    assert ("frame 3/3 (100%)" in errors) != keeps
    assert [path.name for path in tmp_path.iterdir()] == ["kept" if keeps else "square.gif"]
    with Image.open(where / "square.gif") as animation:
        assert animation.n_frames == 3 + keeps


def test_a_run_that_is_kept(tmp_path, alone):
    asked = arguments(iterations="10", output=tmp_path / "kept")
    assert square.run(asked, alone, time.monotonic()) == 0
    found = contents(tmp_path / "kept")
    assert found["step"].tolist() == list(range(11))
    # all 20 bodies, times 4 / 20
    np.testing.assert_array_equal(found["activity/map"].sum(axis=(1, 2)), 4)
    with pytest.raises(InputError, match="^--output: .*kept holds a run already"):
        square.run(asked, alone, time.monotonic())


def test_an_animation_of_the_run_before_does_not_stay(tmp_path, alone):
    assert call(tmp_path, "square", 20, 4, "cpu", "-i", 10, "--output", "kept").returncode == 0
    (tmp_path / "kept" / "square.gif").write_bytes(b"old")
    asked = arguments(iterations="5", output=tmp_path / "kept", overwrite=True)
    assert square.run(asked, alone, time.monotonic()) == 0
    assert not (tmp_path / "kept" / "square.gif").exists()


def test_what_is_missing_is_told_in_the_words_that_were_typed(alone, monkeypatch):
    """Not by the key of a configuration that nobody wrote."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(
        InputError, match="no GPU can be used.*; use MODE cpu or openmp, or install"
    ) as caught:
        square.run(arguments(mode="cuda"), alone, time.monotonic())
    assert "compute.backend" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3,4,5\n", "bodies.csv: it holds 1 bodies, but N is 2; give N = 1, or another file"),
        ("1,2,3,4,5\n1,2,3,4,b\n", "bodies.csv:2: column 'm': not a number (got 'b')"),
        ("", "bodies.csv: an empty file, no bodies in it"),
    ],
)
def test_files_that_do_not_fit(tmp_path, text, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bodies.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        configuration(arguments("2", file="bodies.csv"))
    assert str(caught.value) == message


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="none.csv: no such file$"):
        configuration(arguments(file=tmp_path / "none.csv"))


def test_a_long_run_does_all_its_steps(alone, monkeypatch, capsys):
    steps = []
    monkeypatch.setattr(NBodyModel, "advance", lambda model, count: steps.append(count))
    assert square.run(arguments(iterations="1100"), alone, time.monotonic()) == 0
    assert (steps[0], sum(steps)) == (512, 1100)
    assert ": 1100 iterations in " in capsys.readouterr().out


def test_the_window_gets_every_step(alone, monkeypatch):
    """Where there is a display; bodies at rest in the first frame, one step on in the next."""
    seen = []
    monkeypatch.setattr(square, "can_open", lambda: True)
    figures = Figures({}, window=lambda frames, title: seen.extend([title, *islice(frames, 2)]))
    monkeypatch.setattr(NBodyKind, "figures", figures)
    assert square.run(arguments(iterations=None), alone, time.monotonic()) == 0
    title, first, second = seen
    assert (title, first.time, second.time) == ("20 bodies, 4 x 4 cells", 0, 0.01)
    assert first.fields["activity/map"].sum() == 4  # all 20 bodies, times 4 / 20
    moved = second.fields["bodies/position"] - first.fields["bodies/position"]
    assert 0 < np.abs(moved).max() < 1e-3


class Paced:
    """A model whose steps take a given time on a clock of its own."""

    def __init__(self, interactions, step_seconds):
        self.work = SimpleNamespace(per_step=interactions)
        self.backend = SimpleNamespace(synchronize=lambda: None)
        self.step_seconds, self.now, self.pieces = step_seconds, 0.0, []

    def advance(self, steps):
        self.pieces.append(steps)
        self.now += steps * self.step_seconds


@pytest.mark.parametrize(
    ("interactions", "step_seconds", "steps", "pieces"),
    [
        (1e6, 1e-4, 600, [512, 88]),
        (1e6, 1e-4, 12000, [512, 5000, 5000, 1488]),
        (2.5e7, 0.01, 200, [40, 50, 50, 50, 10]),
        (1e12, 20.0, 3, [1, 1, 1]),
    ],
)
def test_a_timed_run_looks_up_twice_a_second(
    alone, monkeypatch, interactions, step_seconds, steps, pieces
):
    """Ctrl-C is answered between pieces; the first is small, as its time is not known."""
    model = Paced(interactions, step_seconds)
    monkeypatch.setattr(square.time, "perf_counter", lambda: model.now)
    np.testing.assert_allclose(
        square._seconds_of_steps(model, steps, alone), steps * step_seconds, rtol=1e-9
    )
    # the seconds are rounded
    assert model.pieces == pytest.approx(pieces, abs=2 * (len(pieces) > 2))
