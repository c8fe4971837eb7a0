"""Open shares of faces and cells: their totals, and that they are the same wherever computed."""

import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.openings import ARRAYS, INNER, cube, solid_volume

from hybrid_nbody.fluid.obstacles import Box, Cylinder, Obstacle, Sphere, openings, parts
from hybrid_nbody.fluid.obstacles.openings import near_obstacles
from hybrid_nbody.fluid.obstacles.parts import Part

BALL = Sphere((0.5, 0.52, 0.47), 0.23)
PLANK = Box((0.45, 0.5, 0.55), (0.3, 0.2, 0.05), (20.0, 30.0, 40.0))
ROD = Cylinder.from_to((0.2, 0.3, 0.25), (0.8, 0.6, 0.7), 0.1)

numbers = st.floats(-1.0, 1.0)
vectors = st.tuples(numbers, numbers, numbers)
places = st.tuples(*[st.floats(0.2, 0.8)] * 3)
sizes = st.floats(0.01, 0.4)
spheres = st.builds(Sphere, places, sizes, velocity=vectors)
boxes = st.builds(
    Box, places, st.tuples(sizes, sizes, sizes), st.tuples(*[st.floats(-90.0, 90.0)] * 3)
)
cylinders = st.builds(
    Cylinder, places, vectors.filter(lambda axis: max(map(abs, axis)) > 0.1), sizes, sizes
)
obstacles = st.lists(spheres | boxes | cylinders, max_size=3)


def test_volumes_converge_at_second_order() -> None:
    rod = Cylinder((0.5, 0.5, 0.5), (0.3, 1.0, 0.2), 0.21, 0.4)
    for obstacle, volume in ((BALL, 4 / 3 * math.pi * 0.23**3), (rod, math.pi * 0.21**2 * 0.4)):
        errors = [abs(solid_volume(cube([obstacle], n), n) / volume - 1) for n in (16, 32)]
        assert errors[1] < errors[0] / 3.4
        assert errors[1] < 0.006


@pytest.mark.parametrize("axis", range(3))
def test_areas_converge_at_second_order(axis: int) -> None:
    """The planes of faces cut discs out of a ball."""
    errors = [_area_error(axis, cells) for cells in (16, 32)]
    assert errors[1] < errors[0] / 3.4
    assert errors[1] < 0.003


def _area_error(axis: int, cells: int) -> float:
    """Return the mean error of the areas of discs, relative to the largest."""
    faces = np.moveaxis(getattr(cube([BALL], cells), "xyz"[axis])[INNER], 2 - axis, 0)
    areas = (1.0 - faces).sum(axis=(1, 2)) / cells**2
    places = np.arange(cells) / cells - BALL.centre[axis]
    exact = math.pi * np.clip(BALL.radius**2 - places**2, 0.0, None)
    return float(np.abs(areas - exact).mean() / exact.max())


def test_a_box_along_the_axes_is_exact() -> None:
    low, high = np.array((0.21, 0.33, 0.4)), np.array((0.52, 0.77, 0.61))
    found = cube([Box.between(tuple(low), tuple(high))], 32)
    edges = high - low
    assert solid_volume(found, 32) == pytest.approx(edges.prod(), rel=1e-13)
    areas = (1.0 - found.y[INNER]).sum(axis=(0, 2)) / 32**2
    planes = np.arange(32) / 32
    inside = (planes > low[1]) & (planes < high[1])
    np.testing.assert_allclose(areas, np.where(inside, edges[0] * edges[2], 0.0), 1e-12, 1e-15)


def test_a_box_on_the_faces_of_cells_closes_them() -> None:
    found = cube([Box.between((0.25, 0.25, 0.25), (0.5, 0.5, 0.5))], 16)
    inside = np.zeros((16, 16, 16))
    inside[4:8, 4:8, 4:8] = 1.0
    np.testing.assert_array_equal(found.volume[INNER], 1.0 - inside)
    inside[4:8, 4:8, 8] = 1.0
    np.testing.assert_array_equal(found.x[INNER], 1.0 - inside)


def test_a_ball_is_as_symmetric_as_its_grid() -> None:
    found = cube([Sphere((0.5, 0.5, 0.5), 0.3)], 16)
    volume, x, y = found.volume[INNER], found.x[INNER], found.y[INNER]
    for mirrored in (volume[::-1], volume[:, ::-1], volume.T):
        np.testing.assert_allclose(mirrored, volume, 0.0, 1e-13)
    np.testing.assert_allclose(y.swapaxes(1, 2), x, 0.0, 1e-13)
    np.testing.assert_allclose(x[:, :, :0:-1], x[:, :, 1:], 0.0, 1e-13)


@settings(max_examples=12, deadline=None)
@given(obstacles, st.integers(1, 11), st.tuples(*[st.booleans()] * 3))
def test_slabs_agree_with_the_whole(
    some: list[Obstacle], cut: int, periodic: tuple[bool, bool, bool]
) -> None:
    cells = (12, 9, 12)
    whole = openings(some, cells, 0, 12, 0.3, periodic)
    for first, planes in ((0, cut), (cut, 12 - cut)):
        part = openings(some, cells, first, planes, 0.3, periodic)
        for name, array in vars(part).items():
            if array is not None:
                expected = getattr(whole, name)[first : first + planes + 2]
                np.testing.assert_array_equal(array, expected, name)


