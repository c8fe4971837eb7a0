"""What `check` says of a run before it is started."""

import re

import pytest
from support.ranks import alone
from support.runs import run

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.cli import check as check_command
from hybrid_nbody.cli.check import check
from hybrid_nbody.errors import InputError
from hybrid_nbody.output.disk import writing_speed

__all__ = ["alone"]

FLUID = """\
model: fluid
grid: {cells: [8, 6, 10]}
fluid: {grid: collocated, boundary: [periodic, no-slip, no-slip], dtype: float64}
sources: {file: events.txt, events: [{step: 3, density: 1}]}
time: {dt: 0.5, steps: 10, wall_limit: 90}
compute: {backend: cpu, threads: 1}
output: {trajectory: {every_steps: 5}, diagnostics: {every_steps: 1}, stride: 2, fields: [density]}
"""


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """Work in a folder with the configuration of a fluid and its events."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text(FLUID)
    (tmp_path / "events.txt").write_text("10\nsource 3 7\nforce 0 1 0 9\n")
    return tmp_path


def test_a_fluid(in_folder, alone):
    before = sorted(in_folder.rglob("*"))
    assert check("x.yaml", [], alone).splitlines() == [
        "x.yaml: a valid configuration",
        "  grid         8 x 6 x 10 cells, 10 planes per rank on 1 rank",
        (
            "  fluid        periodic, no-slip, no-slip along x, y, z; viscosity 0.0001, "
            "diffusion 0.0001"
        ),
        "  method       collocated grid, semi-lagrangian advection, exact projection",
        "  solver       multigrid, at most 10 iterations, tolerance 0.0001 on the residual",
        "  sources      3 events, steps 3 to 9",
        "  memory       about 46.1 kB per rank: 10 arrays, float64",  # 8 x 6 x (10 + 2) cells
        "  time         10 steps of 0.5, to t = 5, at most 1 min 30 s of wall-clock time",
        "  compute      backend cpu, as asked for; rank 0: CPU, 1 thread",
        "  work         4.8e+03 cells stepped",
        # 3 frames of 4 x 3 x 5 cells, 2 checkpoints of 4 arrays, tables of 1024 x 15: 8 bytes a
        # number; HDF5's 59 kB
        "  output       output/run: 3 frames, 11 rows of diagnostics, 2 checkpoints, about 92.7 kB",
    ]
    assert sorted(in_folder.rglob("*")) == before


def test_a_grid_that_does_not_fit_is_warned_of(in_folder, alone, monkeypatch):
    monkeypatch.setattr(CpuBackend, "free_memory", lambda self: 46_000)
    lines = check("x.yaml", [], alone).splitlines()
    assert lines[0] == "x.yaml: a valid configuration, but too large for the memory here"
    (warning,) = (line for line in lines if "warning" in line)
    assert warning == (
        "  warning      a run needs about 46.1 kB, and 46 kB are free on CPU, 1 thread; take fewer "
        "cells, or more nodes or GPUs"
    )
    monkeypatch.setattr(CpuBackend, "free_memory", lambda self: 47_000)
    assert "warning" not in check("x.yaml", [], alone)


def test_an_activity_map_counts_in_the_size_of_frames(tmp_path, monkeypatch, alone):
    """3 frames of 48 bytes a body and 8 a cell; the rest is 214 kB, 69 and 16 bytes a body."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text(
        "model: nbody\nbodies: {kind: random-square, n: 10}\ntime: {dt: 0.5, steps: "
        "10}\nactivity_map: {cells: 500}\ncompute: {backend: cpu, threads: 1}\noutput: "
        "{trajectory: {every_steps: 5}}\n"
    )
    assert check("x.yaml", [], alone).endswith(
        "2 rows of diagnostics, 2 checkpoints, about 6.06 MB"
    )


