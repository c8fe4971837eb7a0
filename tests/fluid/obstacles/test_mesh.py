"""Meshes: distances and openings against the shapes they stand for, files, what is not closed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.meshes import ball, cube, is_inside
from support.openings import ARRAYS
from support.openings import cube as openings_of

from hybrid_nbody.fluid.obstacles import Box, Sphere
from hybrid_nbody.fluid.obstacles.mesh import Mesh, volume
from hybrid_nbody.fluid.obstacles.stl import read_stl, write_stl

REST = (0.0, 0.0, 0.0)
TURN = (20.0, 30.0, 40.0)
POINTS = np.random.default_rng(1).random((2000, 3))


def test_a_cube_has_the_distances_of_a_box() -> None:
    mesh = Mesh.placed(cube(), 0.5, REST, (0.2, 0.25, 0.3))
    box = Box.between((0.2, 0.25, 0.3), (0.7, 0.75, 0.8))
    np.testing.assert_allclose(mesh.distance(POINTS), box.distance(POINTS), 0.0, 1e-15)
    assert mesh.middle == pytest.approx((0.45, 0.5, 0.55), rel=1e-15)


def test_a_cube_has_the_openings_of_a_box() -> None:
    """The box lies on the faces of cells, where both are exact."""
    mesh = Mesh.placed(cube(), 0.5, REST, (0.25, 0.125, 0.375))
    box = Box.between((0.25, 0.125, 0.375), (0.75, 0.625, 0.875))
    found, expected = openings_of([mesh], 8), openings_of([box], 8)
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), 0.0, 1e-12, name)


def test_a_turned_cube_that_moves_and_turns_is_a_box_that_does() -> None:
    centred = cube() - 0.5
    placed = Mesh.placed(centred, 0.3, TURN, (0.5, 0.45, 0.4))
    motion = {"velocity": (0.1, 0.2, -0.1), "rotation": (1.0, 2.0, 3.0)}
    mesh = Mesh(placed.triangles, **motion)
    box = Box((0.5, 0.45, 0.4), (0.3, 0.3, 0.3), TURN, **motion)
    for time in (0.0, 0.7):
        found = mesh.signed_distance(POINTS, time)
        np.testing.assert_allclose(found, box.signed_distance(POINTS, time), 0.0, 1e-14)
    np.testing.assert_allclose(
        mesh.velocity_at(POINTS, 0.7), box.velocity_at(POINTS, 0.7), 1e-13, 1e-13
    )


def test_a_fine_ball_is_a_sphere() -> None:
    """A face of which less than 0.01 is open is closed, so that two may differ by that."""
    mesh = Mesh.placed(ball(5), 0.23, REST, (0.5, 0.52, 0.47))
    found, expected = openings_of([mesh], 16), openings_of([Sphere((0.5, 0.52, 0.47), 0.23)], 16)
    for name in ARRAYS[:4]:
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), 0.0, 0.012, err_msg=name
        )


def test_a_mesh_that_is_inside_out_is_the_same_solid() -> None:
    mesh = Mesh(cube())
    turned = Mesh(cube()[:, ::-1])
    np.testing.assert_array_equal(mesh.distance(POINTS) < 0.0, True)
    np.testing.assert_allclose(turned.distance(POINTS), mesh.distance(POINTS), 0.0, 1e-15)


def test_a_hollow_is_fluid() -> None:
    hollow = 0.5 * (cube()[:, ::-1] - 0.5) + 0.5
    mesh = Mesh(np.concatenate((cube(), hollow)))
    points = np.array([[0.5, 0.5, 0.5], [0.1, 0.5, 0.5], [-0.2, 0.5, 0.5]])
    np.testing.assert_allclose(mesh.distance(points), [0.25, -0.1, 0.2], 0.0, 1e-15)


def test_a_mesh_with_spikes_has_the_inside_of_its_solid_angles() -> None:
    """Near its corners, whose normals are those of triangles of any shape, weighted by angles."""
    triangles = ball(2)
    corners, ids = np.unique(triangles.reshape(-1, 3), axis=0, return_inverse=True)
    random = np.random.default_rng(5)
    corners = corners * random.uniform(0.1, 1.0, (len(corners), 1))
    triangles = corners[ids].reshape(-1, 3, 3)
    points = (corners[:, None] + random.normal(0.0, 0.05, (len(corners), 40, 3))).reshape(-1, 3)
    inside = is_inside(triangles, points)
    assert 0.1 < inside.mean() < 0.9
    np.testing.assert_array_equal(Mesh(triangles).distance(points) < 0.0, inside)


def test_volume() -> None:
    assert volume(cube() + 5.0) == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize(
    ("triangles", "words"),
    [
        (cube()[1:], "3 of its edges"),
        (cube()[2:], "4 of its edges"),
        (np.concatenate((cube()[:1, ::-1], cube()[1:])), "3 of its edges"),
        (np.zeros((4, 3, 3)), "has no triangle with three different corners"),
        (np.concatenate((cube()[:1], cube()[:1, ::-1])), "has no volume"),
    ],
)
def test_what_is_not_closed_is_refused(triangles, words) -> None:
    with pytest.raises(ValueError, match=words):
        Mesh(triangles)


# --- files ----------------------------------------------------------------------------------------


def as_text(triangles) -> str:
    """Return the triangles as a file of text."""
    lines = ["solid it"]
    for corners in triangles:
        lines += ["facet normal 0 0 0", " outer loop"]
        lines += [f"  vertex {x:.9e} {y:.9e} {z:.9e}" for x, y, z in corners]
        lines += [" endloop", "endfacet"]
    return "\n".join([*lines, "endsolid it", ""])


def test_files_of_both_kinds(tmp_path) -> None:
    triangles = ball(1).astype(np.float32).astype(np.float64)
    write_stl(tmp_path / "binary.stl", triangles)
    (tmp_path / "text.stl").write_text(as_text(triangles))
    np.testing.assert_array_equal(read_stl(tmp_path / "binary.stl"), triangles)
    np.testing.assert_allclose(read_stl(tmp_path / "text.stl"), triangles, 0.0, 1e-9)
    Mesh(read_stl(tmp_path / "text.stl"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no STL file"),
        (b"\x7fELF" + bytes(200), "is no STL file"),
        (bytes(84), "has no triangles"),
        (b"solid it\nendsolid it\n", "has no triangles"),
        (b"solid\nvertex 0 0 0\nvertex 1 0 0\n", "is cut off: it has 2 corners"),
        (b"solid\nvertex 0 0 0\nvertex 1 0 0\nvertex 1 0", "is cut off: it has 3 corners"),
        (b"solid\nvertex 0 0 0\nvertex 1 0 x\nvertex 1 1 1\n", "without three numbers"),
        (b"solid\nvertex 0 0 0\nvertex 1 0 nan\nvertex 1 1 1\n", "not finite, in triangle 1"),
    ],
)
def test_a_bad_file_is_refused(content, words, tmp_path) -> None:
    (tmp_path / "bad.stl").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_stl(tmp_path / "bad.stl")


def test_the_hull_of_the_example_is_closed(tmp_path) -> None:
    script = Path(__file__).parents[3] / "run_scripts" / "hull.py"
    subprocess.run([sys.executable, script, tmp_path / "hull.stl"], check=True)
    mesh = Mesh(read_stl(tmp_path / "hull.stl"))
    assert volume(mesh.triangles) > 0.0
    assert mesh.distance(np.array([[0.5, 0.25, 0.23]]))[0] < 0.0
