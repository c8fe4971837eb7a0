"""Totals that functions of a cell take: those of `Grid.total`, wherever they are added."""

from dataclasses import replace

import numpy as np
import pytest
from support.staggered import PERIODIC, WALLS, make_stepper, still


def number_in(grid, total):
    """Return what functions of a cell take for a total."""
    direction, z = grid.zeros(), grid.zeros()
    direction[...] = 1.0
    grid.program.run("turn", grid.everywhere, direction, z, total, one(grid))
    return grid.backend.download(direction)[0, 0, 0]


def one(grid):
    """Return a total of 1."""
    return grid.program.total_of(np.ones((1, 1)))


@pytest.mark.mpi
@pytest.mark.parametrize("faces", [PERIODIC, WALLS])
@pytest.mark.parametrize("mixed", [False, True], ids=["alike", "of several kinds"])
def test_a_total_is_the_same_wherever_it_is_added(backend, communicator, faces, mixed):
    weights = [float(rank != 1) for rank in range(communicator.size)]
    cells = (6, 70, 10)
    stepper = make_stepper(backend, communicator, cells, faces, still(), weights=weights)
    grid = replace(stepper.grid, mixed=mixed)
    field = np.random.default_rng(4).normal(size=(12, 72, 8))
    own = grid.backend.upload(field[grid.first : grid.first + grid.planes + 2])
    call = ("dot", grid.region, own, own, 0.5)
    expected = grid.total(*call)
    inside = field[1:-1, 1:-1, 1:-1]
    np.testing.assert_allclose(expected, 0.25 * (inside**2).sum(), rtol=1e-13, atol=0)
    for found in (grid.total_ahead(*call), grid.total_by_hosts(*call)):
        assert number_in(grid, found) == expected
