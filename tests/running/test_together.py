"""Sweeps of small systems that are computed side by side: a table and a file for all."""

import csv

import h5py
import numpy as np
import pytest
from support.command import call, refused
from support.ranks import alone
from support.runs import run

from hybrid_nbody import open_run
from hybrid_nbody.api import together
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.running.members import axes_of, members_of

__all__ = ["alone"]

JOB = """\
model: nbody
bodies: {kind: plummer, n: 8}
gravity: {softening: 0.1, precision: double}
time: {dt: 1e-2, steps: 20}
compute: {backend: cpu, threads: 1}
output: {directory: out, trajectory: null, checkpoint: null}
"""

DEVICE = CpuBackend(1)

SEEDS = ["--set", "seed=1,2,3", "--set", "gravity.softening=0.1,0.2"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a configuration, in which the test works."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def table(path="out-sweep/sweep.csv"):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def arrays(path):
    with h5py.File(path) as file:
        return {name: file[name][:] for name in ("position", "velocity")}


def test_points_are_where_single_runs_take_them(folder):
    """To rounding: the order of the sums is another one."""
    result = run("sweep", "job.yaml", *SEEDS, "--together")
    assert "table in out-sweep/sweep.csv" in result.stdout
    rows = table()
    assert [row["state"] for row in rows] == ["finished"] * 6
    chosen = next(r for r in rows if (r["seed"], r["gravity.softening"]) == ("3", "0.2"))
    run("run", "job.yaml", "--set=seed=3", "--set=gravity.softening=0.2")
    with open_run("out") as single:
        last = {name: values[-1].item() for name, values in single.diagnostics.items()}
    names = {name for name in chosen if name in last}
    assert names == last.keys()
    for name in names:
        near = pytest.approx(last[name], rel=1e-11, abs=1e-14)
        assert float(chosen[name]) == near, name
    with h5py.File("out/checkpoint-0000000020.h5") as single:
        found = arrays(f"out-sweep/{chosen['file']}")["position"][int(chosen["row"])]
        np.testing.assert_allclose(found, single["bodies/position"][:], rtol=0, atol=1e-12)


def points_of(folder, drawer):
    members = members_of(axes_of(SEEDS[1::2]), folder)
    file = folder / "job.yaml"
    return [
        drawer.point(member.name, together.check(member.configuration(file))) for member in members
    ]


def test_what_is_missing_is_computed_from_where_it_was(folder, alone, monkeypatch):
    """The same bits as without a break, and as of a system by itself."""
    (points,) = together.pieces_of(points_of(folder, together.Drawer(alone)))
    whole = together.Piece(points, folder / "whole.h5", alone, DEVICE)
    whole.run(lambda: True, print)
    monkeypatch.setattr(together, "LOOK_SECONDS", 0.0)  # a step at a time
    looks = iter([True] * 7 + [False])
    parts = together.Piece(points, folder / "parts.h5", alone, DEVICE)
    parts.run(lambda: next(looks), print)
    assert (parts.systems.steps, parts.finished) == (7, False)
    again = together.Piece(points, folder / "parts.h5", alone, DEVICE)
    again.run(lambda: True, print)
    assert again.finished
    for name, array in arrays("whole.h5").items():
        np.testing.assert_array_equal(array, arrays("parts.h5")[name])
    single = together.Piece(points[3:4], folder / "single.h5", alone, DEVICE)
    single.run(lambda: True, print)
    np.testing.assert_array_equal(
        arrays("single.h5")["position"][0], arrays("whole.h5")["position"][3]
    )
    assert [row for _, row in again.rows()] == [
        row | {"file": "parts.h5"} for _, row in whole.rows()
    ]


def test_systems_of_other_numbers_and_steps_are_in_files_of_their_own(folder, alone):
    words = ["--set", "bodies.n=2,8", "--set", "time.dt=1e-2,2e-2", "--together"]
    run("sweep", "job.yaml", *words)
    assert [row["file"] for row in table()] == [f"systems-{k}.h5" for k in range(4)]
    assert [row["time"] for row in table()] == ["0.2", "0.4"] * 2


def test_systems_that_fail_leave_the_others(folder):
    (folder / "job.yaml").write_text(JOB.replace("softening: 0.1", "softening: 1e-5"))
    words = ["sweep", "job.yaml", "--set", "gravity.softening=0.1,-1", "--set", "time.dt=1e-2,3"]
    for _ in range(2):  # the second time from the files
        result = call(folder, *words, "--together")
        assert result.returncode == 3
        assert [row["state"] for row in table()] == ["finished", "failed", "failed", "failed"]
        assert "the energy ran away: its relative error is" in table()[1]["reason"]
        assert "gravity.softening: must be" in table()[2]["reason"]


def test_points_that_cannot_be_made_leave_the_others(folder):
    words = ["--set", "bodies.n=8,33", "--set", "gravity.softening=0.1,1e200", "--together"]
    assert call(folder, "sweep", "job.yaml", *words).returncode == 3
    assert [row["state"] for row in table()] == ["finished", "failed", "failed", "failed"]
    assert "is for 2 to 32 bodies (got 33)" in table()[2]["reason"]
    assert "gravity.softening: must be at most 1e150" in table()[1]["reason"]


def test_points_of_other_devices_are_in_files_of_their_own(folder, alone):
    file = folder / "job.yaml"
    drawer = together.Drawer(alone)
    points = [
        drawer.point(member.name, together.check(member.configuration(file)))
        for member in members_of(axes_of(["compute.backend=cpu,auto"]), folder)
    ]
    assert [[point.place for point in own] for own in together.pieces_of(points)] == [
        [("cpu", 1)],
        [("auto", 1)],
    ]


def test_a_sweep_that_is_refused_changes_nothing(folder):
    words = ["sweep", "job.yaml", "--together", "--set"]
    run(*words, "time.dt=0.01,0.02")
    before = (folder / "out-sweep" / "systems-0.h5").stat().st_mtime_ns
    assert "systems-1.h5 holds other systems" in refused(folder, *words, "time.dt=0.01,0.03")
    fewer = [*words, "seed=0,1", "--set", "time.dt=0.01"]
    assert "systems-1.h5 is of another sweep" in refused(folder, *fewer)
    run(*words, "time.dt=0.01,0.02")
    assert (folder / "out-sweep" / "systems-0.h5").stat().st_mtime_ns == before
    members_of(axes_of(["time.dt=0.01,0.02"]), folder / "out-sweep")[0].folder.mkdir()
    assert "without --together" in refused(folder, *words, "time.dt=0.01,0.02")


def test_other_systems_in_the_files_are_refused(folder):
    run("sweep", "job.yaml", *SEEDS, "--together")
    more = ["sweep", "job.yaml", "--set", "seed=1,2", "--together"]
    assert "systems-0.h5 holds other systems" in refused(folder, *more)
    run(*more, "--overwrite")
    assert len(table()) == 2


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("time.integrator=hermite4", "time.integrator must be one of leapfrog"),
        ("stop=[{escape: 5}]", "stop must be left out"),
        ("gravity.solver=fmm", "gravity.solver must be direct"),
    ],
)
def test_what_cannot_be_computed_together_is_refused(folder, setting, reason):
    words = ["sweep", "job.yaml", "--set", setting, "--set", "seed=1,2", "--together"]
    assert reason in refused(folder, *words)
