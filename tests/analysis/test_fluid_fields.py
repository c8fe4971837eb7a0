"""Speed, vorticity and divergence follow from the velocities that are stored."""

import numpy as np
import pytest
from PIL import Image
from support.presented import make_movie, plot_run

from hybrid_nbody.analysis import scenes
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run
from hybrid_nbody.fluid.figures.fields import FIELDS, plane_of, units_of
from hybrid_nbody.fluid.figures.pictures import field_figure

CELLS = (6, 8, 10)

pytestmark = pytest.mark.usefixtures("no_warnings")


@pytest.fixture
def linear(write_fluid):
    """A velocity (2 x - 3 y, 5 x + z, 4 z + y): divergence 6, curl (0, 0, 8) everywhere."""
    z, y, x = ((np.arange(number) + 0.5) / max(CELLS) for number in reversed(CELLS))
    z, y, x = np.meshgrid(z, y, x, indexing="ij")
    velocity = np.stack([2 * x - 3 * y, 5 * x + z, 4 * z + y], axis=-1)
    return write_fluid(cells=CELLS, velocity=np.stack([velocity, 2 * velocity]))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("index", [0, 2, -1])
def test_derivatives_of_a_linear_velocity_are_exact(linear, axis, index):
    place = index % CELLS[axis]
    with open_run(linear) as run:
        found = {
            field: plane_of(run, field, -1, axis, place)
            for field in ("divergence", "vorticity", "speed")
        }
        velocity = run.field("fluid/velocity", -1)
        speed = np.linalg.norm(np.take(velocity, place, axis=2 - axis), axis=-1)
        assert [units_of(run, field) for field in found] == [
            "1 / time",
            "1 / time",
            "length / time",
        ]
    np.testing.assert_allclose(found["divergence"], 12, rtol=1e-5, atol=0)
    np.testing.assert_allclose(found["vorticity"], 16, rtol=1e-5, atol=0)
    np.testing.assert_allclose(found["speed"], speed, rtol=1e-6, atol=0)


def test_pictures_and_movies_of_a_field(linear, monkeypatch):
    monkeypatch.setattr(scenes, "DPI", 40)
    (path,) = plot_run(linear, field="speed", dpi=50)
    assert path.name == "slices-speed.png"
    assert len(np.unique(np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3), axis=0)) > 20
    movie = make_movie(linear, "movie.gif", field="vorticity", duration=4)
    with Image.open(movie) as frames:
        assert frames.n_frames == 2
        assert frames.info["duration"] == 2000


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_divergence_of_averages_says_what_it_is(write_fluid, grid):
    """The projection of the staggered grid leaves none at the faces of cells."""
    with open_run(write_fluid(settings={"fluid": {"grid": grid}})) as run:
        figure = field_figure(run, "divergence")
        bars = [axes.get_ylabel() for panel in figure.axes for axes in panel.child_axes]
        note = figure.get_supxlabel()
        assert field_figure(run, "speed").get_supxlabel() == ""
    where = " at\ncell centres" if grid == "staggered" else ""
    assert bars == [f"divergence{where} (1 / time)"]
    assert note.startswith("from velocities averaged to the centres") == (grid == "staggered")


def test_what_is_missing_is_said(linear, write_fluid):
    with pytest.raises(InputError, match="no picture of the pressure: no frames of the pressure"):
        plot_run(linear, field="pressure")
    without = write_fluid("without", fields=("density",))
    match = "no frames of the velocity, from which the vorticity follows"
    with pytest.raises(InputError, match=match):
        make_movie(without, "movie.gif", field="vorticity")
    chosen = write_fluid("chosen", planes=[1, 4])
    with pytest.raises(InputError, match="a few planes only, and the divergence needs"):
        plot_run(chosen, kind="slices", field="divergence")
    with pytest.raises(InputError, match=f"no pictures of field 'sped'.*{', '.join(FIELDS)}"):
        plot_run(linear, field="sped")


@pytest.mark.parametrize("duration", [0, -1, float("nan"), float("inf")])
def test_a_duration_is_a_time(linear, duration):
    with pytest.raises(InputError, match="--duration .*: must be a number of seconds"):
        make_movie(linear, "movie.gif", duration=duration)


def test_a_duration_too_short_names_the_stride(linear):
    with pytest.raises(InputError, match="take fewer by --every 2"):
        make_movie(linear, "movie.gif", duration=0.01)
