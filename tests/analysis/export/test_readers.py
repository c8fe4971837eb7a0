"""yt, pynbody and VTK, each in a process of its own, find in an export what the run holds."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.presented import export_run

from hybrid_nbody.files.run import open_run

ROOT = Path(__file__).resolve().parents[3]

READ_IN_YT = """
import sys
import numpy as np, yt
from hybrid_nbody.analysis.export import load_yt

yt.set_log_level(50)
in_plane = load_yt("plane.hdf5").all_data()["PartType1", "Coordinates"].d
plain, ours = yt.load(sys.argv[1]), load_yt(sys.argv[1], (2.0, "pc"), (3.0, "Msun"), (5.0, "Myr"))
bodies = plain.all_data()
names = ("Coordinates", "Velocities", "Masses", "ParticleIDs")
found = {name: bodies["PartType1", name].d for name in names}
bodies = ours.all_data()
found |= {
    "parsecs": bodies["PartType1", "Coordinates"].to("pc").d,
    "speeds": bodies["PartType1", "Velocities"].to("pc/Myr").d,
    "suns": bodies["PartType1", "Masses"].to("Msun").d,
    "order": bodies["PartType1", "ParticleIDs"].d,
    "time": ours.current_time.to("Myr").d,
    "periodic": ours.periodicity,
    "in_plane": in_plane,
}
np.savez(sys.argv[2], **found)
"""

READ_IN_PYNBODY = """
import sys
import numpy as np, pynbody

snapshot = pynbody.load(sys.argv[1])
found = {name: np.asarray(snapshot[name]) for name in ("pos", "vel", "mass", "iord")}
units = [str(snapshot[name].units) for name in ("pos", "vel", "mass")]
np.savez(sys.argv[2], time=float(snapshot.properties["time"].in_units("s")), units=units, **found)
"""

READ_IN_VTK = """
import sys
import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
from vtkmodules.vtkIOHDF import vtkHDFReader

reader = vtkHDFReader()
reader.SetFileName(sys.argv[1])
reader.UpdateInformation()
times = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS())
found = {"times": times or []}
for step in range(reader.GetNumberOfSteps()):
    reader.SetStep(step)
    reader.Update()
    data = reader.GetOutput()
    for part in (data.GetPointData(), data.GetCellData(), data.GetFieldData()):
        for array in map(part.GetArray, range(part.GetNumberOfArrays())):
            found[f"{array.GetName()}-{step}"] = vtk_to_numpy(array)
    if data.IsA("vtkPolyData"):
        found[f"points-{step}"] = vtk_to_numpy(data.GetPoints().GetData())
        found[f"vertices-{step}"] = vtk_to_numpy(data.GetVerts().GetConnectivityArray())
    else:
        found |= {"bounds": data.GetBounds(), "dimensions": data.GetDimensions()}
