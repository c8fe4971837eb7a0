"""Movies have as many frames as the run, each shows its own time, and none is kept in memory."""

import shutil
import subprocess
import weakref

import numpy as np
import pytest
from PIL import Image
from support.presented import kinds_of, make_movie, scene_of

from hybrid_nbody.analysis import encoders, scenes
from hybrid_nbody.analysis.style import our_look
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.nbody.figures import scenes as body_scenes

needs_ffmpeg = pytest.mark.skipif(not encoders.has_ffmpeg(), reason="ffmpeg is not on the PATH")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(scenes, "DPI", 40)


@pytest.fixture
def cluster(write_run):
    """Return a run of four frames in which 60 bodies wander to the right."""
    points = np.random.default_rng(3).normal(size=(60, 3))
    return write_run(positions=[points + [step, 0, 0] for step in range(4)])


@pytest.fixture
def flat(write_run):
    points = np.random.default_rng(3).random((3, 50, 3))
    maps = np.arange(3 * 16).reshape(3, 4, 4) / 50
    return write_run("flat", positions=points, more={"activity/map": maps})


def pictures_of(path):
    """Return all frames of a GIF as arrays, and the hundredths of a second that each stays."""
    with Image.open(path) as movie:
        frames, hundredths = [], []
        for index in range(movie.n_frames):
            movie.seek(index)
            frames.append(np.asarray(movie.convert("RGB")).astype(int))
            hundredths.append(movie.info["duration"] // 10)
        return frames, hundredths


def test_a_gif_of_all_frames(cluster):
    calls = []
    path = make_movie(cluster, "movie.gif", fps=10, progress=lambda *numbers: calls.append(numbers))
    frames, hundredths = pictures_of(path)
    assert len(frames) == 4
    assert hundredths == [10] * 4
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    for one, next_one in zip(frames, frames[1:], strict=False):
        assert (one != next_one).any(axis=2).sum() > 50
    assert (frames[0] > 250).all(axis=2).mean() > 0.3  # paper is white
    assert [entry.name for entry in cluster.parent.iterdir() if entry.name.startswith(".")] == []


def test_every_other_frame_shows_the_same_as_in_the_whole_movie(cluster):
    whole, _ = pictures_of(make_movie(cluster, "whole.gif"))
    some, _ = pictures_of(make_movie(cluster, "some.gif", every=3))
    assert len(some) == 2
    # of 255: the scale of colours comes from other frames
    assert np.abs(some[0] - whole[0]).mean() < 1.5


@needs_ffmpeg
def test_an_mp4(cluster):
    path = make_movie(cluster, fps=5)
    assert path.name == "movie.mp4"
    entries = "stream=nb_read_frames,width,height,avg_frame_rate"
    command = [
        "ffprobe",
        "-v",
        "error",
        "-count_frames",
        "-show_entries",
        entries,
        "-of",
        "csv=p=0",
        str(path),
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    assert found == "256,224,5/1,4"


def rendered(run, kind, frames):
    """Return the frames as a scene draws them, and the scene."""
    with our_look():
        scene = scene_of(run, kind, frames)
        return [scene.render(frame).copy() for frame in frames], scene


def test_few_bodies_draw_their_tails(write_run):
    turn = np.linspace(0, 3, 30)
    one = np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=-1)
    with open_run(write_run(positions=np.stack([one, -one], axis=1))) as run:
        _, scene = rendered(run, "bodies", range(0, 5))
        expected = run.positions(slice(0, 5))[:, :, :2]
        for body, line in enumerate(scene.lines):
            np.testing.assert_allclose(line.get_xydata(), expected[:, body], rtol=1e-12)


def test_many_bodies_are_dots_and_more_are_counted(cluster, monkeypatch):
    with open_run(cluster) as run:
        _, scene = rendered(run, "bodies", range(4))
        offsets = np.asarray(scene.dots.get_offsets())
        shown = run.positions(3)[scene.view.contains(run.positions(3))][:, :2]
        assert sorted(offsets.tolist()) == sorted((shown / 10.0**scene.view.power).tolist())
        monkeypatch.setattr(body_scenes, "DOTS", 10)
        _, scene = rendered(run, "bodies", range(4))
        left, right, bottom, top = scene.view.extent((0, 1))
        area = (right - left) * (top - bottom) / scene.image.get_array().size
        assert scene.image.get_array().sum() * area == pytest.approx(len(shown), rel=1e-12)


def test_nothing_of_the_frame_before_is_left(cluster):
    with open_run(cluster) as run:
        (first, _, again), _ = rendered(run, "bodies", (0, 3, 0))
        np.testing.assert_array_equal(first, again)


def test_an_activity_map_and_a_fluid(flat, write_fluid):
    with open_run(flat) as run:
        frames, scene = rendered(run, "activity", range(3))
        np.testing.assert_array_equal(scene.image.get_array(), run.field("activity/map", 2))
        np.testing.assert_array_equal(scene.dots.get_offsets(), run.positions(2)[:, :2])
        assert scene.image.norm.vmax == run.field("activity/map", 2).max()
        assert (frames[0] != frames[2]).any()
    with open_run(write_fluid()) as run:
        _, scene = rendered(run, "fluid", range(2))
        density = run.field("fluid/density", 1).astype(np.float64)
        np.testing.assert_allclose(scene.image.get_array(), density.sum(axis=0) / 16, rtol=1e-12)


def test_chosen_planes_of_a_fluid_show_the_middle_one(write_fluid):
    with open_run(write_fluid(planes=[1, 3, 7])) as run:
        _, scene = rendered(run, "fluid", range(2))
        np.testing.assert_array_equal(scene.image.get_array(), run.field("fluid/density", 1)[1])


def test_the_kind_by_default(flat, write_fluid):
    with open_run(flat) as run:
        assert kinds_of(run) == ["activity", "bodies"]
    with open_run(write_fluid()) as run:
        assert kinds_of(run) == ["fluid"]


def test_frames_do_not_stay_in_memory(write_run, monkeypatch):
    write_run(positions=np.random.default_rng(3).normal(size=(40, 50, 3)))
    read, alive = [], []

    def positions(run, frame):
        found = run.field("bodies/position", frame)
        read.append(weakref.ref(found))
        alive.append(sum(one() is not None for one in read))
        return found

    monkeypatch.setattr(Run, "positions", positions)
    make_movie("out", "movie.gif")
    assert len(alive) > 40
    assert max(alive) <= 2  # the one just read, and the one before


# --- refusals -------------------------------------------------------------------------------------


def test_what_cannot_be_filmed(write_run, refused, monkeypatch):
    write_run()
    assert refused(InputError, make_movie, "out", "movie.avi") == (
        "movie.avi: neither an existing directory nor a file ending in .mp4 or .gif"
    )
    assert refused(InputError, make_movie, "out", "movie.gif", "fluid") == (
        "out/trajectory.h5: no movie of kind 'fluid' in this run of model 'nbody'; there is bodies"
    )
    assert refused(InputError, make_movie, "out", fps=0).startswith(
        "--fps 0: must be greater than 0"
    )
    assert refused(InputError, make_movie, "out", every=0) == "--every 0: must be at least 1"
    assert refused(FileError, make_movie, "out", "nowhere/movie.gif") == (
        "nowhere/movie.gif: cannot write the movie (no such directory: nowhere)"
    )
    write_run("early", frames=0)
    assert (
        refused(InputError, make_movie, "early")
        == "early/trajectory.h5: no frames to make a movie of"
    )
    monkeypatch.setattr(encoders.shutil, "which", lambda name: None)
    assert "an MP4 needs ffmpeg, which is not on the PATH" in refused(
        InputError, make_movie, "out", "movie.mp4"
    )
    assert make_movie("out").name == "movie.gif"


def test_a_movie_that_breaks_costs_no_earlier_one(cluster, monkeypatch):
    path = make_movie(cluster, "movie.gif")
    before = path.read_bytes()

    def full(self, pixels):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(encoders.Gif, "add", full)
    with pytest.raises(
        FileError, match=r"movie.gif: cannot write the movie \(No space left on device\)"
    ):
        make_movie(cluster, "movie.gif")
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in cluster.parent.iterdir()) == ["movie.gif", "out"]


@needs_ffmpeg
def test_ffmpeg_that_fails_is_quoted(cluster, monkeypatch):
    program = shutil.which("ffmpeg")
    monkeypatch.setattr(
        encoders, "_command", lambda *arguments: [program, "-loglevel", "error", "-no-such-option"]
    )
    with pytest.raises(FileError, match="^movie.mp4: cannot write the movie .*no-such-option"):
        make_movie(cluster, "movie.mp4")
