"""Ghosts of fields on the staggered grid: ranks see in theirs what a rank alone has there."""

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import TUNNEL, WALLS, make_stepper, still

from hybrid_nbody.fluid.staggered.faces import Face, Faces
from hybrid_nbody.fluid.staggered.profiles import Uniform

SIDES = (Face("free-slip"),) * 4
RISING = Faces(*SIDES, Face("inflow", Uniform((0.0, 0.0, 1.0))), Face("outflow"))
FALLING = Faces(*SIDES, Face("outflow"), Face("inflow", Uniform((0.0, 0.0, -1.0))))


def filled(backend, communicator, faces, number):
    """Return where a rank has its planes and fields of noise, one a kind, with their ghosts."""
    cells = (6, 5, number)
    stepper = make_stepper(backend, communicator, cells, faces, still(0.1))
    planes = slice(stepper.grid.first, stepper.grid.first + stepper.grid.planes + 2)
    kinds = [*stepper.ghosts.velocity, stepper.ghosts.pressure]
    noise = np.random.default_rng(3).random((len(kinds), number + 2, 7, 8))
    arrays = [backend.upload(field[planes]) for field in noise]
    for array, kind in zip(arrays, kinds, strict=True):
        stepper.ghosts.fill(array, kind)
    return planes, [backend.download(array) for array in arrays]


@pytest.mark.mpi
@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("faces", [WALLS, TUNNEL, RISING, FALLING])
def test_ghosts_are_those_of_a_rank_alone(backend, communicator, faces, planes):
    """The lowest faces are set, and another rank sees them if they are this rank's only plane."""
    number = planes * communicator.size
    where, shared = filled(backend, communicator, faces, number)
    _, whole = filled(backend, this_rank(), faces, number)
    for found, expected in zip(shared, whole, strict=True):
        np.testing.assert_array_equal(found, expected[where])
