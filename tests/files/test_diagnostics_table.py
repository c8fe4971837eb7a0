"""Diagnostics as a table of columns, which pandas takes."""

import numpy as np
import pytest

from hybrid_nbody.files.run import open_run


def test_diagnostics_are_a_table_of_columns(write_run):
    """What pandas asks of a table: a dict whose keys() name columns of one axis each."""
    with open_run(write_run(rows=5)) as run:
        found = run.diagnostics
        assert isinstance(found, dict)
        columns = list(found.keys())
        assert {"total_energy", "momentum_x", "momentum_y", "momentum_z"} <= set(columns)
        assert "momentum" not in columns
        assert {found[name].shape for name in columns} == {(5,)}
        np.testing.assert_array_equal(found["momentum_y"], found.momentum[:, 1])
        np.testing.assert_array_equal(dict(found)["total_energy"], found.total_energy)
        assert found and set(found.copy()) == set(found | {}) == set({} | found) == set(
            found.keys()
        )


def test_pandas_makes_a_table_of_diagnostics(write_run):
    pandas = pytest.importorskip("pandas")
    with open_run(write_run(rows=5, diagnostics={"inertia": np.zeros((5, 2, 3))})) as run:
        table = pandas.DataFrame(run.diagnostics)
        assert len(table) == 5
        assert {"total_energy", "momentum_z", "inertia_1_x"} <= set(table.columns)
        np.testing.assert_array_equal(table["step"], run.diagnostics.step)
        np.testing.assert_array_equal(table["momentum_z"], run.diagnostics.momentum[:, 2])
        chosen = pandas.DataFrame(run.diagnostics, columns=["time", "virial_ratio"])
        np.testing.assert_array_equal(chosen["time"], run.diagnostics.time)


def test_diagnostics_cannot_be_changed(write_run):
    with open_run(write_run(rows=2)) as run:
        for change in (lambda rows: rows.update(time=1), lambda rows: rows.pop("time")):
            with pytest.raises(TypeError, match=r"cannot be changed; change a copy\(\)"):
                change(run.diagnostics)
