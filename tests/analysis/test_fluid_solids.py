"""Obstacles are drawn where they are at the time of the frame."""

import h5py
import numpy as np
import pytest
from PIL import Image
from support.presented import export_run, make_movie, plot_run

from hybrid_nbody.analysis import scenes
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.cells import volume_of
from hybrid_nbody.files.run import open_run
from hybrid_nbody.fluid.figures import solids
from hybrid_nbody.fluid.figures.fields import plane_of, scalars_of, units_of
from hybrid_nbody.fluid.figures.overlay import FILL, colours_of_solid

CELLS = (16, 16, 16)
BALL = {"sphere": {"centre": [0.3, 0.5, 0.5], "radius": 0.2}, "velocity": [0.3, 0, 0]}
SETTINGS = {"model": "fluid", "fluid": {"grid": "staggered"}, "time": {"dt": 0.1, "steps": 10}}
GREY = np.round(255 * np.array(FILL)).astype(int)


@pytest.fixture
def with_obstacles(write_fluid):
    """Return a function that writes a run with obstacles; its frames are at times 0 and 1."""

    def write(*obstacles, name="smoke", fields=("density", "velocity")):
        settings = SETTINGS | {"obstacles": list(obstacles), "output": {"directory": "out"}}
        return write_fluid(name, cells=CELLS, fields=fields, settings=settings)

    return write


@pytest.mark.parametrize(("frame", "middle"), [(0, 0.3), (1, 0.6)])
def test_a_ball_is_where_it_has_moved(with_obstacles, monkeypatch, frame, middle):
    monkeypatch.setattr(solids, "PIXELS", 96)
    with open_run(with_obstacles(BALL)) as run:
        found = solids.Solids(run)
        volume = volume_of(run, "fluid/density")
        plane = found.in_plane(volume, frame, 2, 0.5)
        seen = found.through(volume, frame, 1)
        share = found.share(frame, slice(2, 14))
    for distances in (plane, seen):  # a disc, looked at from anywhere
        where = np.argwhere(distances < 0.0)
        centre = (where.mean(axis=0) + 0.5) / len(distances)
        np.testing.assert_allclose(centre, [0.5, middle], rtol=0, atol=5e-3)
        area = len(where) / distances.size
        np.testing.assert_allclose(area, np.pi * 0.2**2, rtol=0.05, atol=0)
    np.testing.assert_allclose(share.sum() / 16**3, 4 / 3 * np.pi * 0.2**3, rtol=0.03, atol=0)


def test_colours_end_at_the_surface():
    colours = colours_of_solid(np.array([[-0.1, 0.0, 0.1]]), 0.01)
    np.testing.assert_allclose(colours[0, :, 3], [1, 1, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(colours[0, 0, :3], FILL, rtol=0, atol=1e-12)
    assert colours[0, 1, :3].max() < 0.5  # the outline


def grey(picture):
    """Return which pixels have the colour of obstacles."""
    return np.abs(np.asarray(picture.convert("RGB")).astype(int) - GREY).max(axis=-1) < 4


def test_pictures_show_the_obstacle(with_obstacles):
    counts = []
    for name, kind, obstacles in (("with", "streamlines", [BALL]), ("without", "slices", [])):
        (path,) = plot_run(with_obstacles(*obstacles, name=name), kind=kind, dpi=50)
        counts.append(grey(Image.open(path)).sum())
    assert counts[0] > 500
    assert counts[1] < 200  # letters: older versions of Matplotlib smooth them more


def test_a_movie_moves_the_obstacle(with_obstacles, monkeypatch):
    monkeypatch.setattr(scenes, "DPI", 40)
    path = make_movie(with_obstacles(BALL), "movie.gif", field="speed")
    middles = []
    with Image.open(path) as movie:
        for frame in range(2):
            movie.seek(frame)
            middles.append(np.argwhere(grey(movie))[:, 1].mean())
    assert middles[1] > middles[0] + 20


def test_what_cannot_be_drawn_is_said_in_a_line(with_obstacles):
    for obstacle in ({"mesh": {"file": "gone.stl"}}, {"python": "own.py:shape"}):
        path = with_obstacles(obstacle)
        with open_run(path) as run, pytest.warns(UserWarning, match="is not drawn: ") as said:
            assert not solids.Solids(run)
        assert "\n" not in str(said[0].message)


def test_a_scalar_is_a_field_by_its_name(with_obstacles):
    path = with_obstacles(fields=("density", "velocity", "temperature"))
    (picture,) = plot_run(path, kind="slices", field="temperature", dpi=30)
    assert picture.name == "slices-temperature.png"
    assert make_movie(path, "movie.gif", field="temperature").is_file()
    with open_run(path) as run:
        assert scalars_of(run) == ["temperature"]
    with pytest.raises(InputError, match=r"no pictures of field 'temp'.*temperature"):
        plot_run(path, field="temp")


def test_the_q_criterion_of_a_solid_rotation_is_the_square_of_its_rate(write_fluid):
    z, y, x = np.meshgrid(*[(np.arange(8) + 0.5) / 8] * 3, indexing="ij")
    turning = np.stack([-3 * y, 3 * x, 0 * z], axis=-1)
    strain = np.stack([3 * x, -3 * y, 0 * z], axis=-1)
    path = write_fluid(cells=(8, 8, 8), velocity=np.stack([turning, strain]))
    with open_run(path) as run:
        first, second = (plane_of(run, "q_criterion", frame, 2, 4) for frame in (0, 1))
        assert units_of(run, "q_criterion") == "1 / time^2"
    np.testing.assert_allclose(first, 9, rtol=1e-5, atol=0)
    np.testing.assert_allclose(second, -9, rtol=1e-5, atol=0)


@pytest.mark.parametrize("format", ["npz", "vtkhdf"])
def test_exports_hold_the_solid_share_and_all_scalars(with_obstacles, format):
    path = with_obstacles(BALL, fields=("velocity", "temperature"))
    target = export_run(path, format, f"out.{format}", "all")
    with open_run(path) as run:
        expected = solids.Solids(run).share(1, slice(0, 16))
        temperature = run.field("fluid/temperature", 1)
    if format == "npz":
        found = dict(np.load(target))
    else:
        with h5py.File(target) as file:
            found = {name: values[:] for name, values in file["VTKHDF/CellData"].items()}
    assert found["solid"].dtype == np.float32
    np.testing.assert_array_equal(found["solid"][1], expected)
    np.testing.assert_array_equal(found["temperature"][1], temperature)
    assert found["solid"][0].argmax() != found["solid"][1].argmax()


def test_a_checkpoint_with_velocities_at_faces_is_refused(write_fluid_checkpoint, seal, refused):
    path = write_fluid_checkpoint()
    with h5py.File(path, "r+") as file:
        for name in ("state/u", "state/v", "state/w"):
            values = np.pad(file[name][:], ((0, 0), (0, 1), (0, 1)))
            del file[name]
            file[name] = values
    seal(path)
    line = refused(InputError, export_run, path, "npz", "out.npz")
    assert line.endswith("whose velocities are at faces of cells; export a frame of the trajectory")
