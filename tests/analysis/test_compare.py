"""Differences of two runs are found, whatever the order of their bodies and their times."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs import contents

from hybrid_nbody.analysis import volume
from hybrid_nbody.analysis.compare import _stretches, common_times, compare, table_of
from hybrid_nbody.analysis.compare_figure import compare_figure
from hybrid_nbody.analysis.compare_rounding import natural_size
from hybrid_nbody.analysis.plots import plot_comparison
from hybrid_nbody.errors import FileError, InputError


def change(folder, name, index, by):
    """Add to a number of a data set."""
    with h5py.File(folder / "trajectory.h5", "r+") as file:
        values = file[name][:]
        values[index] += by
        file[name][:] = values


def named(series):
    return {one.name: one for one in series}


def test_a_difference_in_one_body(write_run):
    write_run("a")
    change(write_run("b"), "bodies/position", (1, 2, 0), 0.5)
    found = compare("a", "b")
    position = named(found.fields)["position"]
    np.testing.assert_array_equal(position.time, [0, 0.5, 1])
    np.testing.assert_array_equal(position.largest, [0, 0.5, 0])
    np.testing.assert_allclose(position.rms, [0, 0.5 / np.sqrt(12), 0], rtol=1e-14)
    assert position.scale == 203.2
    assert position.worst == 1
    assert position.overall_rms == pytest.approx(0.5 / 6, rel=1e-14)
    assert not named(found.fields)["velocity"].largest.any()
    assert found.notes == [
        "frames: 3 at the same times, time 0 to 1",
        "rows of diagnostics: 5 at the same times, time 0 to 1",
    ]


def test_bodies_are_matched_by_id(write_run):
    write_run("a")
    folder = write_run("b")
    with h5py.File(folder / "trajectory.h5", "r+") as file:
        for name, axis in (("bodies/position", 1), ("bodies/velocity", 1), ("bodies/id", 0)):
            file[name][:] = np.flip(file[name][:], axis)
    assert table_of(compare("a", "b")).endswith("no difference, to the last bit")
    assert table_of(compare("b", "a")).endswith("no difference, to the last bit")


def test_runs_with_other_frames_are_matched_by_time(write_run):
    write_run("a", frames=5)  # at 0, 0.5, …
    folder = write_run("b", frames=3)
    with h5py.File(folder / "trajectory.h5", "r+") as file:
        file["time"][:] = [0, 1, 1.7]
    change(folder, "bodies/position", 1, 100)  # what was at 0.5 is now like the other run at 1
    found = compare("a", "b")
    assert found.notes[0] == "frames: 2 of 5 and 3 at the same times, time 0 to 1"
    np.testing.assert_array_equal(named(found.fields)["position"].largest, [0, 0])


@pytest.mark.parametrize(
    ("first", "second", "left", "right"),
    [
        ([0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]),
        ([0, 1, 2, 3], [1, 3 + 1e-10], [1, 3], [0, 1]),
        ([0, 1], [0.5, 1 + 1e-6], [], []),
        ([5], [0, 5, 6], [0], [1]),
        ([0, 5, 6], [5], [1], [0]),
        ([0.0], [0.0], [0], [0]),
        ([], [0.0], [], []),
    ],
)
def test_common_times(first, second, left, right):
    found = common_times(np.array(first, float), np.array(second, float))
    assert [indices.tolist() for indices in found] == [left, right]


def test_diagnostics(write_run):
    write_run("a")
    folder = write_run("b")
    change(folder, "diagnostics/total_energy", 3, 1e-3)
    change(folder, "diagnostics/momentum", (2, 1), -0.25)
    found = named(compare("a", "b").diagnostics)
    np.testing.assert_allclose(found["total energy"].largest, [0, 0, 0, 1e-3, 0], rtol=1e-10)
    np.testing.assert_array_equal(found["momentum"].largest, [0, 0, 0.25, 0, 0])
    assert "time" not in found


def test_one_component_of_diagnostics_that_is_not_a_number(write_run):
    write_run("a")
    change(write_run("b"), "diagnostics/momentum", (2, 1), np.nan)
    momentum = named(compare("a", "b").diagnostics)["momentum"]
    np.testing.assert_array_equal(momentum.largest, [0, 0, np.nan, 0, 0])
    assert momentum.worst == 2
    assert momentum.scale == 14  # of the first run


def test_a_run_without_diagnostics(write_run):
    write_run("a")
    with h5py.File(write_run("b") / "trajectory.h5", "r+") as file:
        del file["diagnostics"]
    found = compare("a", "b")
    assert not found.diagnostics
    assert "diagnostics: one of the runs has none" in table_of(found)


def test_what_is_not_a_number_is_told(write_run):
    write_run("a")
    change(write_run("b"), "bodies/position", (1, 2, 0), np.nan)
    found = compare("a", "b")
    assert np.isnan(named(found.fields)["position"].largest[1])
    assert ["position", "nan", "nan", "0.5", "nan", "length"] in map(
        str.split, table_of(found).splitlines()
    )


def test_what_is_not_a_number_in_both_runs_is_no_difference(write_run):
    """Such as the virial ratio of a single body, or a column that older rows lack."""
    for name in ("a", "b"):
        folder = write_run(name)
        change(folder, "bodies/position", (1, 2, 0), np.nan)
        change(folder, "diagnostics/total_energy", 0, np.nan)
    found = compare("a", "b")
    np.testing.assert_array_equal(named(found.fields)["position"].largest, 0)
    np.testing.assert_array_equal(named(found.diagnostics)["total energy"].largest, 0)


def test_fluids_plane_by_plane(write_fluid, monkeypatch):
    monkeypatch.setattr(volume, "BLOCK_BYTES", 1)
    write_fluid("a")
    change(write_fluid("b"), "fluid/density", (1, 7, 3, 2), -0.5)
    density = named(compare("a", "b").fields)["density"]
    np.testing.assert_allclose(density.largest, [0, 0.5], rtol=1e-5)
    np.testing.assert_allclose(density.rms, [0, 0.5 / np.sqrt(12 * 16 * 8)], rtol=1e-5)


def test_the_table_and_the_picture(write_run):
    write_run("a")
    change(write_run("b"), "bodies/position", (1, 2, 0), 0.5)
    found, path = plot_comparison("a", "b", dpi=50)
    assert str(path) == "a/compare.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    lines = table_of(found).splitlines()
    assert lines[0] == "a against b"
    assert lines[3].split() == ["largest", "relative", "at", "time", "rms", "units"]
    assert lines[4].split() == ["position", "0.5", "0.002461", "0.5", "0.08333", "length"]
    frames, diagnostics = compare_figure(found).axes
    assert [line.get_label() for line in frames.lines][0] == "position"
    np.testing.assert_array_equal(frames.lines[0].get_ydata(), [np.nan, 0.5 / 203.2, np.nan])
    assert [text.get_text() for text in diagnostics.texts] == ["no difference"]


def test_what_cannot_be_compared(write_run, write_fluid, refused):
    write_run("a")
    write_run("more", bodies=5)
    assert refused(InputError, compare, "a", "more") == (
        "a/trajectory.h5 has 4 bodies, more/trajectory.h5 5; only runs of the same bodies "
        "can be compared"
    )
    change(write_run("others"), "bodies/id", 0, 7)
    assert refused(InputError, compare, "a", "others") == (
        "a/trajectory.h5 and others/trajectory.h5 have bodies of different ids (bodies/id)"
    )
    write_fluid("smoke")
    assert refused(InputError, compare, "a", "smoke") == (
        "a/trajectory.h5 is of model 'nbody', smoke/trajectory.h5 of 'fluid': nothing to compare"
    )
    write_fluid("finer", cells=(12, 16, 9))
    assert refused(InputError, compare, "smoke", "finer") == (
        "smoke/trajectory.h5 has 12 x 16 x 8 cells, finer/trajectory.h5 12 x 16 x 9; they "
        "cannot be compared"
    )
    write_run("none", frames=0, rows=0)
    assert refused(InputError, compare, "a", "none") == (
        "a/trajectory.h5 and none/trajectory.h5: no frame and no row of diagnostics at the "
        "same time"
    )
    assert refused(InputError, compare, "a", "nowhere") == "nowhere: no such file or directory"
    assert refused(FileError, plot_comparison, "a", "a", "nowhere/x.png").startswith(
        "nowhere/x.png: cannot write"
    )


def test_what_is_rounding_in_both_runs_is_left_out(write_run):
    """The momentum; a real one in either run is told."""
    for name in ("a", "b"):
        change(
            write_run(name), "diagnostics/momentum", ..., -contents(name)["diagnostics/momentum"]
        )
    change(Path("b"), "diagnostics/momentum", (2, 1), 1e-7)
    found = compare("a", "b")
    assert "momentum" not in named(found.diagnostics)
    assert [one.name for one in found.rounding] == ["momentum"]
    text = table_of(found)
    assert "zero but for rounding, in both: momentum" in text
    assert "to the last bit" not in text
    change(Path("b"), "diagnostics/momentum", (2, 1), 10.0)
    assert named(compare("a", "b").diagnostics)["momentum"].largest[2] > 9
    assert not compare("b", "a").rounding


@pytest.mark.parametrize(
    ("units", "size"),
    [
        ("mass length^2 / time^2", 3 * 2**2 / 5**2),
        ("length / time", 0.4),
        ("1", None),
        ("density", None),
        ("", None),
    ],
)
def test_the_size_of_a_quantity_follows_from_its_units(units, size):
    assert natural_size(units, {"mass": 3.0, "length": 2.0, "time": 5.0}) == size


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_in_the_first_run_is_no_scale(write_run, value):
    change(write_run("a"), "bodies/position", (1, 2, 0), value)
    change(Path("a"), "diagnostics/momentum", (2, 1), value)
    write_run("b")
    found = compare("a", "b")
    for series in (named(found.fields)["position"], named(found.diagnostics)["momentum"]):
        assert 0 < series.scale < 1000
        assert not np.isfinite(series.largest[series.worst])


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12), st.integers(1, 5)
)
def test_stretches_are_the_matched_frames_in_their_order(gaps, most):
    left, right = (np.cumsum([1 + gap[side] for gap in gaps]).tolist() for side in (0, 1))
    found = list(_stretches(left, right, most))
    assert [i for one, _ in found for i in range(one.start, one.stop)] == left
    assert [j for _, two in found for j in range(two.start, two.stop)] == right
    assert max(one.stop - one.start for one, _ in found) <= most


@pytest.mark.parametrize("once", [1, 300])
def test_frames_read_one_by_one_give_what_frames_read_together_do(write_run, monkeypatch, once):
    write_run("a")
    change(write_run("b"), "bodies/position", (1, 2, 0), 0.5)
    together = compare("a", "b").fields
    monkeypatch.setattr("hybrid_nbody.analysis.compare.BYTES_AT_ONCE", once)
    for one, other in zip(compare("a", "b").fields, together, strict=True):
        np.testing.assert_array_equal(one.largest, other.largest)
        np.testing.assert_allclose(one.rms, other.rms, rtol=1e-15, atol=0)
        assert one.scale == other.scale
