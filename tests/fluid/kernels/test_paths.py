"""Advection in vector code: the bits of the functions of a cell."""

import numpy as np
import pytest
from support.bodies import make_backend

from hybrid_nbody.backends.cells import make_program
from hybrid_nbody.fluid.kernels.cells import LOOPS, MODULES

SHAPE = (9, 8, 43)
REGION = (1, 8, 1, 7, 1, 42)


@pytest.fixture(scope="module")
def programs():
    """The loops of vectors, and the generated ones."""
    backend = make_backend("cpu", threads=2)
    return [make_program(backend, MODULES, "f4", loops) for loops in (LOOPS, None)]


def fields(speed, wraps):
    """Return a smooth field, a rough one, and a velocity whose paths are so long."""
    random = np.random.default_rng(7)
    k, j, i = np.indices(SHAPE)
    smooth = np.sin(0.3 * i + 0.2 * j + 0.1 * k)
    flow = [speed * np.cos(0.1 * n * i + 0.3 * j + 0.2 * k) for n in (1, 2, 3)]
    flow[0] += 0.05 * speed * random.normal(size=SHAPE)
    found = [a.astype("f4") for a in (smooth, random.normal(size=SHAPE), *flow)]
    for field in found if wraps else ():
        field[:, :, 0] = field[:, :, -2]
        field[:, :, -1] = field[:, :, 1]
        field[:, 0] = field[:, -2]
        field[:, -1] = field[:, 1]
    return found


@pytest.mark.parametrize("staggered", [(0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)])
@pytest.mark.parametrize("wraps", [0, 1])
@pytest.mark.parametrize("speed", [0.4, 1.7, 30.0])
@pytest.mark.parametrize("walls", [(1, 8), (-30, 60)], ids=["box", "slab within"])
def test_vectors_have_the_bits_of_single_cells(programs, walls, speed, wraps, staggered):
    source, forward, *flow = fields(speed, wraps)
    given = (-0.7, *staggered, wraps, wraps, 0, *walls, 8, 0)
    found = []
    for program in programs:
        carried = np.zeros(SHAPE, "f4")
        program.run("advect", REGION, source, *flow, carried, *given)
        improved = np.zeros(SHAPE, "f4")
        program.run("correct", REGION, source, forward, *flow, improved, *given, 0.5)
        found.append(np.stack([carried, improved]))
    np.testing.assert_array_equal(*found)
    assert np.abs(found[0]).max() > 0.1
