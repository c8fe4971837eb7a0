"""Tracks in space, Lagrangian radii, profiles and activity maps show the data of the run."""

import numpy as np
import pytest
from PIL import Image
from support.presented import figure_of, plot_run

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.nbody.figures import structure
from hybrid_nbody.nbody.figures.profiles import FRACTIONS, lagrangian_radii, profile_of

DPI = 50

pytestmark = pytest.mark.usefixtures("no_warnings")


@pytest.fixture
def ball(write_run):
    """A run of 400 bodies in a ball that grows."""
    points = np.random.default_rng(3).normal(size=(400, 3))
    return write_run(positions=[points, 2 * points, 3 * points])


@pytest.fixture
def flat(write_run):
    """A run of 50 bodies in the unit square, and of their map of 4 x 4 cells."""
    points = np.random.default_rng(3).random((2, 50, 3)) * [1, 1, 0]
    maps = [
        np.histogram2d(y, x, bins=4, range=[[0, 1], [0, 1]])[0] * 4 / 50
        for x, y, _ in points.transpose(0, 2, 1)
    ]
    return write_run(positions=points, more={"activity/map": np.array(maps)})


def test_tracks_in_space(write_run):
    with open_run(write_run(frames=5)) as run:
        figure = figure_of("nbody", "tracks-3d")(run, 3)
        (axes,) = figure.axes
        paths = [
            np.transpose(line.get_data_3d())
            for line in axes.lines
            if len(line.get_data_3d()[0]) > 1
        ]
        np.testing.assert_array_equal(paths, run.positions(slice(0, 4)).swapaxes(0, 1))
        assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_zlabel()) == (
            "x (length)",
            "y (length)",
            "z (length)",
        )


def test_lagrangian_radii_over_time(ball, monkeypatch):
    monkeypatch.setattr(structure, "RADII_FRAMES", 2)
    with open_run(ball) as run:
        (axes,) = figure_of("nbody", "lagrangian")(run).axes
        assert len(axes.lines) == len(FRACTIONS)
        for line, column in zip(axes.lines, range(len(FRACTIONS)), strict=True):
            expected = [
                lagrangian_radii(run.positions(frame), run.mass)[column] for frame in (0, 2)
            ]
            np.testing.assert_array_equal(line.get_xydata(), np.column_stack([[0, 1], expected]))


def test_profiles_of_a_frame(ball):
    with open_run(ball) as run:
        left, right = figure_of("nbody", "profiles")(run, 1).axes
        found = profile_of(run.positions(1), run.velocities(1), run.mass)
        np.testing.assert_array_equal(
            left.lines[0].get_xydata(), np.column_stack([found.radius, found.density])
        )
        np.testing.assert_array_equal(right.lines[0].get_ydata(), found.dispersion)
        assert left.get_xlabel() == "distance (length)"
        assert right.get_ylabel() == "velocity dispersion\n(length / time)"


@pytest.mark.parametrize("frames", [{"every_body": 10}, {"ids": [1, 2]}])
def test_profiles_of_some_of_the_bodies(ball, monkeypatch, frames):
    """Each stands for those that frames leave out, unless they were chosen."""
    config = {"output": {"trajectory": frames}}
    monkeypatch.setattr(Run, "config", property(lambda run: config))
    with open_run(ball) as run:
        if "ids" in frames:
            with pytest.raises(InputError, match="the frames hold some bodies alone"):
                figure_of("nbody", "profiles")(run, 1)
            return
        left, _ = figure_of("nbody", "profiles")(run, 1).axes
        found = profile_of(run.positions(1), run.velocities(1), run.mass)
        np.testing.assert_allclose(left.lines[0].get_ydata(), 10 * found.density, rtol=1e-12)


def test_a_map_and_the_bodies_over_it_lie_on_each_other(flat):
    with open_run(flat) as run:
        axes = figure_of("nbody", "activity")(run, 0).axes[0]
        shown = axes.images[0].get_array()
        np.testing.assert_array_equal(shown, run.field("activity/map", 0))
        assert axes.images[0].get_extent() == [0, 1, 0, 1]
        dots = axes.collections[0].get_offsets()
        np.testing.assert_array_equal(dots, run.positions(0)[:, :2])
        column, row = (dots[7] * 4).astype(int)
        assert shown[row, column] > 0


def test_a_flat_run_is_drawn_by_default(flat):
    assert "activity.png" in [path.name for path in plot_run(flat, dpi=DPI)]


@pytest.mark.parametrize("kind", ["lagrangian", "profiles"])
def test_all_bodies_on_one_spot(write_run, kind):
    assert plot_run(write_run(positions=np.zeros((2, 300, 3))), kind, dpi=DPI)


@pytest.mark.parametrize("kind", ["tracks-3d", "lagrangian", "profiles"])
def test_pictures_are_of_the_right_width_and_not_cut_off(ball, write_run, kind):
    folder = write_run("few") if kind == "tracks-3d" else ball
    picture = np.asarray(
        Image.open(plot_run(folder, kind, "picture.png", dpi=60)[0]).convert("RGB")
    )
    assert picture.shape[1] == 7.2 * 60
    assert (picture[[0, -1]] == 255).all()
    assert (picture[:, [0, -1]] == 255).all()


def test_what_cannot_be_drawn_is_refused_with_the_reason(write_run, refused):
    write_run(bodies=40, frames=1)
    for kind, reason in {
        "tracks-3d": "too many bodies (40); tracks are drawn of at most 32",
        "lagrangian": "a single frame",
        "profiles": "40 bodies are too few; it takes 300",
        "activity": "the frames hold no activity map",
    }.items():
        assert refused(InputError, plot_run, "out", kind) == (
            f"out/trajectory.h5: no picture of kind '{kind}': {reason}"
        )
    write_run("flat", bodies=400, config="bodies: {kind: random-square}")
    assert refused(InputError, plot_run, "flat", "profiles").endswith(": the bodies lie in a plane")
    write_run(bodies=400)
    assert refused(InputError, plot_run, "out", "profiles", frame=5).startswith("frame 5: ")
