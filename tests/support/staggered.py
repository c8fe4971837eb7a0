"""Staggered fluids on any ranks, for tests."""

from functools import cache

import numpy as np
from support.fluids import make_halo

from hybrid_nbody.backends.cells import make_program
from hybrid_nbody.fluid.kernels.cells import LOOPS, MODULES
from hybrid_nbody.fluid.staggered.faces import Face, Faces
from hybrid_nbody.fluid.staggered.grid import Grid
from hybrid_nbody.fluid.staggered.pressure import Accuracy
from hybrid_nbody.fluid.staggered.profiles import Uniform
from hybrid_nbody.fluid.staggered.solids import Solids
from hybrid_nbody.fluid.staggered.state import Physics, Span
from hybrid_nbody.fluid.staggered.step import Stepper

PERIODIC = Faces.of_axes(("periodic",) * 3)
WALLS = Faces.of_axes(("no-slip", "free-slip", "no-slip"))
LID = Face("no-slip", Uniform((1.0, 0.0, 0.0)))
CAVITY = Faces(*(Face("no-slip"),) * 3, LID, Face("periodic"), Face("periodic"))
INLET = Face("inflow", Uniform((0.3, 0.0, 1.0)), {"density": 1.0})
TUNNEL = Faces(*(Face("free-slip"),) * 4, INLET, Face("outflow"))
"""Fluid enters below and leaves above."""

TOLERANCE = {"f4": 1e-6, "f8": 1e-12}
ROUGH = Accuracy(1e-5, 60)
"""Enough for what rounding does not change."""


@cache
def program_of(backend, dtype):
    """Return the functions of a cell, compiled once."""
    return make_program(backend, MODULES, dtype, LOOPS)


def make_stepper(
    backend, communicator, cells, faces, physics, dtype="f8", weights=None, obstacles=(),
    accuracy=None,
):  # fmt: skip
    """Return what advances a staggered fluid at rest."""
    halo = make_halo(backend, communicator, cells[2], faces.periodic[2], weights)
    grid = Grid(cells, faces, halo, backend, program_of(backend, dtype), dtype)
    accuracy = accuracy or Accuracy(TOLERANCE[dtype], 60)
    return Stepper(grid, Solids(grid, obstacles), physics, accuracy)


def still(viscosity=0.0, second_order=True, **lift):
    """Return the physics of a fluid whose density may be lifted."""
    lifts = {"density": lift["density"]} if lift else {}
    return Physics(viscosity, {"density": 1e-3}, lifts, second_order)


def centres(grid, axis=None):
    """Return x, y and z of the elements of an array, at the low faces of an axis or at centres."""
    h = grid.spacing
    planes, rows, columns = grid.shape
    z = (np.arange(planes) - 0.5 + grid.first) * h
    y = (np.arange(rows) - 0.5) * h
    x = (np.arange(columns) - 0.5) * h
    x, y, z = (c - 0.5 * h * (axis == i) for i, c in enumerate((x, y, z)))
    z, y, x = np.meshgrid(z, y, x, indexing="ij")
    return x, y, z


def put(stepper, velocity, density=None, time=0.0):
    """Give the fluid a velocity ``velocity(axis, x, y, z)`` and a density, and begin."""
    grid = stepper.grid
    state = stepper.state
    for axis in range(3):
        values = velocity(axis, *centres(grid, axis)).astype(grid.dtype)
        state.velocity[axis][...] = grid.backend.upload(values)
    if density is not None:
        values = density(*centres(grid)).astype(grid.dtype)
        state.scalars["density"][...] = grid.backend.upload(values)
    stepper.begin(time)
    for before, now in zip(state.before, state.velocity, strict=bool(state.before)):
        before[...] = now


def advance(stepper, time, dt):
    """Take a step."""
    stepper.step(Span(time, dt, time + dt))


def fields_after(stepper, velocity, steps, dt):
    """Return all fields of a flow with a density after some steps: a rank's first plane, and its
    cells.
    """
    put(stepper, velocity, lambda x, y, z: np.sin(9.0 * (x + y * z)))
    for step in range(steps):
        advance(stepper, dt * step, dt)
    state = stepper.state
    fields = (*state.velocity, state.pressure, state.scalars["density"])
    return stepper.grid.first, [own(stepper, field) for field in fields]


def assert_same_planes(mine, whole):
    """Compare what `fields_after` returns of a rank's planes and of all planes."""
    first, fields = mine
    for field, all_planes in zip(fields, whole[1], strict=True):
        np.testing.assert_array_equal(field, all_planes[first : first + len(field)])


def own(stepper, array):
    """Return the cells of an array that a rank owns, on the host."""
    k0, k1, j0, j1, i0, i1 = stepper.grid.region
    return stepper.grid.backend.download(array)[k0:k1, j0:j1, i0:i1]
