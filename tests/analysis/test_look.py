"""The look of movies: sizes, colours, planes and cameras, and how long they last."""

import json

import numpy as np
import pytest
from PIL import Image
from support.presented import kinds_of, make_movie, scene_of

from hybrid_nbody.analysis import movie, scenes
from hybrid_nbody.analysis.look import Camera, look_of
from hybrid_nbody.analysis.style import our_look
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run
from hybrid_nbody.nbody.figures import scenes as body_scenes

pytestmark = pytest.mark.usefixtures("no_warnings")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(scenes, "DPI", 40)


@pytest.fixture
def cloud(write_run):
    points = np.random.default_rng(3).normal(size=(60, 3)) * [1, 2, 3]
    return write_run(positions=[points + [step / 10, 0, 0] for step in range(4)])


def shown(run, kind, frame, **look):
    """Return the scene of a movie of all frames, which shows one of them."""
    with our_look():
        scene = scene_of(run, kind, range(run.number_of_frames), **look)
        scene.render(frame)
        return scene


def offsets(scene):
    return np.sort(np.asarray(scene.dots.get_offsets()), axis=0)


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, message",
    [
        ({"size": "1280"}, "--size 1280: must be WIDTHxHEIGHT in pixels, such as 1280x720"),
        ({"size": "641x480"}, "--size 641x480: .* both even and from 64 to 7680"),
        ({"size": "32x32"}, "--size 32x32: .* from 64"),
        ({"colormap": "virids"}, "--colormap virids: .*; did you mean 'viridis'?"),
        ({"plane": "xx"}, "--plane xx: must be two axes, across and up"),
        ({"plane": "xyz"}, "--plane xyz: must be two axes"),
        ({"range": "1"}, "--range 1: must be LOW,HIGH"),
        ({"range": "2,1"}, "--range 2,1: must be LOW,HIGH with LOW below HIGH"),
        ({"range": "0,nan"}, "--range 0,nan: must be LOW,HIGH"),
        ({"camera": "10"}, "--camera 10: must be AZIMUTH,ELEVATION"),
        ({"camera": "10,91"}, "--camera 10,91: .*elevation from -90 to 90"),
        ({"camera": "10,20", "plane": "xy"}, "--plane and --camera: give one of them"),
    ],
)
def test_what_is_no_look(words, message):
    with pytest.raises(InputError, match=f"^{message}"):
        look_of(**words)


# --- bodies ---------------------------------------------------------------------------------------


def test_the_size_of_a_movie(cloud):
    with Image.open(make_movie(cloud, "movie.gif", look=look_of(size="202x98"))) as found:
        assert found.size == (202, 98)


def test_bodies_in_another_plane(cloud):
    with open_run(cloud) as run:
        scene = shown(run, "bodies", 2, plane="zx")
        expected = np.sort(run.positions(2)[:, [2, 0]], axis=0)
        np.testing.assert_allclose(offsets(scene), expected, rtol=1e-12, atol=0)
        assert (scene.axes.get_xlabel(), scene.axes.get_ylabel()) == ("z (length)", "x (length)")


def test_more_bodies_are_counted_in_another_plane(cloud, monkeypatch):
    monkeypatch.setattr(body_scenes, "DOTS", 10)
    with open_run(cloud) as run:
        image = shown(run, "bodies", 2, plane="yz").image
        points = run.positions(2)
        left, right, bottom, top = image.get_extent()
        cells = image.get_array().shape[0]
        y = ((points[:, 1] - left) / (right - left) * cells).astype(int)
        z = ((points[:, 2] - bottom) / (top - bottom) * cells).astype(int)
        drawn = np.argwhere(~np.ma.getmaskarray(image.get_array()))  # rows are z
        assert set(map(tuple, drawn)) == set(zip(z.tolist(), y.tolist(), strict=True))


def test_a_camera_from_above_sees_the_plane(cloud):
    with open_run(cloud) as run:
        scene = shown(run, "bodies", 3, camera="-90,90")
        points = run.positions(3) - scene.eye.centre
        expected = np.sort(points[scene.view.contains(points)][:, :2], axis=0)
        np.testing.assert_allclose(offsets(scene), expected, rtol=0, atol=1e-12)


