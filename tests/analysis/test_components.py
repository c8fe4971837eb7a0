"""The picture of components: whose bodies have which colour."""

import json
import re

import numpy as np
import pytest
from support.presented import figure_of

from hybrid_nbody.analysis.info import describe
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run
from hybrid_nbody.nbody.figures import sample
from hybrid_nbody.nbody.figures.components import members_of, no_components
from hybrid_nbody.running.models import MODELS

NEAR = {"kind": "plummer", "n": 13, "name": "near"}
FAR = {"kind": "random-box", "n": 7}

pytestmark = pytest.mark.usefixtures("no_warnings")


@pytest.fixture
def two_sets(write_run):
    """A run of bodies with the ids 10 to 19, of which the first three are of the first set."""
    points = np.random.default_rng(3).normal(size=(1, 10, 3))
    return write_run(positions=points, config=json.dumps({"bodies": [NEAR, FAR]}))


def test_bodies_are_told_apart_by_their_ids(two_sets, monkeypatch):
    with open_run(two_sets) as run:
        expected = {"near": [0, 1, 2], "1 random-box": [3, 4, 5, 6, 7, 8, 9]}
        assert {name: rows.tolist() for name, rows in members_of(run).items()} == expected
        monkeypatch.setattr(sample, "MOST", 5)  # every second body is drawn
        expected = {"near": [0, 1], "1 random-box": [2, 3, 4]}
        assert {name: rows.tolist() for name, rows in members_of(run).items()} == expected


def test_the_bodies_of_each_component_are_counted(two_sets, write_run):
    assert re.search(r"components +near 13, 1 random-box 7\n", describe(two_sets, models=MODELS))
    one = write_run(config=json.dumps({"bodies": NEAR}))
    assert "components" not in describe(one, models=MODELS)


def test_each_component_has_a_colour(two_sets):
    with open_run(two_sets) as run:
        figure = figure_of("nbody", "components")(run)
        first = figure.axes[0]
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        assert names == ["near", "1 random-box"]
        assert [len(drawn.get_offsets()) for drawn in first.collections] == [3, 7]
        np.testing.assert_allclose(
            first.collections[0].get_offsets(), run.positions(0)[:3, :2], rtol=1e-12, atol=0
        )
        colours = [tuple(drawn.get_facecolor()[0]) for drawn in first.collections]
        assert len(set(colours)) == 2


@pytest.mark.parametrize("frames", [{"every_body": 7}, {"ids": [0, 3]}])
def test_where_a_file_ends_is_not_known_from_some_of_the_bodies(write_run, frames):
    bodies = [{"kind": "file", "path": "a.csv"}, {"kind": "plummer", "n": 5}]
    config = {"bodies": bodies, "output": {"trajectory": frames}}
    with open_run(write_run(config=json.dumps(config))) as run:
        assert no_components(run).startswith("the frames hold some bodies alone")


@pytest.mark.parametrize("config", ['{"bodies": {"kind": "plummer", "n": 4}}', "title: Test\n"])
def test_one_component_is_refused(write_run, config):
    with open_run(write_run(config=config)) as run:
        assert no_components(run) == "the bodies are of one component"
        with pytest.raises(InputError, match="no picture of kind 'components'"):
            figure_of("nbody", "components")(run)


@pytest.fixture
def few(write_run):
    """A run of four bodies with the ids 10 to 13 in two components, which stay at z = 0."""
    near = {"kind": "plummer", "n": 12, "name": "near"}
    points = np.random.default_rng(3).normal(size=(3, 4, 3)) * [1, 1, 0]
    return write_run(positions=points, config=json.dumps({"bodies": [near, FAR]}))


def names_in(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_tracks_in_a_plane_are_one_panel_with_components_named(few):
    with open_run(few) as run:
        figure = figure_of("nbody", "tracks")(run)
        (axes,) = figure.axes
        paths = [line for line in axes.lines if len(line.get_xydata()) > 1]
        colours = [path.get_color() for path in paths]
        assert colours[0] == colours[1] != colours[2] == colours[3]
        assert names_in(figure.legends[0]) == ["near", "1 random-box"]


def test_a_snapshot_of_few_bodies_names_components(few):
    with open_run(few) as run:
        figure = figure_of("nbody", "snapshot")(run)
        assert names_in(figure.legends[0]) == ["near", "1 random-box"]
        assert len(np.unique(figure.axes[0].collections[0].get_facecolor(), axis=0)) == 2


def test_two_files_among_the_components_are_no_components(write_run):
    files = [{"kind": "file", "path": name} for name in ("a.csv", "b.csv")]
    with open_run(write_run(config=json.dumps({"bodies": files}))) as run:
        assert "more than one component is a file" in no_components(run)
        names = names_in(figure_of("nbody", "tracks")(run).legends[0])
        assert names == [f"body {name}" for name in run.id]
