"""Units that are named: the constant that follows, the files that carry them, what is refused."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.presented import export_run

from hybrid_nbody import Simulation
from hybrid_nbody.cli.main import main
from hybrid_nbody.files.checkpoint import load_newest
from hybrid_nbody.files.run import open_run
from hybrid_nbody.nbody.figures.pictures import overview_figure
from hybrid_nbody.nbody.unit_names import LENGTHS, MASSES, TIMES, readable_time

PAGE = Path(__file__).parents[2] / "docs/units.md"
PARSEC = 3.0856775814913673e18  # cm
SUN = 1.988409870698051e33  # g


def lid():
    """Return the configuration of the page."""
    return re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The run of the page, of fewer bodies and steps, resumed after half of them."""
    folder = tmp_path_factory.mktemp("units")
    (folder / "lid.yaml").write_text(lid())
    few = ["bodies.n=50", "time.steps=20", "compute={backend: cpu, threads: 1}"]
    to = f"output={{directory: {folder / 'out'}, diagnostics: {{every_steps: 5}}}}"
    half = [f"--set={text}" for text in [*few, to, "time.steps=10"]]
    assert main(["run", str(folder / "lid.yaml"), *half]) == 0
    assert main(["resume", str(folder / "out"), "--set=time.steps=20"]) == 0
    return folder / "out"


def test_the_lid_is_short():
    assert len(lid().splitlines()) <= 12


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "units, G",
    [
        ("length: pc, mass: Msun, velocity: km/s", 4.300917270e-3),
        ("length: pc, mass: Msun, time: Myr", 4.498502151e-3),
        ("length: kpc, mass: 1e10 Msun, velocity: 100 km/s", 4.300917270),
        ("length: AU, mass: M_sun, time: yr", 39.4769264),
        ("length: m, mass: kg, velocity: m s-1", 6.6743e-11),
    ],
)
def test_the_constant_follows(config_of, units, G):
    config = config_of(f"units: {{{units}}}")
    np.testing.assert_allclose(config.gravity.G, G, rtol=2e-9, atol=0)


def test_sizes_are_those_of_astropy():
    units = pytest.importorskip("astropy.units")
    for table, size in ((LENGTHS, "m"), (MASSES, "kg"), (TIMES, "s")):
        for name, here in table.items():
            there = units.Unit(name).to(size)
            np.testing.assert_allclose(here, there, rtol=1e-6, atol=0, err_msg=name)


@pytest.mark.parametrize(
    "seconds, text", [(3.2e13, "1.01402 Myr"), (9000.0, "0.104167 d"), (1e-3, "0.001 s")]
)
def test_times_are_said_in_a_unit_that_fits(seconds, text):
    assert readable_time(seconds) == text


# --- files ----------------------------------------------------------------------------------------


def test_data_sets_carry_the_units_of_a_resumed_run(cluster):
    with open_run(cluster) as run:
        found = {
            name: run.units(name)
            for name in ("position", "velocity", "mass", "time", "diagnostics/time", "step")
        }
        assert found == {
            "position": "pc",
            "velocity": "km/s",
            "mass": "Msun",
            "time": "pc/(km/s)",
            "diagnostics/time": "pc/(km/s)",
            "step": "1",
        }
        assert run.units("total_energy") == "Msun (km/s)^2"
        assert run.units("angular_momentum") == "Msun pc (km/s)"
        assert run.step[-1] == 20


def test_data_sets_say_in_hdf5_what_readers_of_runs_find(cluster):
    with h5py.File(cluster / "trajectory.h5") as file:
        assert file["time"].attrs["units"] == b"pc/(km/s)"
        assert file["bodies/position"].attrs["units"] == b"pc"
        np.testing.assert_allclose(file.attrs["unit_length_in_m"], PARSEC / 100, rtol=1e-12, atol=0)


def test_the_constant_given_gives_the_same_bits(cluster, tmp_path):
    with open_run(cluster) as run:
        G = run.config["gravity"]["G"]
        expected = run.positions(-1)
    (tmp_path / "plain.yaml").write_text(lid())
    settings = ["units=null", f"gravity.G={G!r}", "bodies.n=50", "time.steps=20"]
    settings += ["compute={backend: cpu, threads: 1}", f"output={{directory: {tmp_path / 'out'}}}"]
    assert main(["run", str(tmp_path / "plain.yaml"), *(f"--set={text}" for text in settings)]) == 0
    with open_run(tmp_path / "out") as run:
        np.testing.assert_array_equal(run.positions(-1), expected)
        assert run.units("position") == "length"


