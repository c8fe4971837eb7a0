"""Closed pockets: found on any ranks, solved apart, refused where their volume would change."""

import numpy as np
import pytest
from support.fluids import make_halo
from support.ranks import this_rank
from support.staggered import (
    PERIODIC,
    TUNNEL,
    WALLS,
    advance,
    make_stepper,
    own,
    put,
    still,
)

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.fluid.obstacles import Box, Sphere
from hybrid_nbody.fluid.obstacles.openings import near_obstacles
from hybrid_nbody.fluid.obstacles.parts import Part
from hybrid_nbody.fluid.staggered.grid import Grid
from hybrid_nbody.fluid.staggered.pockets import parts

SHELL = [
    Box.between((0.25, 0.25, low), (0.75, 0.75, low + 0.02)) for low in (0.25, 0.73)
] + [
    Box.between((low, 0.25, 0.25), (low + 0.02, 0.75, 0.75)) for low in (0.25, 0.73)
] + [
    Box.between((0.25, low, 0.25), (0.75, low + 0.02, 0.75)) for low in (0.25, 0.73)
]  # fmt: skip
"""Six plates around a pocket of 6^3 cells of 12^3."""

WALL = Box.between((-1.0, -1.0, 0.45), (2.0, 2.0, 0.55))
PISTON = Box((0.5, 0.5, 0.5), (3.0, 3.0, 0.1), velocity=(0.0, 0.0, 0.2))


def still_fluid(axis, x, y, z):
    """Return no velocity."""
    return 0.0 * x


def swirl(axis, x, y, z):
    """Return a velocity with gradients along all axes."""
    return 0.5 * np.sin(5.0 * (x + 2.0 * y + 3.0 * z) + axis)


@pytest.mark.mpi
@pytest.mark.parametrize("faces", [WALLS, PERIODIC, TUNNEL])
@pytest.mark.parametrize("obstacles", [SHELL, [WALL], [Sphere((0.4, 0.4, 0.4), 0.2)]])
def test_pockets_do_not_depend_on_the_ranks(backend, communicator, faces, obstacles):
    cells = (12, 12, 12)
    weights = [1.0 + rank % 2 for rank in range(communicator.size)]

    def found(ranks, shares=None):
        halo = make_halo(backend, ranks, cells[2], faces.periodic[2], shares)
        grid = Grid(cells, faces, halo, backend, None, "f8")
        whole = Part.of_planes(cells, faces.periodic, grid.first, grid.planes)
        pockets = parts(grid, near_obstacles(obstacles, whole, 0.0)).pockets
        return sorted((pocket.cells, *pocket.centre) for pocket in pockets)

    pockets = communicator.on_root(lambda: found(this_rank()))
    assert found(communicator, weights) == pockets
    closed = {id(WALLS): 1, id(PERIODIC): 1, id(TUNNEL): 0}[id(faces)]
    inside = {id(SHELL): 1}.get(id(obstacles), 0)
    divided = obstacles == [WALL] and faces is not PERIODIC
    assert len(pockets) == closed + inside + divided


def test_a_pocket_is_solved_apart(backend):
    stepper = make_stepper(backend, this_rank(), (12, 12, 12), TUNNEL, still(1e-3), obstacles=SHELL)
    (pocket,) = stepper.solids.pockets
    assert (pocket.cells, pocket.centre) == (216, pytest.approx((0.5, 0.5, 0.5)))
    put(stepper, swirl)
    for step in range(2):
        advance(stepper, 0.02 * step, 0.02)
    speed = stepper.grid.largest_speed(stepper.state.velocity)
    assert stepper.projection.divergence(stepper.state.velocity) <= 1e-12 * speed
    inside = own(stepper, stepper.state.velocity[0])[4:8, 4:8, 4:8]
    assert np.abs(inside).max() > 0.05


def test_an_inlet_that_ends_at_a_wall_is_refused(backend):
    stepper = make_stepper(backend, this_rank(), (8, 8, 8), TUNNEL, still(1e-3), obstacles=[WALL])
    told = r"the pocket of 256 cells about \(0.5, 0.5, 0.25\) is closed, and more fluid flows in"
    with pytest.raises(NumericalError, match=told):
        put(stepper, still_fluid)


def test_a_piston_is_refused(backend):
    stepper = make_stepper(backend, this_rank(), (8, 8, 8), WALLS, still(), obstacles=[PISTON])
    with pytest.raises(NumericalError, match="would have to change its volume; leave a gap"):
        put(stepper, still_fluid)


def test_a_piston_that_pushes_fluid_around_a_ring_is_not(backend):
    """In a periodic box what it pushes comes back from behind."""
    stepper = make_stepper(backend, this_rank(), (8, 8, 8), PERIODIC, still(), obstacles=[PISTON])
    put(stepper, still_fluid)
    advance(stepper, 0.0, 0.1)
    fluid = own(stepper, stepper.solids.reach[2]) > 0.0
    np.testing.assert_allclose(own(stepper, stepper.state.velocity[2])[fluid], 0.2, rtol=1e-10)


def test_gaps_of_few_cells_beside_what_moves_are_solid(backend):
    """Above a plate are 8 cells, below it 24."""
    for speed, expected in ((0.0, [8, 24]), (0.1, [24])):
        plate = Box((0.5, 0.625, 0.0), (3.0, 0.6, 1.0), velocity=(0.0, 0.0, speed))
        stepper = make_stepper(backend, this_rank(), (8, 8, 1), WALLS, still(), obstacles=[plate])
        assert sorted(pocket.cells for pocket in stepper.solids.pockets) == expected
        assert (own(stepper, stepper.solids.of_cells) > 0.0).sum() == sum(expected)
        open_faces = sum((own(stepper, a) > 0.0).sum() for a in stepper.solids.openings)
        assert open_faces < 3 * sum(expected) + 8