def test_axes_of_a_camera():
    across, up, towards = Camera(0, 0).axes(0).T
    np.testing.assert_allclose([across, up, towards], np.eye(3)[[1, 2, 0]], rtol=0, atol=1e-15)
    turned = Camera(30, 20, 180).axes(0.5)
    np.testing.assert_allclose(turned, Camera(120, 20).axes(0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(turned.T @ turned, np.eye(3), rtol=0, atol=1e-15)
    assert np.linalg.det(turned) == pytest.approx(1, abs=1e-12)


def test_paths_turn_with_the_camera(write_run):
    with open_run(write_run(positions=np.ones((3, 2, 3)) * [[1, 0, 0], [-1, 0, 0]])) as run:
        with our_look():
            scene = scene_of(run, "bodies", range(3), camera="0,0,180")
            ends = []
            for frame in range(3):
                scene.render(frame)
                ends.append(scene.lines[0].get_xydata())
        np.testing.assert_allclose(ends[1][:, 0], [-1, -1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(ends[2][:, 0], [0, 0, 0], rtol=0, atol=1e-12)


def test_colours_and_their_range(cloud):
    with open_run(cloud) as run:
        scene = shown(run, "bodies", 0, colormap="magma", range="0.5,40")
        assert scene.dots.get_cmap().name == "magma"
        assert (scene.dots.norm.vmin, scene.dots.norm.vmax) == (0.5, 40)
        with pytest.raises(InputError, match="--range 0,1: LOW must be above 0"):
            shown(run, "bodies", 0, range="0,1")


@pytest.mark.parametrize("option", [{"colormap": "magma"}, {"range": "1,2"}])
def test_few_bodies_have_their_own_colours(write_run, option):
    with open_run(write_run()) as run, pytest.raises(InputError, match="colours of their own"):
        shown(run, "bodies", 0, **option)


@pytest.mark.parametrize(("narrow", "sizes"), [(slice(20), [30, 20]), (slice(20, 50), [20, 30])])
def test_a_movie_of_components(write_run, narrow, sizes):
    """What is narrow is drawn last, and seen."""
    bodies = [{"kind": "plummer", "n": 30, "name": "near"}, {"kind": "plummer", "n": 30}]
    points = np.random.default_rng(3).normal(size=(2, 50, 3))  # with the ids 10 to 59
    points[:, narrow] *= 0.2
    folder = write_run(positions=points, config=json.dumps({"bodies": bodies}))
    with open_run(folder) as run:
        assert kinds_of(run) == ["bodies", "components"]
        scene = shown(run, "components", 1)
        assert [len(dots.get_offsets()) for dots in scene.dots] == sizes
        names = [text.get_text() for text in scene.figure.legends[0].get_texts()]
        assert names == ["near", "1 plummer"]


# --- fluids ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("plane, axis", [("xy", 2), ("xz", 1), ("zx", 1), ("zy", 0), ("yz", 0)])
def test_a_fluid_in_a_plane(write_fluid, plane, axis):
    with open_run(write_fluid()) as run:
        scene = shown(run, "fluid", 1, plane=plane, colormap="gray", range="0,2")
        expected = run.field("fluid/density", 1).astype(float).sum(axis=2 - axis) / 16
        upright = expected if sorted(plane) == list(plane) else expected.T
        np.testing.assert_allclose(scene.image.get_array(), upright, rtol=1e-12, atol=1e-15)
        assert scene.axes.get_xlabel() == f"{plane[0]} (length)"
        assert scene.image.get_cmap().name == "gray"
        assert (scene.image.norm.vmin, scene.image.norm.vmax) == (0, 2)


def test_what_a_fluid_cannot_show(write_fluid):
    with open_run(write_fluid(planes=[1, 3])) as run:
        with pytest.raises(InputError, match="--camera: a fluid is shown in a plane"):
            shown(run, "fluid", 0, camera="0,0")
        with pytest.raises(InputError, match="--plane: .* holds a few planes of z only; take xy"):
            shown(run, "fluid", 0, plane="xz")


# --- how long it lasts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frames, options, stride, fps",
    [
        (200, {}, 1, 20),
        (5, {}, 1, 2),
        (601, {}, 2, 30.1),
        (5000, {}, 9, 55.6),
        (5000, {"fps": 25}, 1, 25),
        (5000, {"every": 1}, 1, 60),
        (50, {"duration": 2}, 1, 25),
    ],
)
def test_movies_last_about_ten_seconds(frames, options, stride, fps):
    chosen = movie.MovieOptions(**options)
    assert movie._stride(chosen, frames) == stride
    left = len(range(0, frames, stride))
    assert movie._speed(chosen, left, stride) == pytest.approx(fps, rel=1e-12)
