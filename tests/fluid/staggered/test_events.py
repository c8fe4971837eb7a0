"""Events that give faces a velocity: the last face of a periodic axis is its first one, too."""

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import make_stepper, own, still

from hybrid_nbody.fluid.sources import Box, Event
from hybrid_nbody.fluid.staggered.events import apply
from hybrid_nbody.fluid.staggered.faces import Faces

PERIODIC = Faces.of_axes(("periodic",) * 3)
CELLS = (6, 5, 4)


@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize("cell", [(5, 2, 1), (2, 4, 1), (2, 2, 3), (5, 4, 3), (2, 2, 1)])
def test_both_faces_of_a_cell_at_a_periodic_end_have_its_velocity(backend, cell, mode):
    stepper = make_stepper(backend, this_rank(), CELLS, PERIODIC, still())
    event = Event(0, 0, "velocity", (1.0, 2.0, 3.0), Box.cell(*cell), mode)
    apply(event, stepper.grid, stepper.state)
    stepper.fill()
    for axis, velocity in enumerate(stepper.state.velocity):
        found = own(stepper, velocity)
        place = cell[::-1]
        after = list(place)
        after[2 - axis] = (cell[axis] + 1) % CELLS[axis]
        expected = np.zeros_like(found)
        expected[place] = expected[tuple(after)] = axis + 1.0
        np.testing.assert_array_equal(found, expected)
