"""Solvers of the staggered fluid: each leaves no divergence, and all find the same step."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import (
    CAVITY,
    PERIODIC,
    TOLERANCE,
    TUNNEL,
    WALLS,
    advance,
    make_stepper,
    own,
    put,
    still,
)

from hybrid_nbody.fluid.obstacles import Sphere
from hybrid_nbody.fluid.solvers import multigrid as in_boxes
from hybrid_nbody.fluid.staggered import boxes, multigrid, solids
from hybrid_nbody.fluid.staggered.boxes import Box, Colours, Relaxer
from hybrid_nbody.fluid.staggered.coefficients import Coefficients
from hybrid_nbody.fluid.staggered.faces import Face, Faces
from hybrid_nbody.fluid.staggered.pressure import Accuracy, subtract_gradient
from hybrid_nbody.fluid.staggered.solvers import InBox
from hybrid_nbody.fluid.stencil import POISSON

CELLS = (12, 8, 6)
ITERATIONS = {"conjugate-gradients": 40, "multigrid": 100, "red-black": 2000}
BALL = (Sphere((0.5, 0.3, 0.25), 0.2),)
VISCOSITY = 0.02

OPEN = Faces(*(Face("periodic"),) * 2, Face("no-slip"), Face("outflow"), *(Face("periodic"),) * 2)
"""No obstacle and no outlet would be solved by the collocated grid's kernels."""


def stepper_of(backend, communicator, faces, method, **more):
    """Return a fluid in disorder; `more` replaces what `make_stepper` is given."""
    dtype = more.pop("dtype", "f8")
    accuracy = more.pop("accuracy", Accuracy(TOLERANCE[dtype], ITERATIONS[method], method))
    physics = still(VISCOSITY, more.pop("second_order", False))
    cells = more.pop("cells", CELLS)
    given = (backend, communicator, cells, faces, physics, dtype)
    stepper = make_stepper(*given, accuracy=accuracy, **more)
    shape = tuple(n + 2 for n in reversed(cells))
    noise = np.random.default_rng(1).uniform(-1.0, 1.0, (3, *shape))
    planes = slice(stepper.grid.first, stepper.grid.first + stepper.grid.planes + 2)
    put(stepper, lambda axis, x, y, z: noise[axis, planes])
    return stepper


@pytest.mark.parametrize("obstacles", [(), BALL], ids=["plain", "ball"])
@pytest.mark.parametrize("faces", [PERIODIC, WALLS, CAVITY, TUNNEL])
@pytest.mark.parametrize("method", list(ITERATIONS))
def test_no_divergence_is_left(backend, communicator, method, faces, obstacles):
    stepper = stepper_of(backend, communicator, faces, method, obstacles=obstacles)
    advance(stepper, 0.0, 0.02)
    speed = stepper.grid.largest_speed(stepper.state.velocity)
    assert stepper.projection.divergence(stepper.state.velocity) <= TOLERANCE["f8"] * speed


@pytest.mark.mpi
@pytest.mark.parametrize("faces", [PERIODIC, WALLS, OPEN])
def test_a_gradient_is_subtracted_at_open_faces_alone(backend, communicator, faces):
    stepper = stepper_of(backend, communicator, faces, "red-black")
    grid, state = stepper.grid, stepper.state
    x = grid.backend.upload(np.random.default_rng(2).normal(size=grid.shape))
    *velocity, potential = (grid.backend.download(a).copy() for a in (*state.velocity, x))
    subtract_gradient(stepper.solids, state.velocity, x, 0.5)
    for axis, expected in enumerate(velocity):
        k0, k1, j0, j1, i0, i1 = grid.open_faces(axis)
        faces_of_axis = (slice(k0, k1), slice(j0, j1), slice(i0, i1))
        slope = potential - np.roll(potential, 1, axis=2 - axis)
        expected[faces_of_axis] -= 0.5 * slope[faces_of_axis]
        found = grid.backend.download(state.velocity[axis])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.mpi