@settings(max_examples=12, deadline=None)
@given(obstacles, st.sampled_from([20, 48]), st.tuples(*[st.booleans()] * 3))
def test_cells_near_obstacles_alone_are_computed(
    some: list[Obstacle], piece: int, periodic: tuple[bool, bool, bool]
) -> None:
    whole = Part.of_planes((12, 9, 13), periodic, 4, 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PIECE", piece)
        found = near_obstacles(some, whole, 0.3).spread(whole).openings
        module = import_module("hybrid_nbody.fluid.obstacles.openings")
        patch.setattr(module, "_around", lambda images, whole: whole)
        expected = near_obstacles(some, whole, 0.3).openings
    for name, array in vars(found).items():
        if array is not None:
            np.testing.assert_array_equal(array, getattr(expected, name), name)


def test_few_cells_are_near_a_small_ball() -> None:
    whole = Part.of_planes((64, 64, 64), (True, False, True), 0, 64)
    near = near_obstacles([Sphere((0.5, 0.5, 0.5), 0.05)], whole, 0.0).part
    assert max(near.shape) < 24


@settings(max_examples=12, deadline=None)
@given(obstacles)
def test_shares_are_between_0_and_1(some: list[Obstacle]) -> None:
    found = openings(some, (10, 8, 6), 0, 6, 0.0)
    for name in ARRAYS[:4]:
        array = getattr(found, name)
        assert ((array >= 0.0) & (array <= 1.0)).all()
    assert (found.owner < len(some)).all()
    assert (found.owner[found.volume < 1.0] >= 0).all()


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([BALL, PLANK, ROD]), st.tuples(*[st.integers(-3, 3)] * 3))
def test_moving_by_whole_cells_moves_the_arrays(
    obstacle: Obstacle, steps: tuple[int, int, int]
) -> None:
    """Steps are multiples of 1/8, which float64 holds."""
    drift = tuple(step / 8 for step in steps)
    moving = type(obstacle)(**{**vars(obstacle), "velocity": drift})
    periodic = (True, True, True)
    here = openings([moving], (8,) * 3, 0, 8, 0.0, periodic)
    there = openings([moving], (8,) * 3, 0, 8, 1.0, periodic)
    for name in ARRAYS:
        expected = np.roll(getattr(here, name)[INNER], steps[::-1], axis=(0, 1, 2))
        np.testing.assert_allclose(getattr(there, name)[INNER], expected, 1e-9, 1e-12, True, name)


@pytest.mark.parametrize("axis", range(3))
def test_ghosts_of_a_periodic_axis_are_the_cells_of_its_other_end(axis: int) -> None:
    centre = [0.5, 0.5, 0.5]
    centre[axis] = 0.03
    x, y, z = (axis == other for other in range(3))
    ball = Sphere((centre[0], centre[1], centre[2]), 0.2)
    found = openings([ball], (12,) * 3, 0, 12, 0.0, (x, y, z))
    for name in ARRAYS:
        array = np.moveaxis(getattr(found, name), 2 - axis, 0)
        np.testing.assert_array_equal(array[0], array[-2], name)
        np.testing.assert_array_equal(array[-1], array[1], name)
    assert solid_volume(found, 12) == pytest.approx(4 / 3 * math.pi * 0.2**3, rel=0.03)


def test_an_obstacle_goes_on_in_ghosts_of_other_axes() -> None:
    found = cube([Cylinder((0.5, 0.5, 0.0), (0.0, 0.0, 1.0), 0.2)], 12)
    np.testing.assert_array_equal(found.volume[0], found.volume[6])
    np.testing.assert_array_equal(found.z[-1], found.z[6])


def test_faces_hold_the_velocity_of_what_turns() -> None:
    """v = omega x r, which is -omega y along x about the axis z."""
    ball = Sphere((0.5, 0.5, 0.5), 0.25, velocity=(0.1, 0.0, 0.2), rotation=(0.0, 0.0, 2.0))
    found = cube([ball], 16, 0.5)
    assert found.solid_u is not None
    assert found.solid_w is not None
    solid = found.owner == 0
    y = (np.arange(-1, 17) + 0.5)[None, :, None] / 16
    inner = solid & np.roll(solid, 1, axis=2)
    expected = np.broadcast_to(0.1 - 2.0 * (y - 0.5), solid.shape)
    np.testing.assert_allclose(found.solid_u[inner], expected[inner], 0.0, 1e-13)
    assert (found.solid_u[~solid & ~np.roll(solid, 1, axis=2)] == 0.0).all()
    assert set(np.unique(found.solid_w)) == {0.0, 0.2}
    assert cube([BALL], 8).solid_u is None


def test_what_turns_takes_its_shape_along() -> None:
    """A box that has turned for a time is the box that is turned by the angle."""
    turning = Box((0.5, 0.5, 0.5), (0.5, 0.3, 0.2), rotation=(0.0, 0.0, math.pi))
    turned = Box((0.5, 0.5, 0.5), (0.5, 0.3, 0.2), (0.0, 0.0, 45.0))
    for name in ARRAYS:
        found = getattr(cube([turning], 16, 0.25), name)
        np.testing.assert_allclose(found, getattr(cube([turned], 16), name), 1e-9, 1e-12, True)
