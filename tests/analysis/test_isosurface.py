"""Surfaces are closed, face outwards, and lie where the field has the level."""

import numpy as np
import pytest

from hybrid_nbody.analysis import volume
from hybrid_nbody.analysis.isosurface import coarse_means, isosurface
from hybrid_nbody.files.run import open_run

SIZE = (22, 24, 26)
CENTRE, RADIUS = np.array([12.0, 11.5, 10.2]), 7.0


def ball():
    """Return a field that falls with the distance from a point, and is 0 on a sphere."""
    z, y, x = np.indices(SIZE)
    return RADIUS - np.sqrt((x - CENTRE[0]) ** 2 + (y - CENTRE[1]) ** 2 + (z - CENTRE[2]) ** 2)


def edges_of(triangles):
    """Return the directed edges of all triangles: (3 F, 2)."""
    return np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])


def is_closed(triangles):
    """Whether each edge is walked once in each direction."""
    edges = {tuple(edge) for edge in edges_of(triangles).tolist()}
    return len(edges) == 3 * len(triangles) and edges == {(b, a) for a, b in edges}


def enclosed(vertices, triangles):
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    return (np.cross(a, b) * c).sum() / 6


def test_a_sphere():
    vertices, triangles = isosurface(ball(), 0.0)
    distance = np.linalg.norm(vertices - CENTRE, axis=1)
    # a chord of length 1.7 at most, of a circle of radius 7
    np.testing.assert_allclose(distance, RADIUS, atol=0.06)
    # positive: faces out
    assert enclosed(vertices, triangles) == pytest.approx(4 / 3 * np.pi * RADIUS**3, rel=0.015)
    assert is_closed(triangles)
    assert len(vertices) - len(edges_of(triangles)) // 2 + len(triangles) == 2  # Euler


def test_what_reaches_the_walls_is_closed_there():
    vertices, triangles = isosurface(np.ones((3, 4, 5)), 0.5)
    assert is_closed(triangles)
    assert (vertices > -1).all()
    assert (vertices < [5, 4, 3]).all()
    assert enclosed(vertices, triangles) > 2 * 3 * 4


def test_noise_is_closed_and_faces_outwards():
    values = np.random.default_rng(1).random((6, 5, 7))
    values[2, 2, 2] = np.nan
    vertices, triangles = isosurface(values, 0.6)
    assert is_closed(triangles)
    assert np.isfinite(vertices).all()
    assert enclosed(vertices, triangles) > 0


@pytest.mark.parametrize(
    "values", [np.zeros((3, 3, 3)), np.full((2, 2, 2), np.nan), np.full((1, 1, 1), -1.0)]
)
def test_nothing_above_the_level(values):
    vertices, triangles = isosurface(values, 1.0)
    assert (vertices.shape, triangles.shape) == ((0, 3), (0, 3))


def test_means_over_cubes_of_cells(write_fluid, monkeypatch):
    monkeypatch.setattr(volume, "BLOCK_BYTES", 1)  # plane by plane
    with open_run(write_fluid(cells=(6, 10, 5))) as run:
        means, width = coarse_means(run, "fluid/density", 1, 4)
        cells = run.field("fluid/density", 1).astype(np.float64)
    assert means.shape == (2, 4, 2)  # cubes of 3 cells, the last ones cut off by the walls
    np.testing.assert_allclose(means[0, 0, 0], cells[:3, :3, :3].mean(), rtol=1e-12)
    np.testing.assert_allclose(means[1, 3, 1], cells[3:, 9:, 3:].mean(), rtol=1e-12)
    np.testing.assert_allclose(width, 0.3, rtol=1e-12)