@pytest.mark.parametrize("faces", [PERIODIC, WALLS, OPEN])
def test_a_projection_adds_to_the_pressure_what_it_subtracts(backend, communicator, faces):
    stepper = stepper_of(backend, communicator, faces, "red-black")
    grid, state = stepper.grid, stepper.state
    state.velocity[1][...] *= 2.0
    before = [grid.backend.download(array).copy() for array in (*state.velocity, state.pressure)]
    stepper.projection.project(state.velocity, state.pressure, 3.0)
    *velocity, pressure = before
    added = (grid.backend.download(state.pressure) - pressure) / 3.0
    assert np.abs(added).max() > 1e-3
    for axis, old in enumerate(velocity):
        k0, k1, j0, j1, i0, i1 = grid.inner_faces(axis)
        inner = (slice(k0, k1), slice(j0, j1), slice(i0, i1))
        slope = (added - np.roll(added, 1, axis=2 - axis))[inner]  # ghosts have been filled, too
        change = (old - grid.backend.download(state.velocity[axis]))[inner]
        np.testing.assert_allclose(change, slope, rtol=0, atol=1e-12)
        assert sum(communicator.gather(slope.size)) == faces_between_cells(grid, axis)


def faces_between_cells(grid, axis):
    """Return the number of faces across an axis that lie between two cells, on all ranks."""
    cells = list(grid.cells)
    cells[axis] -= not grid.periodic[axis]
    return np.prod(cells)


@pytest.mark.parametrize("method", ["multigrid", "red-black"])
def test_no_divergence_is_left_in_single_precision(backend, communicator, method):
    stepper = stepper_of(backend, communicator, WALLS, method, dtype="f4")
    advance(stepper, 0.0, 0.02)
    speed = stepper.grid.largest_speed(stepper.state.velocity)
    assert stepper.projection.divergence(stepper.state.velocity) <= TOLERANCE["f4"] * speed


@pytest.mark.parametrize("method", list(ITERATIONS))
def test_nothing_is_solved_at_rest(backend, communicator, method):
    accuracy = Accuracy(TOLERANCE["f8"], ITERATIONS[method], method)
    given = (backend, communicator, CELLS, WALLS, still(VISCOSITY, False), "f8")
    stepper = make_stepper(*given, accuracy=accuracy)
    put(stepper, lambda axis, x, y, z: 0.0 * x * y * z)
    advance(stepper, 0.0, 0.02)
    assert stepper.projection.iterations == 0


def test_cycles_end_where_rounding_holds_the_residual(backend, alone):
    stepper = stepper_of(backend, alone, WALLS, "multigrid", dtype="f4")
    solver = stepper.projection.solver
    assert solver.solve(stepper.state.velocity, 1e-20, 100) < 30


@pytest.mark.parametrize(("sign", "iterations"), [(0.0, 2), (np.nan, 1)])
def test_gradients_that_lead_nowhere_end_a_solve(backend, alone, sign, iterations, monkeypatch):
    stepper = stepper_of(backend, alone, WALLS, "conjugate-gradients")
    solver = stepper.projection.solver
    multiply = backend.xp.multiply
    monkeypatch.setattr(solver.multigrid, "cycle", lambda x, b: multiply(sign, b, out=x))
    assert solver.solve(stepper.state.velocity, 1e-20, 100) == iterations


@pytest.mark.parametrize(
    ("faces", "second_order"), [(PERIODIC, False), (WALLS, True), (WALLS, False), (CAVITY, True)]
)
@pytest.mark.parametrize("method", ["multigrid", "red-black"])
def test_all_solvers_find_the_same_step(backend, communicator, method, faces, second_order):
    steppers = [
        stepper_of(backend, communicator, faces, name, second_order=second_order)
        for name in (method, "conjugate-gradients")
    ]
    for stepper in steppers:
        advance(stepper, 0.0, 0.02)
        advance(stepper, 0.02, 0.02)
    for axis in range(3):
        found, expected = (own(stepper, stepper.state.velocity[axis]) for stepper in steppers)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("obstacles", [(), BALL], ids=["plain", "ball"])