def test_people_are_told(cluster, capsys):
    said = "pc, Msun, km/s; of time pc/(km/s) = 0.977792 Myr"
    assert f"units: {said}" in (cluster / "log.txt").read_text()
    assert main(["info", str(cluster)]) == 0
    assert f"  units         {said}\n" in capsys.readouterr().out


def test_axes_have_them(cluster):
    with open_run(cluster) as run:
        figure = overview_figure(run, -1)
    labels = {text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_ylabel())}
    assert {"x (pc)", "y (pc)"} <= labels
    assert any(text.endswith(" pc/(km/s))") for text in labels), labels


# --- exports --------------------------------------------------------------------------------------


def test_a_snapshot_has_them_in_its_header(cluster, tmp_path):
    with h5py.File(export_run(cluster, "gadget", tmp_path / "snap.hdf5")) as file:
        header = file["Header"].attrs
        sizes = [header[f"Unit{name}"] for name in ("Length_in_cm", "Mass_in_g")]
        np.testing.assert_allclose(sizes, [PARSEC, SUN], rtol=1e-6, atol=0)
        np.testing.assert_allclose(header["UnitVelocity_in_cm_per_s"], 1e5, rtol=1e-12, atol=0)
        np.testing.assert_allclose(header["Time_GYR"], 0.02 * 0.977792e-3, rtol=1e-5, atol=0)
        velocities = file["PartType1/Velocities"].attrs["to_cgs"]
        np.testing.assert_allclose(velocities, 1e5, rtol=1e-12, atol=0)


def test_tables_and_points_say_them(cluster, tmp_path):
    lines = export_run(cluster, "csv", tmp_path / "bodies.csv").read_text().splitlines()
    assert lines[2] == "# units pc, Msun, km/s; of time pc/(km/s) = 0.977792 Myr"
    with h5py.File(export_run(cluster, "vtkhdf", tmp_path / "bodies.vtkhdf")) as file:
        assert file["VTKHDF/Points"].attrs["units"] == "pc"
        assert file["VTKHDF/PointData/velocity"].attrs["units"] == "km/s"


def test_a_checkpoint_has_them_too(cluster, tmp_path):
    state, _ = load_newest(cluster)
    with h5py.File(export_run(state.path, "vtkhdf", tmp_path / "state.vtkhdf")) as file:
        assert file["VTKHDF/Points"].attrs["units"] == "pc"


# --- Python, and what is refused ------------------------------------------------------------------


def test_a_simulation_of_arrays_takes_the_constant_of_its_units():
    earth = Simulation.from_bodies(
        [[0, 0, 0], [1, 0, 0]],
        [[0, 0, 0], [0, 6.283, 0]],
        [1, 3e-6],
        dt=1e-3,
        units={"length": "AU", "mass": "Msun", "time": "yr"},
        compute={"backend": "cpu", "threads": 1},
    )
    np.testing.assert_allclose(earth.config.gravity.G, 39.4769264, rtol=1e-8, atol=0)


UNITS = "units: {length: pc, mass: Msun, velocity: km/s}"


@pytest.mark.parametrize(
    "text, expected",
    [
        (f"{UNITS}\ngravity: {{G: 1}}", "gravity.G: is 0.0043009173 in the units of the run"),
        ("units: {length: parsec, mass: Msun, time: Myr}", "must be a unit of length such as pc"),
        (
            "units: {length: pc, mass: Msun, velocity: km}",
            "must be a unit of velocity such as km/s",
        ),
        ("units: {length: pc, mass: Msun}", "give exactly one of velocity and time"),
        (f"{UNITS}\nbodies: {{kind: solar-system}}", "which need length: AU and mass: Msun"),
        ("units: {length: 0 pc, mass: Msun, time: Myr}", "must not begin with 0"),
    ],
)
def test_what_does_not_fit_is_refused(faults_of, text, expected):
    assert expected in "\n".join(faults_of(text))


def test_a_constant_that_is_rounded_is_taken(config_of):
    config = config_of(f"{UNITS}\ngravity: {{G: 4.301e-3}}")
    assert config.gravity.G == 4.301e-3
