"""Whole runs of a fluid on the staggered grid: bits over ranks, restarts, what flows in and out."""

import shutil

import h5py
import numpy as np
import pytest
from support.presented import figure_of
from support.runs import assert_same_run, run, run_in_ways

from hybrid_nbody.files.run import open_run

CONFIG = """\
model: fluid
grid: {cells: [12, 10, 14]}
fluid:
  grid: staggered
  advection: maccormack
  viscosity: 1e-3
  buoyancy: 0.5
  vorticity_confinement: 0.2
  scalars: [{name: heat, buoyancy: 0.2}]
  boundary:
    z-: {inflow: ["0.2 * sin(9 * t)", 0, 1], density: 1, heat: 2}
    z+: outflow
    x: no-slip
    y: periodic
obstacles:
  - {sphere: {centre: [0.4, 0.3, 0.6], radius: 0.15}, name: ball, wall: free-slip}
  - {box: {centre: [0.6, 0.4, 0.25], size: [0.3, 0.2, 0.1]}, rotation: [0, 2, 0]}
sources:
  events:
    - {steps: [2, 5], density: 2, sphere: {centre: [5, 5, 5], radius: 2}}
    - {step: 3, scalar: {name: heat, value: 3}, mode: add}
    - {step: 4, velocity: [0.3, 0.1, -0.2], box: [[2, 8], [2, 8], [3, 9]]}
time: {dt: 0.05, steps: 12, cfl: 0.8}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 4}
  diagnostics: {every_steps: 2}
  checkpoint: {every_steps: 5, keep: 5}
  fields: [density, velocity, pressure, heat]
"""
WAYS = {
    "two-ranks-of-two-threads": (2, "compute.threads=2"),
    "uneven": (3, "compute.balance=[4, 1, 2]"),
}
"""Ranks and settings that must not change a bit."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, mpirun):
    """Return the folder of the uninterrupted run, ``one``, and of those on several ranks."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "job.yaml").write_text(CONFIG.replace("OUT", str(folder / "one")))
    run(folder / "job.yaml")
    run_in_ways(mpirun, folder / "job.yaml", WAYS)
    return folder


@pytest.mark.parametrize("way", WAYS)
def test_bits_do_not_depend_on_ranks_threads_and_slabs(folder, way):
    assert_same_run(folder / way, folder / "one")


def test_a_run_resumed_on_other_ranks_equals_one_that_was_not_interrupted(folder, tmp_path, mpirun):
    again = tmp_path / "one"
    shutil.copytree(folder / "one", again)
    for step in (10, 12):
        (again / f"checkpoint-{step:010d}.h5").unlink()
    result = mpirun(2, "-m", "hybrid_nbody", "resume", again)
    assert result.returncode == 0, result.stderr
    assert_same_run(again, folder / "one")


def test_what_enters_leaves_and_scalars_come_along(folder):
    with h5py.File(folder / "one" / "trajectory.h5") as file:
        rows = {name: data[...] for name, data in file["diagnostics"].items()}
        shapes = {name: data.shape[1:] for name, data in file["fluid"].items()}
    area = 12 * 10 / 14**2
    np.testing.assert_allclose(rows["flow_in"], area, rtol=1e-6, atol=0)
    np.testing.assert_allclose(rows["flow_out"], area, rtol=1e-3, atol=0)
    assert rows["divergence"].max() <= 1e-4
    assert rows["parts"].max() > 1
    assert rows["force_ball"][1, 2] > 0.0
    assert {"torque_ball", "force_obstacle_2", "torque_obstacle_2"} <= rows.keys()
    assert rows["total_heat"][-1] > rows["total_density"][-1] > 0.0
    cells = (14, 10, 12)
    assert shapes == {
        "density": cells, "heat": cells, "pressure": cells, "velocity": (*cells, 3)
    }  # fmt: skip


def test_diagnostics_are_drawn(folder):
    with open_run(folder / "one") as run:
        figure = figure_of("fluid", "diagnostics")(run)
        expected = run.diagnostics.divergence
    (line,) = figure.axes[4].lines
    np.testing.assert_array_equal(line.get_ydata(), np.where(expected > 0.0, expected, np.nan))