def test_the_size_is_that_of_the_files(tmp_path, monkeypatch, alone):
    """A few large frames, and many small ones."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text(
        "model: nbody\nbodies: {kind: plummer, n: 100}\ntime: {dt: 1e-6, steps: 900}\ncompute: "
        "{backend: cpu, threads: 1}\noutput: {checkpoint: null, trajectory: {every_steps: 1}}\n"
    )
    for overrides in ([], ["bodies.n=9000", "time.steps=2"]):
        settings = [word for override in overrides for word in ("--set", override)]
        run("x.yaml", "--overwrite", *settings)
        written = sum(path.stat().st_size for path in (tmp_path / "output" / "run").rglob("*.h5"))
        number, unit = re.search(
            r"about (.*) (kB|MB)$", check("x.yaml", overrides, alone), re.MULTILINE
        ).groups()
        assert float(number) * {"kB": 1e3, "MB": 1e6}[unit] == pytest.approx(written, rel=0.02)


@pytest.mark.parametrize(
    ("speed", "told"),
    [(250e6, "10 s at the 250 MB/s"), (5e9, "less than a second at the 5 GB/s")],
)
def test_a_run_that_writes_much_is_told_how_long_the_disk_takes(
    tmp_path, monkeypatch, alone, speed, told
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check_command, "writing_speed", lambda folder: speed)
    (tmp_path / "x.yaml").write_text(
        "model: nbody\nbodies: {kind: plummer, n: 100000}\ntime: {dt: 1e-3, steps: 1000}\n"
        "compute: {backend: cpu, threads: 1}\n"
        "output: {checkpoint: {every_steps: 100}, trajectory: {every_steps: 2}}\n"
    )
    text = check("x.yaml", [], alone)
    assert f"\n  writing      2.48 GB with all checkpoints, {told} of this disk" in text
    assert list(tmp_path.iterdir()) == [tmp_path / "x.yaml"]


def test_output_more_often_than_steps_is_named(tmp_path, monkeypatch, alone):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text(
        "model: nbody\nbodies: {kind: plummer, n: 10}\ntime: {dt: 1e-3, steps: 10}\n"
        "compute: {backend: cpu, threads: 1}\n"
        "output: {trajectory: {every_time: 1e-4}, diagnostics: {every_time: 1e-3}}\n"
    )
    lines = [line for line in check("x.yaml", [], alone).splitlines() if "every_time" in line]
    assert lines == [
        "  note         output.trajectory.every_time is shorter than a step: it is due at each"
    ]


def test_the_speed_of_a_disk_leaves_nothing(tmp_path):
    assert writing_speed(tmp_path) > 1e5
    assert writing_speed(tmp_path / "gone") is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("override", "line"),
    [
        (
            "sources={carry_over: true}",
            "sources      none: the fluid stays at rest; each step starts from what the one",
        ),
        ("sources={events: [{steps: [1, 4], density: 1}]}", "sources      1 event, steps 1 to 4"),
        ("fluid={}", "fluid        free-slip on all sides; viscosity"),
        ("solver.tolerance=0", "solver       multigrid, at most 10 iterations, no tolerance"),
        (
            "output.planes=[1, 2]",
            (
                "output       output/run: 3 frames, 11 rows of diagnostics, 2 checkpoints, about "
                "91.9 kB"
            ),
        ),
    ],
)
def test_its_lines(in_folder, alone, override, line):
    assert re.search(f"^  {re.escape(line)}", check("x.yaml", [override], alone), re.MULTILINE)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            "10\nsorce 1 2\n",
            "events.txt:2: unknown event 'sorce'; must be 'source d t' or 'force x y z t'",
        ),
        (
            "20\nsource 1 10\n",
            "events.txt:2: step 10 lies past the end of the run, whose steps are 0 to 9",
        ),
        (None, "events.txt: no such file"),
    ],
)
def test_a_bad_file_of_events_is_refused_by_name_and_line(in_folder, alone, events, message):
    (in_folder / "events.txt").unlink()
    if events is not None:
        (in_folder / "events.txt").write_text(events)
    with pytest.raises(InputError) as caught:
        check("x.yaml", [], alone)
    assert str(caught.value) == f"{in_folder}/{message}"


@pytest.mark.parametrize(
    ("integrator", "work"),
    [
        ("leapfrog", "160 interactions"),
        ("yoshida4", "480 interactions"),
        ("hermite4", "at least 320 interactions"),
    ],
)
def test_the_work_follows_from_the_integrator(in_folder, alone, integrator, work):
    (in_folder / "y.yaml").write_text(
        f"model: nbody\nbodies: {{kind: plummer, n: 4}}\ntime: {{dt: 0.1, steps: 10, integrator: "
        f"{integrator}}}\n"
    )
    assert f"  work         {work}" in check("y.yaml", ["compute.backend=cpu"], alone).splitlines()