@pytest.mark.parametrize("method", list(ITERATIONS))
def test_without_a_tolerance_all_iterations_are_done(backend, communicator, method, obstacles):
    accuracy = Accuracy(0.0, 3, method)
    stepper = stepper_of(
        backend, communicator, WALLS, method, accuracy=accuracy, obstacles=obstacles
    )
    stepper.projection.iterations = 0
    stepper.projection.solves = 0
    advance(stepper, 0.0, 0.02)
    assert (stepper.projection.iterations, stepper.projection.solves) == (3, 1)


@pytest.mark.parametrize(("tolerance", "looks"), [(0.0, 0), (1e-12, 2)])
def test_nobody_waits_for_residuals_without_a_tolerance(
    backend, alone, monkeypatch, tolerance, looks
):
    accuracy = Accuracy(tolerance, 3, "conjugate-gradients")
    stepper = stepper_of(
        backend, alone, WALLS, "conjugate-gradients", accuracy=accuracy, obstacles=BALL
    )
    solver, seen = stepper.projection.solver, []
    largest = solver.largest
    monkeypatch.setattr(solver, "largest", lambda r: seen.append(r) or largest(r))
    advance(stepper, 0.0, 0.02)
    assert stepper.projection.iterations >= 3
    assert len(seen) == looks  # between iterations


def shared_grids(stepper):
    """Return the cells of the coarse grids that ranks share."""
    solver = stepper.projection.solver
    if isinstance(solver, InBox):
        return [level.cells for level in solver.improver.multigrid.levels[1:] if level.shared]
    grids = [level.grid for level in solver.multigrid.levels[1:]]
    return [grid.cells for grid in grids if not grid.halo.alone]


PARTS = [(5, 4, 13), (3, 2, 7)]
"""Coarse grids of more than 8 cells."""

SHARED = {
    "multigrid": {1: [], 2: PARTS[:1], 3: PARTS[:1], 4: []},
    "conjugate-gradients": {1: [], 2: PARTS, 3: PARTS, 4: PARTS[:1]},
}
"""Those of which every rank has enough planes, by the number of ranks."""


@pytest.mark.mpi
@pytest.mark.parametrize("most", [8, 1 << 20], ids=["shared", "complete"])
@pytest.mark.parametrize("obstacles", [(), BALL], ids=["plain", "ball"])
def test_coarse_grids_may_be_shared_or_complete(
    backend, communicator, monkeypatch, most, obstacles
):
    monkeypatch.setattr(type(backend), "message_cells", most)
    monkeypatch.setattr(in_boxes, "CENTRED_CELLS", 8)  # a mean is that of a complete grid
    method = "conjugate-gradients" if obstacles else "multigrid"
    more = {"cells": (10, 8, 26), "obstacles": obstacles, "accuracy": Accuracy(0.0, 3, method)}
    alone, shared = (
        stepper_of(backend, ranks, WALLS, method, **more) for ranks in (this_rank(), communicator)
    )
    assert shared_grids(alone) == []
    assert shared_grids(shared) == (SHARED[method][communicator.size] if most == 8 else [])
    for stepper in (alone, shared):
        advance(stepper, 0.0, 0.02)
    planes = slice(shared.grid.first, shared.grid.first + shared.grid.planes)
    for axis in range(3):
        found = own(shared, shared.state.velocity[axis])
        np.testing.assert_array_equal(found, own(alone, alone.state.velocity[axis])[planes])


@pytest.mark.mpi
@pytest.mark.parametrize("method", list(ITERATIONS))
@pytest.mark.parametrize("faces", [PERIODIC, WALLS])
@pytest.mark.parametrize("accuracy", [(0.0, 7), (1e-9, 200)], ids=["all", "enough"])
def test_bits_do_not_depend_on_the_ranks(backend, communicator, faces, method, accuracy):
    """A rank with one plane, the lowest, has no face across z between walls."""
    others = communicator.size - 1
    weights = [1.0, *[5.0 / max(others, 1)] * others]
    accuracy = Accuracy(*accuracy, method)
    alone = stepper_of(backend, this_rank(), faces, method, accuracy=accuracy)
    shared = stepper_of(backend, communicator, faces, method, accuracy=accuracy, weights=weights)
    for stepper in (alone, shared):
        advance(stepper, 0.0, 0.02)
        advance(stepper, 0.02, 0.02)
    planes = slice(shared.grid.first, shared.grid.first + shared.grid.planes)
    for axis in range(3):
        found = own(shared, shared.state.velocity[axis])
        expected = own(alone, alone.state.velocity[axis])[planes]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("faces", [PERIODIC, WALLS, CAVITY, TUNNEL])
