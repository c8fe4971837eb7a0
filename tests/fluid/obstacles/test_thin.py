"""Thin solids: plates do not leak at any angle, and what is connected stays so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.openings import centres, cube, flooded

from hybrid_nbody.fluid.obstacles import Box, Sphere
from hybrid_nbody.fluid.obstacles.base import in_radians, turned
from hybrid_nbody.fluid.obstacles.thin import thin_cells

CELLS = 12

angles = st.tuples(*[st.floats(-180.0, 180.0)] * 3)
about_the_middle = st.tuples(*[st.floats(0.45, 0.55)] * 3)


def _check(plate: Box, thickness: float) -> None:
    """Assert that a flood on one side of a plate fills that side and none of the other."""
    x, y, z = (-angle for angle in in_radians(plate.orientation))
    arms = turned(centres(CELLS).reshape(-1, 3) - np.array(plate.centre), (x, y, z))
    height = arms[:, 2].reshape((CELLS,) * 3) * CELLS
    clear = np.abs(height) > 1.0 + 0.5 * thickness
    near = clear & (height > 0)
    reached = flooded(cube([plate], CELLS), tuple(np.argwhere(near)[0]))
    assert reached[near].all()
    assert not reached[clear & (height < 0)].any()


@settings(max_examples=40, deadline=None)
@given(about_the_middle, angles, st.sampled_from([1e-3, 0.1, 0.3, 0.7, 1.0, 1.4, 2.0]))
def test_a_plate_at_an_angle_does_not_leak(
    centre: tuple[float, float, float],
    orientation: tuple[float, float, float],
    thickness: float,
) -> None:
    _check(Box(centre, (4.0, 4.0, thickness / CELLS), orientation), thickness)


@pytest.mark.parametrize("place", [0.0, 0.25, 0.5, 0.999])
@pytest.mark.parametrize("thickness", [0.1, 1.0])
def test_a_plate_along_the_faces_does_not_leak(place: float, thickness: float) -> None:
    _check(Box((0.5, 0.5, (6 + place) / CELLS), (4.0, 4.0, thickness / CELLS)), thickness)


@pytest.mark.parametrize("joint", [0.0, 0.25])
def test_joined_plates_do_not_leak(joint: float) -> None:
    """Six plates of a tenth of a cell make a closed box, turned or not."""
    thin = 0.1 / CELLS
    plates = []
    for axis in range(3):
        for side in (0.25 + joint / CELLS, 0.75 + joint / CELLS):
            low, high = np.full(3, 0.25 + joint / CELLS), np.full(3, 0.75 + joint / CELLS)
            low[axis], high[axis] = side, side + thin
            plates.append(Box.between(tuple(low), tuple(high + (np.arange(3) != axis) * thin)))
    reached = flooded(cube(plates, CELLS), (0, 0, 0))
    assert not reached[5:8, 5:8, 5:8].any()
    assert reached[:2].all()


def test_fluid_goes_round_the_end_of_a_plate() -> None:
    plate = Box((0.5, 0.2, 0.5), (4.0, 0.9, 0.1 / CELLS), (10.0, 0.0, 0.0))
    assert flooded(cube([plate], CELLS), (0, 0, 0)).all()


def test_a_ball_smaller_than_a_cell_is_seen() -> None:
    found = cube([Sphere((0.5, 0.5, 0.5 + 0.5 / CELLS), 0.2 / CELLS)], CELLS)
    assert found.owner[7, 7, 7] == 0
    assert flooded(found, (0, 0, 0)).all()


@settings(max_examples=20, deadline=None)
@given(about_the_middle, st.floats(0.1, 0.4))
def test_a_ball_of_some_cells_is_not_thin(
    centre: tuple[float, float, float], radius: float
) -> None:
    assert not thin_cells(cube([Sphere(centre, radius)], CELLS)).any()


@pytest.mark.parametrize(("thickness", "is_thin"), [(0.1, True), (1.0, True), (3.0, False)])
@pytest.mark.parametrize("orientation", [(0.0, 0.0, 0.0), (0.0, 30.0, 0.0)])
def test_plates_of_a_cell_are_thin(
    thickness: float, is_thin: bool, orientation: tuple[float, float, float]
) -> None:
    plate = Box((0.5, 0.5, 0.51), (4.0, 4.0, thickness / CELLS), orientation)
    assert thin_cells(cube([plate], CELLS)).any() == is_thin
