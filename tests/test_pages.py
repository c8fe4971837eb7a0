"""The pages of docs/notebooks run from top to bottom, in short versions, and show what they say."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]

SPEC = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
notebooks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(notebooks)

SIZES = {
    "first-run": {"number": 512, "end": 0.2},
    "two-galaxies": {"number": 64, "end": 2.0, "step": 0.1},
    "own-force": {"number": 64, "end": 0.5},
    "sweep": {"number": 32, "steps": [2e-2, 1e-2], "end": 0.2},
    "fluid": {"cells": 16, "steps": 10},
    "million-bodies": {"number": 2000, "steps": 2, "accuracy": 3e-3},
}
"""What the short versions change. A tree of this accuracy is compiled by other tests, too."""


def first_run(found):
    assert abs(found["error"]) < 1e-4
    np.testing.assert_allclose(found["virial"], 1.0, rtol=0, atol=0.2)
    assert found["times"] == pytest.approx([0, 0.1, 0.2], rel=1e-12)
    assert found["frames"] == found["times"]
    assert found["last"].shape == (512, 3)


def two_galaxies(found):
    assert abs(found["error"]) < 0.05
    assert found["distances"][-1] < found["distances"][0] - 0.5


def own_force(found):
    assert found["fall"].velocities[0, 2] == pytest.approx(found["exact"], rel=1e-3)
    radii = found["radii"]
    assert radii[0.3][-1] < radii[0.1][-1] < radii[0.0][-1]


def sweep(found):
    np.testing.assert_allclose(found["orders"]["leapfrog"], 2, rtol=0, atol=0.3)
    np.testing.assert_allclose(found["orders"]["yoshida4"], 4, rtol=0, atol=0.5)
    radii = list(found["radii"].values())
    assert len(radii) == 3
    assert len(set(radii)) == 3


def fluid(found):
    np.testing.assert_allclose(found["measured"], found["exact"], rtol=0.01)
    assert found["after"] == pytest.approx(found["before"], rel=1e-4)
    assert found["height"] < 0.75


def million_bodies(found):
    assert 0 < found["error"] < found["accuracy"]
    assert abs(found["energy_error"]) < 1e-5


CHECKS = {
    "first-run": first_run,
    "two-galaxies": two_galaxies,
    "own-force": own_force,
    "sweep": sweep,
    "fluid": fluid,
    "million-bodies": million_bodies,
}


def test_every_page_has_a_short_version():
    assert SIZES.keys() == CHECKS.keys() == notebooks.pages().keys()


@pytest.mark.filterwarnings("ignore:time.dt. .* is long beside", "ignore:single precision gets")
@pytest.mark.parametrize("name", SIZES)
def test_a_page_runs_and_shows_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    monkeypatch.setenv("PATH", programs)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    found = notebooks.run(notebooks.pages()[name], SIZES[name])
    CHECKS[name](found)
    assert found["figure"].axes
    import matplotlib.pyplot

    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("name", SIZES)
def test_the_notebook_of_a_page_is_one(name):
    page = notebooks.pages()[name]
    text = notebooks.notebook_of(page)
    assert len(text) < 20_000
    cells = json.loads(text)["cells"]
    kinds = [cell["cell_type"] for cell in cells]
    assert kinds.count("code") == page.read_text().count("```python")
    assert kinds[0] == "markdown"
    assert cells[0]["source"].startswith("# ")
    assert not any("```python" in cell["source"] for cell in cells)
    nbformat = pytest.importorskip("nbformat", reason="the extra `test` brings nbformat")
    nbformat.validate(nbformat.reads(text, as_version=4))


def test_a_fault_names_the_line_of_its_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nsize = 3\n```\n\nText\n\n```python\nx = 1\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        notebooks.run(page)
    assert caught.traceback[-1].lineno + 1 == 11
    with pytest.raises(KeyError, match="sise"):
        notebooks.run(page, {"sise": 4})
