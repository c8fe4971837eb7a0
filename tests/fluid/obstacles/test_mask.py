"""Masks: staircases close the faces of solid cells, shares give a smooth surface; bad files."""

import math

import numpy as np
import pytest
from support.openings import INNER
from support.openings import cube as openings_of

from hybrid_nbody.fluid.obstacles import Mesh, Openings, Sphere, openings
from hybrid_nbody.fluid.obstacles.mask import read_mask, triangles_of
from hybrid_nbody.fluid.obstacles.mesh import volume

RANDOM = np.random.default_rng(3)


def staircase_of(solid: np.ndarray) -> Openings:
    """Return the openings that a mask must have, without ghosts."""
    padded = np.pad(solid, ((1, 0),) * 3)
    open_faces = {}
    for name, axis in (("x", 2), ("y", 1), ("z", 0)):
        lower = np.roll(padded, 1, axis)
        open_faces[name] = 1.0 - (padded | lower)[1:, 1:, 1:]
    return Openings(volume=1.0 - solid, owner=np.zeros(solid.shape, np.int32), **open_faces)


@pytest.mark.parametrize("share", [0.03, 0.4])
def test_a_mask_of_0_and_1_closes_the_faces_of_its_solid_cells(share: float) -> None:
    """So do cells that touch at an edge or at a corner only."""
    solid = RANDOM.random((6, 9, 12)) < share
    mesh = Mesh(triangles_of(solid.astype(np.float64)))
    found, expected = openings((mesh,), (12, 9, 6), 0, 6, 0.0), staircase_of(solid)
    for name in ("x", "y", "z"):
        np.testing.assert_allclose(
            getattr(found, name)[INNER], getattr(expected, name), 0.0, 1e-12, err_msg=name
        )
    np.testing.assert_array_equal(found.volume[INNER][solid], 0.0)
    shut_in = staircase_volume(expected)
    np.testing.assert_allclose(found.volume[INNER], shut_in, 0.0, 1e-12)


def staircase_volume(expected: Openings) -> np.ndarray:
    """Return 1 for each fluid cell with an open face; those beyond the box are open."""
    faces = [expected.x, expected.y, expected.z]
    beyond = [
        np.concatenate((np.take(face, range(1, face.shape[axis]), axis), last), axis)
        for face, axis in zip(faces, (2, 1, 0), strict=True)
        for last in [np.take(expected.volume, [-1], axis)]
    ]
    return expected.volume * (np.maximum.reduce([*faces, *beyond]) > 0.0)


def test_random_shares_have_a_closed_surface() -> None:
    """Shares of one half and of 0 and 1 among them."""
    shares = np.round(RANDOM.random((5, 6, 7)), 1)
    assert volume(Mesh(triangles_of(shares)).triangles) > 0.0


def test_a_wall_within_cells_is_where_the_shares_say() -> None:
    shares = np.zeros((8, 8, 8))
    shares[2:6, 2:6, 2:5] = 1.0
    shares[2:6, 2:6, 5] = 0.25
    found = openings_of([Mesh(triangles_of(shares))], 8)
    middle = (slice(4, 6), slice(4, 6))
    surface = 4.5 + 0.5 / 0.75
    np.testing.assert_allclose(found.y[middle][..., 6], 6.0 - surface, 0.0, 1e-12)
    np.testing.assert_array_equal(found.x[middle][..., 6:8], [[[0.0, 1.0]] * 2] * 2)


def test_shares_of_a_ball_are_a_ball() -> None:
    """Within half a cell, and a tenth of one on average."""
    ball = Sphere((0.5, 0.52, 0.47), 0.3)
    shares = 1.0 - openings_of([ball], 24).volume[INNER]
    mesh = Mesh(triangles_of(shares))
    assert volume(mesh.triangles) == pytest.approx(4 / 3 * math.pi * 0.3**3, rel=0.02)
    errors = np.abs(ball.distance(mesh.triangles.reshape(-1, 3)))
    assert errors.max() < 0.5 / 24
    assert errors.mean() < 0.12 / 24


# --- files ----------------------------------------------------------------------------------------

CELLS = (4, 3, 2)
FULL = np.ones((2, 3, 4))


@pytest.mark.parametrize("mask", [FULL > 0, FULL.astype(np.uint8), 0.5 * FULL, FULL])
def test_good_files(mask, tmp_path) -> None:
    np.save(tmp_path / "mask.npy", mask)
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.npy", CELLS), mask)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (FULL.T, r"has the shape \(4, 3, 2\); the grid has \(nz, ny, nx\) = \(2, 3, 4\)"),
        (FULL * 1j, "holds complex128"),
        (FULL * np.nan, r"is nan at \[0, 0, 0\]"),
        (FULL * 255, r"is 255 at \[0, 0, 0\]; must be from 0 to 1"),
        (FULL * 0.0, "has no solid cell"),
    ],
)
def test_bad_arrays(mask, words, tmp_path) -> None:
    np.save(tmp_path / "mask.npy", mask)
    with pytest.raises(ValueError, match=words):
        read_mask(tmp_path / "mask.npy", CELLS)


def test_other_files(tmp_path) -> None:
    (tmp_path / "text.npy").write_text("0 1 0")
    with pytest.raises(ValueError, match="is no array"):
        read_mask(tmp_path / "text.npy", CELLS)
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**20, 3)}
    with (tmp_path / "huge.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(ValueError, match="is no array"):
        read_mask(tmp_path / "huge.npy", CELLS)
    np.savez(tmp_path / "some.npz", mask=FULL)
    with pytest.raises(ValueError, match="holds several arrays"):
        read_mask(tmp_path / "some.npz", CELLS)
