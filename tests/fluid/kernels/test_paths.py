"""Advection in vector code: the bits of the functions of a cell."""

import numpy as np
import pytest
from support.bodies import make_backend

from hybrid_nbody.backends.cells import make_program
from hybrid_nbody.fluid.kernels.cells import LOOPS, MODULES

SHAPE = (9, 8, 43)
REGION = (1, 8, 1, 7, 1, 42)


@pytest.fixture(scope="module", params=["f4", "f8"])
def programs(request):
    """The loops of vectors, and the generated ones."""
    backend = make_backend("cpu", threads=2)
    return [make_program(backend, MODULES, request.param, loops) for loops in (LOOPS, None)]


def smooth(speed, random):
    """Return a velocity that changes slowly but along x, whose component is a little rough."""
    k, j, i = np.indices(SHAPE)
    flow = [speed * np.cos(0.1 * n * i + 0.3 * j + 0.2 * k) for n in (1, 2, 3)]
    flow[0] += 0.05 * speed * random.normal(size=SHAPE)
    return flow


def rough(speed, random):
    """Return a velocity in disorder."""
    return list(speed * random.normal(size=(3, *SHAPE)))


def fast_at_an_end(speed, random):
    """Return a velocity that is larger in the last columns."""
    flow = [np.full(SHAPE, share * speed) for share in (-0.1, 0.2, 0.1)]
    flow[0][:, :, -4:] = -2.0 * speed
    flow[0][:, :, :3] = 2.0 * speed
    return flow


def broken(speed, random):
    """Return a velocity that holds numbers beyond all bounds."""
    flow = smooth(speed, random)
    flow[0][3, 2, 9] = 1e30
    flow[1][5, 4, 20:24] = np.nan
    flow[2][2, 3, 30] = -np.inf
    return flow


def fields(make_flow, speed, wraps, number):
    """Return a smooth field, a rough one, and a velocity whose paths are so long."""
    random = np.random.default_rng(7)
    k, j, i = np.indices(SHAPE)
    source = np.sin(0.3 * i + 0.2 * j + 0.1 * k)
    flow = make_flow(speed, random)
    found = [a.astype(number) for a in (source, random.normal(size=SHAPE), *flow)]
    for field in found if wraps else ():
        field[:, :, 0] = field[:, :, -2]
        field[:, :, -1] = field[:, :, 1]
        field[:, 0] = field[:, -2]
        field[:, -1] = field[:, 1]
    return found


@pytest.mark.parametrize("make_flow", [smooth, rough, fast_at_an_end])
@pytest.mark.parametrize("staggered", [(0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)])
@pytest.mark.parametrize("wraps", [0, 1])
@pytest.mark.parametrize("speed", [0.4, 1.7, 30.0])
@pytest.mark.parametrize("walls", [(1, 8), (-30, 60)], ids=["box", "slab within"])
def test_vectors_have_the_bits_of_single_cells(programs, walls, speed, wraps, staggered, make_flow):
    source, forward, *flow = fields(make_flow, speed, wraps, programs[0].number)
    given = (-0.7, *staggered, wraps, wraps, 0, *walls, 8, 0)
    found = []
    for program in programs:
        carried = np.zeros_like(source)
        program.run("advect", REGION, source, *flow, carried, *given)
        improved = np.zeros_like(source)
        program.run("correct", REGION, source, forward, *flow, improved, *given, 0.5)
        found.append(np.stack([carried, improved]))
    np.testing.assert_array_equal(*found)
    assert np.nanmax(np.abs(found[0])) > 0.1


@pytest.mark.parametrize("speed", [0.4, 1.7])
def test_paths_are_the_same_in_a_window_of_more_planes(programs, speed):
    """Nothing of an end of the array is felt where those of the box are far away."""
    source, forward, *flow = fields(smooth, speed, 1, programs[0].number)
    found = []
    for beyond in (0, 4):
        arrays = [np.concatenate([a[-1 - beyond : -1], a, a[1 : 1 + beyond]]) if beyond else a
                  for a in (source, forward, *flow)]  # fmt: skip
        given = (-0.7, 0.0, 0.0, 1.0, 1, 1, 0, -30, 60, len(arrays[0]) - 1, beyond)
        region = (4, 5, *REGION[2:])
        for program in programs:
            out = np.zeros_like(source), np.zeros_like(source)
            program.run("advect", region, arrays[0], *arrays[2:], out[0], *given)
            program.run("correct", region, *arrays, out[1], *given, 0.5)
            found.append(np.stack(out)[:, 4])
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_numbers_beyond_all_bounds_are_felt_near_them_alone(programs):
    source, _, *flow = fields(broken, 0.4, 1, programs[0].number)
    given = (-0.7, 0.0, 0.0, 0.0, 1, 1, 0, 1, 8, 8, 0)
    found = []
    for program in programs:
        carried = np.zeros_like(source)
        program.run("advect", REGION, source, *flow, carried, *given)
        found.append(carried[7])
    np.testing.assert_array_equal(*found)
    assert np.isfinite(found[0]).all()
