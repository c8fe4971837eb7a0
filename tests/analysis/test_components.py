"""The picture of components: whose bodies have which colour."""

import json

import numpy as np
import pytest
from support.presented import figure_of

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run
from hybrid_nbody.nbody.figures import sample
from hybrid_nbody.nbody.figures.components import members_of, no_components

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


@pytest.mark.parametrize("config", ['{"bodies": {"kind": "plummer", "n": 4}}', "title: Test\n"])
def test_one_component_is_refused(write_run, config):
    with open_run(write_run(config=config)) as run:
        assert no_components(run) == "the bodies are of one component"
        with pytest.raises(InputError, match="no picture of kind 'components'"):
            figure_of("nbody", "components")(run)
