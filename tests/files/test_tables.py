"""Runs as tables of pandas and as labelled arrays of xarray."""

import importlib

import numpy as np
import pytest

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run


@pytest.fixture
def xarray():
    return pytest.importorskip("xarray")


@pytest.fixture(autouse=True)
def pandas():
    return pytest.importorskip("pandas")


def test_diagnostics_by_time(write_run):
    with open_run(write_run(rows=5)) as run:
        table = run.to_pandas()
        np.testing.assert_array_equal(table.index, run.diagnostics.time)
        assert table.index.name == "time"
        np.testing.assert_array_equal(table["momentum_y"], run.diagnostics.momentum[:, 1])


def test_bodies_by_id(write_run):
    with open_run(write_run(frames=3, bodies=4)) as run:
        table = run.to_pandas(frame=1)
        assert table.index.tolist() == [10, 11, 12, 13]
        np.testing.assert_array_equal(table["position_z"], run.positions(1)[:, 2])
        np.testing.assert_array_equal(table["mass"], run.mass)
        with pytest.raises(IndexError, match="has 3 frames"):
            run.to_pandas(3)


def test_a_fluid_has_no_table_of_bodies(write_fluid):
    with open_run(write_fluid()) as run, pytest.raises(InputError, match=r"to_xarray\(\) has"):
        run.to_pandas(0)


def test_labelled_bodies(write_run, xarray):
    with open_run(write_run(frames=4, bodies=5, rows=7)) as run:
        found = run.to_xarray()
        assert found["position"].dims == ("time", "body", "axis")
        assert (found["position"].units, found["time"].units) == ("length", "time")
        late = found["position"].sel(time=1.5, axis="y")
        np.testing.assert_array_equal(late, run.positions(3)[:, 1])
        back = found["velocity"][::-2, 1:3]
        np.testing.assert_array_equal(back, run.velocities(slice(None, None, -2))[:, 1:3])
        assert found["position"][2:2].shape == (0, 5, 3)
        assert found["momentum"].dims == ("diagnostics_time", "axis")
        np.testing.assert_array_equal(found["diagnostics_time"], run.diagnostics.time)
        np.testing.assert_array_equal(found["mass"], run.mass)


def test_fields_are_read_when_they_are_used(write_run, xarray, monkeypatch):
    with open_run(write_run(frames=4)) as run:
        read = []
        part = run.part
        monkeypatch.setattr(run, "part", lambda *which: (read.append(which[:2]), part(*which))[1])
        found = run.to_xarray()
        assert read == []
        assert float(found["position"][2, 1, 0]) == run.positions(2)[1, 0]
        assert read == [("bodies/position", 2)]


def test_labelled_cells(write_fluid, xarray):
    with open_run(write_fluid(cells=(12, 16, 8), stride=2)) as run:
        found = run.to_xarray()
        assert found["density"].dims == ("time", "z", "y", "x")
        assert found["velocity"].dims == ("time", "z", "y", "x", "axis")
        np.testing.assert_allclose(found["y"], (np.arange(0, 16, 2) + 0.5) / 16, rtol=1e-15, atol=0)
        np.testing.assert_array_equal(
            found["density"].isel(time=1, x=3), run.field("fluid/density", 1)[:, :, 3]
        )


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_a_missing_package_is_named(write_run, monkeypatch, package):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with open_run(write_run()) as run, pytest.raises(InputError) as caught:
        getattr(run, f"to_{package}")()
    assert str(caught.value) == (
        f"{package} is not installed; install it with: pip install 'hybrid_nbody[tables]', "
        f"or pip install {package}"
    )
