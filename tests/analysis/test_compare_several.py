"""Several runs beside the first of them."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from hybrid_nbody.analysis.compare_several import compare_several, table_of_several
from hybrid_nbody.analysis.compare_several_figure import colours, plot_several, several_figure
from hybrid_nbody.errors import InputError


@pytest.fixture
def three(write_run, in_folder):
    """Three runs, of which the second and the third move a body by 0.5 and 1."""
    for name in ("x", "y"):
        (in_folder / name).mkdir()
    for name, by in {"x/a": 0.0, "x/b": 0.5, "y/b": 1.0}.items():
        folder = write_run(name)
        with h5py.File(folder / "trajectory.h5", "r+") as file:
            file["bodies/position"][1, 2, 0] += by
            file["diagnostics/total_energy"][3] += by
    return ["x/a", "x/b", "y/b"]


def test_each_is_compared_with_the_first(three):
    found = compare_several(three)
    assert found.labels == ["x/a", "x/b", "y/b"]
    largest = [each.fields[0].largest.tolist() for each in found.comparisons]
    assert largest == [[0, 0.5, 0], [0, 1, 0]]
    lines = table_of_several(found).splitlines()
    assert lines[2].split()[:3] == ["run", "position", "velocity"]
    assert lines[3].split()[:3] == ["x/b", "0.00246", "0"]
    assert lines[4].split()[:3] == ["y/b", "0.00492", "0"]
    assert lines[-2:] == [
        "frames: 3 at the same times, time 0 to 1",
        "rows of diagnostics: 5 at the same times, time 0 to 1",
    ]


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_table_fits_the_terminal(three, monkeypatch, columns):
    """In blocks of quantities below each other, each with the runs, and all numbers."""
    found = compare_several(three)
    monkeypatch.setenv("COLUMNS", columns)
    text = table_of_several(found)
    assert max(map(len, text.splitlines())) <= int(columns)
    assert all(name in text for name in found.quantities)
    blocks = text.split("\n\n")
    assert (len(blocks) > 1) == (columns == "80")
    for block in blocks:
        lines = block.splitlines()
        assert [line.split()[0] for line in lines if line[:2] in ("x/", "y/")] == ["x/b", "y/b"]


def test_labels_are_directories_as_far_as_they_differ_or_given(three):
    assert list(compare_several(three[:2]).labels) == ["a", "b"]
    assert list(compare_several(three, ["one", "two", "three"]).labels) == ["one", "two", "three"]
    for wrong in (["one"], ["one", "two", "two"]):
        with pytest.raises(InputError, match="--labels: 3 different ones are needed"):
            compare_several(three, wrong)
    with pytest.raises(InputError, match="the same run twice"):
        compare_several(["x/a", "x/b", "x/a"])


def test_runs_of_other_bodies_are_compared_by_their_diagnostics(three, write_run):
    write_run("more", bodies=5)
    found = compare_several([*three, "more"])
    assert not found.comparisons[2].fields
    assert found.comparisons[2].diagnostics
    assert "more: frames are left out: x/a/trajectory.h5 has 4 bodies" in table_of_several(found)


def test_the_picture_shows_differences_and_the_diagnostics_that_differ(three):
    found, path = plot_several(three, ["one", "two", "three"])
    assert path == Path("x/a/compare.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    position, _, energy = several_figure(found).axes
    assert len(position.lines) == 2
    np.testing.assert_allclose(
        position.lines[1].get_ydata(), [np.nan, 1 / 203.2, np.nan], rtol=1e-14, atol=0
    )
    assert [text.get_text() for text in position.get_legend().texts] == [
        "one (first)",
        "two",
        "three",
    ]
    assert energy.get_ylabel().startswith("total energy")
    assert len(energy.lines) == 3


@pytest.mark.parametrize("number", [1, 7, 8, 40])
def test_every_run_has_a_colour_of_its_own(number):
    assert len(set(colours(number))) == number