np.savez(sys.argv[2], **found)
"""


@pytest.fixture
def read(in_folder):
    """Return a function that lets a program read a file, and gives the arrays that it found."""

    def found_by(reader, program, path):
        if importlib.util.find_spec(reader) is None:
            pytest.skip(
                f"{reader} is not installed; the extra `readers` brings it where it has a wheel"
            )
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "HOME": str(in_folder),
            "MPLCONFIGDIR": str(in_folder),
        }
        command = [sys.executable, "-c", program, str(path), "found.npz"]
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return np.load("found.npz")

    return found_by


@pytest.fixture
def cluster(write_run):
    """A run of 50 bodies, and it opened."""
    folder = write_run(positions=np.random.default_rng(3).normal(size=(3, 50, 3)))
    with open_run(folder) as run:
        yield run


def test_yt(cluster, read, write_run):
    flat = np.random.default_rng(3).normal(size=(1, 20, 3)) * [1, 1, 0]
    export_run(write_run("plane", positions=flat), "gadget", "plane.hdf5")
    found = read("yt", READ_IN_YT, export_run("out", "gadget", "snap.hdf5", 1))
    order = found["ParticleIDs"].astype(int) - 10
    np.testing.assert_array_equal(np.sort(order), np.arange(50))
    np.testing.assert_array_equal(found["Coordinates"], cluster.positions(1)[order])
    np.testing.assert_array_equal(found["Velocities"], cluster.velocities(1)[order])
    np.testing.assert_array_equal(found["Masses"], cluster.mass[order])
    order = found["order"].astype(int) - 10
    np.testing.assert_allclose(found["parsecs"], 2 * cluster.positions(1)[order], rtol=1e-12)
    np.testing.assert_allclose(found["speeds"], 0.4 * cluster.velocities(1)[order], rtol=1e-12)
    np.testing.assert_allclose(found["suns"], 3 * cluster.mass[order], rtol=1e-12)
    np.testing.assert_allclose(found["time"], 2.5, rtol=1e-12)
    assert not found["periodic"].any()
    np.testing.assert_array_equal(np.sort(found["in_plane"], axis=0), np.sort(flat[0], axis=0))


def test_pynbody(cluster, read):
    found = read("pynbody", READ_IN_PYNBODY, export_run("out", "gadget", "snap.hdf5", 1))
    order = found["iord"].astype(int) - 10
    np.testing.assert_array_equal(np.sort(order), np.arange(50))
    np.testing.assert_array_equal(found["pos"], cluster.positions(1)[order])
    np.testing.assert_array_equal(found["vel"], cluster.velocities(1)[order])
    np.testing.assert_array_equal(found["mass"], cluster.mass[order])
    assert list(found["units"]) == ["cm", "cm s**-1", "g"]
    np.testing.assert_allclose(found["time"], 0.5, rtol=1e-6)  # pynbody's own length of a year


@pytest.mark.parametrize(("format", "frame"), [("gadget", 1), ("vtkhdf", 1), ("vtkhdf", "all")])
def test_bodies_in_vtk(cluster, read, format, frame):
    name = "snap.hdf5" if format == "gadget" else "snap.vtkhdf"
    found = read("vtkmodules", READ_IN_VTK, export_run("out", format, name, frame))
    steps = range(3) if frame == "all" else [frame]
    np.testing.assert_array_equal(found["times"], cluster.time if frame == "all" else [])
    for step, shown in enumerate(steps):
        np.testing.assert_array_equal(found[f"points-{step}"], cluster.positions(shown))
        np.testing.assert_array_equal(found[f"velocity-{step}"], cluster.velocities(shown))
        np.testing.assert_array_equal(found[f"mass-{step}"], cluster.mass)
        np.testing.assert_array_equal(found[f"id-{step}"], cluster.id)
        np.testing.assert_array_equal(found[f"vertices-{step}"], np.arange(50))
    if frame != "all":
        assert found["TimeValue-0"] == [0.5]


@pytest.mark.parametrize("frame", [1, "all"])
def test_a_fluid_in_vtk(write_fluid, read, frame):
    folder = write_fluid(cells=(6, 10, 4), stride=2)
    found = read("vtkmodules", READ_IN_VTK, export_run(folder, "vtkhdf", "smoke.vtkhdf", frame))
    with open_run(folder) as run:
        np.testing.assert_array_equal(found["times"], run.time if frame == "all" else [])
        for step, shown in enumerate(range(2) if frame == "all" else [frame]):
            density = run.field("fluid/density", shown)
            velocity = run.field("fluid/velocity", shown)
            np.testing.assert_array_equal(found[f"density-{step}"].reshape(density.shape), density)
            np.testing.assert_array_equal(
                found[f"velocity-{step}"].reshape(velocity.shape), velocity
            )
    assert list(found["dimensions"]) == [4, 6, 3]
    # cells 0, 2, 4 of 6, 10 and 4: each two cells wide, around its centre
    np.testing.assert_allclose(
        found["bounds"], np.array([-0.5, 5.5, -0.5, 9.5, -0.5, 3.5]) / 10, rtol=0, atol=1e-15
    )
