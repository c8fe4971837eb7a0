"""Distances to many triangles are those to the nearest of them, wherever the search starts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.meshes import ball, distances, is_inside

from hybrid_nbody.fluid.obstacles import Mesh
from hybrid_nbody.fluid.obstacles.mask import triangles_of

SEEDS = st.integers(0, 2**32 - 1)


def stairs(random: np.random.Generator) -> np.ndarray:
    """Return the surface of cells that are solid or not."""
    solid = random.random((5, 4, 6)) < random.uniform(0.05, 0.5)
    solid[0, 0, 0] = True
    return triangles_of(solid.astype(np.float64))


def smooth(random: np.random.Generator) -> np.ndarray:
    """Return the surface of shares of cells, none of which is one half."""
    shares = random.integers(0, 10, (3, 4, 3)) / 9.0
    shares[0, 0, 0] = 1.0
    return triangles_of(shares)


def spikes(random: np.random.Generator) -> np.ndarray:
    """Return a ball whose corners are at random distances, with triangles of all sizes."""
    triangles = ball(3)
    corners, ids = np.unique(triangles.reshape(-1, 3), axis=0, return_inverse=True)
    corners *= 0.3 * random.uniform(0.01, 1.0, (len(corners), 1)) ** random.integers(0, 3)
    return 0.5 + corners[ids].reshape(-1, 3, 3)


@pytest.mark.parametrize("surface", [stairs, smooth, spikes])
@settings(max_examples=8, deadline=None)
@given(seed=SEEDS)
def test_a_distance_is_that_to_the_nearest_triangle(surface, seed) -> None:
    """The points are as near as rounding errors, or as far as the box is wide."""
    random = np.random.default_rng(seed)
    triangles = surface(random)
    places = random.choice(triangles.mean(axis=1), 30)
    points = places + random.normal(0.0, 1.0, (30, 3)) * 10.0 ** random.uniform(-9, 0, (30, 1))
    mesh = Mesh(triangles)
    found = mesh.distance(points)
    np.testing.assert_allclose(np.abs(found), distances(triangles, points), 1e-12, 1e-15)
    sure = np.abs(found) > 1e-6
    np.testing.assert_array_equal((found < 0.0)[sure], is_inside(triangles, points)[sure])


@pytest.mark.parametrize("surface", [stairs, smooth, spikes])
def test_a_distance_has_the_same_bits_whichever_point_is_before(surface) -> None:
    """Of points on a lattice too, to which many triangles are equally near."""
    random = np.random.default_rng(11)
    mesh = Mesh(surface(random))
    points = np.concatenate((random.random((200, 3)), random.integers(-1, 13, (400, 3)) / 12.0))
    order = random.permutation(len(points))
    np.testing.assert_array_equal(mesh.distance(points[order]), mesh.distance(points)[order])