@pytest.mark.parametrize("cells", [(40, 24, 12), (13, 11, 9)], ids=["many", "few"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_small_grids_in_sequence_have_the_same_bits(
    backend, alone, monkeypatch, faces, cells, dtype
):
    if not backend.runs_ahead:
        pytest.skip("a CPU makes the calls of a sequence one by one")
    found = []
    for few in (multigrid.FEW_CELLS, 0):
        monkeypatch.setattr(multigrid, "FEW_CELLS", few)
        given = (backend, alone, cells, faces, still(VISCOSITY, False), dtype)
        stepper = make_stepper(*given, obstacles=BALL)
        put(stepper, lambda axis, x, y, z: np.sin(9 * x + 5 * y + 7 * z + axis))
        for step in range(3):
            advance(stepper, 0.01 * step, 0.01)
        found.append([own(stepper, array) for array in stepper.state.velocity])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("cells", [(96, 36, 4), (24, 12, 12)], ids=["thin", "thick"])
def test_a_periodic_axis_of_few_cells_costs_no_iterations(backend, cells):
    """On coarse grids such an axis is one cell, its own neighbour."""
    walls = (Face("no-slip"),) * 3
    faces = Faces(Face("outflow"), *walls, *(Face("periodic"),) * 2)
    accuracy = Accuracy(1e-6, 100)
    physics = still(VISCOSITY, False)
    stepper = make_stepper(
        backend, this_rank(), cells, faces, physics, "f8", accuracy=accuracy, obstacles=BALL
    )
    noise = np.random.default_rng(1).uniform(-1.0, 1.0, (3, *(n + 2 for n in cells[::-1])))
    put(stepper, lambda axis, x, y, z: noise[axis])
    advance(stepper, 0.0, 0.02)
    assert 0 < stepper.projection.iterations < 16


def test_a_box_without_faces_is_left_alone(backend):
    """Between two walls a cell apart there is no face that changes."""
    physics = still(VISCOSITY, False)
    accuracy = Accuracy(1e-12, 300, "red-black")
    stepper = make_stepper(backend, this_rank(), (6, 8, 1), WALLS, physics, "f8", accuracy=accuracy)
    put(stepper, lambda axis, x, y, z: np.sin(3.0 * x + 2.0 * y + axis))
    advance(stepper, 0.0, 0.02)
    assert np.isfinite(stepper.grid.largest_speed(stepper.state.velocity))
    assert np.all(own(stepper, stepper.state.velocity[2]) == 0.0)


def test_a_box_holds_the_faces_between_walls_alone(backend):
    grid = stepper_of(backend, this_rank(), WALLS, "red-black").grid
    boxes = [Box(grid, axis, Colours(grid.planes), grid.zeros) for axis in (None, 0, 1, 2)]
    sizes = [(12, 8, 6), (11, 8, 6), (12, 7, 6), (12, 8, 5)]
    assert [box.cells for box in boxes] == sizes
    assert [box.first for box in boxes] == [(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1)]


@pytest.mark.parametrize("most", [0, 3])
def test_solutions_begin_from_zero_whatever_arrays_hold(backend, most):
    grid = stepper_of(backend, this_rank(), WALLS, "red-black").grid
    box = Box(grid, None, Colours(grid.planes), grid.zeros)
    x, b = box.pair()
    found = grid.zeros()
    x[...] = np.nan
    box.kernels.clear(b)
    assert Relaxer(box).improve(x, b, POISSON, 0.0, most) == most
    box.set(x, found)
    assert not backend.download(found).any()


@pytest.mark.parametrize("method", ["multigrid", "red-black"])
def test_no_step_of_a_resumed_run_has_to_make_kernels(backend, monkeypatch, method):
    accuracy = Accuracy(TOLERANCE["f8"], ITERATIONS[method], method)
    given = (backend, this_rank(), CELLS, WALLS, still(VISCOSITY, False), "f8")
    stepper = make_stepper(*given, accuracy=accuracy)
    for name in ("make_kernels", "Multigrid"):
        monkeypatch.delattr(boxes, name)
    stepper.state.velocity[0][:, 3:5, 3:9] = 1.0
    stepper.resume(0.0)
    advance(stepper, 0.0, 0.02)
    assert stepper.projection.iterations > 0


class BoxOfPlanes:
    """Kernels of a box with some planes of a size; `arrays` counts what they made."""

    def __init__(self, planes, size):
        self.slab = SimpleNamespace(planes=planes)
        self.colours_shape = (2, planes + 2, size)
        self.made = 0

    def colours(self, number):
        self.made += 1
        return np.zeros((number, *self.colours_shape))


def test_memory_of_boxes_is_made_anew_on_all_ranks_at_once():
    """Peers ask each other where new memory is: a rank that did so alone would wait for ever."""
    made = []
    for fewer in (1, 0):  # the lowest rank has a plane less of the faces across z
        colours = Colours(5)
        boxes = [BoxOfPlanes(5 - fewer * (size == 64), size) for size in (48, 48, 64)]
        boxes += [BoxOfPlanes(5, 64), *boxes]
        for box in boxes:
            pair = colours.pair(box)
            assert [array.shape for array in pair] == [box.colours_shape] * 2
        made.append([box.made for box in boxes])
    assert made == [[1, 0, 1, 0, 1, 0, 1]] * 2


@pytest.mark.parametrize("obstacles", [(), BALL], ids=["plain", "ball"])
@pytest.mark.parametrize("method", list(ITERATIONS))
def test_coefficients_that_are_alike_need_not_be_read(backend, monkeypatch, method, obstacles):
    """Tiles whose faces have one coefficient are relaxed to the same bits as others."""
    few = Accuracy(0.0, 3, method)
    given = {"obstacles": obstacles, "accuracy": few, "dtype": "f4"}
    found = stepper_of(backend, this_rank(), OPEN, method, **given)
    assert backend.download(found.projection.solver.coefficients.plain).any()
    monkeypatch.setattr(Coefficients, "mark_plain", lambda self, grid: None)
    expected = stepper_of(backend, this_rank(), OPEN, method, **given)
    for stepper in (found, expected):
        advance(stepper, 0.0, 0.02)
    for axis in range(3):
        np.testing.assert_array_equal(
            own(found, found.state.velocity[axis]), own(expected, expected.state.velocity[axis])
        )


@pytest.mark.parametrize("second_order", [True, False])
def test_parts_far_from_obstacles_are_computed_apart(backend, monkeypatch, second_order):
    """What viscosity and diffusion do there has the same bits as with a look at walls."""
    ball = [Sphere((0.2, 0.25, 0.2), 0.1, velocity=(0.1, 0.0, 0.0))]
    given = (backend, this_rank(), (24, 20, 16), TUNNEL, still(VISCOSITY, second_order), "f4")
    steppers = []
    for least in (1, 1 << 30):
        monkeypatch.setattr(solids, "WORTHWHILE", least)
        steppers.append(make_stepper(*given, obstacles=ball))
        assert len(list(steppers[-1].solids.parts_of(steppers[-1].grid.region))) == (
            4 if least == 1 else 1
        )
        put(steppers[-1], lambda axis, x, y, z: np.sin(5.0 * (x + y * z) + axis))
        advance(steppers[-1], 0.0, 0.02)
    found, expected = steppers
    for axis in range(3):
        np.testing.assert_array_equal(
            own(found, found.state.velocity[axis]), own(expected, expected.state.velocity[axis])
        )
