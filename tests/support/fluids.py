"""Fluids on any ranks, for the tests of the fluid model."""

import numpy as np
from support.bodies import make_backend
from support.ranks import transport_of

from hybrid_nbody.fluid.frames import Frames
from hybrid_nbody.fluid.grid import Boundary, Face, Slab
from hybrid_nbody.fluid.kernels import make_kernels as make_slab_kernels
from hybrid_nbody.fluid.model import FluidModel
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.solvers.relaxation import RedBlack
from hybrid_nbody.fluid.sources import Box, Event, Sources, Sphere
from hybrid_nbody.fluid.step import Physics
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.partition import Partition

FREE_SLIP = Boundary.of_axes(("free-slip",) * 3)
NO_SLIP = Boundary.of_axes(("no-slip",) * 3)
PERIODIC = Boundary.of_axes(("periodic",) * 3)
MIXED = Boundary.of_axes(("periodic", "no-slip", "free-slip"))
LID = Boundary((Face("no-slip"),) * 5 + (Face("no-slip", (0.8, -0.3, 0.0)),))
"""A cavity whose upper wall moves."""


def make_halo(backend, communicator, planes, periodic, weights=None):
    """Return the exchange of a grid whose planes are shared over the ranks of `communicator`."""
    partition = Partition.weighted(planes, weights or [1.0] * communicator.size)
    return HaloExchange(transport_of(backend, communicator), partition, communicator, periodic)


def make_kernels(backend, cells, boundary=FREE_SLIP, dtype="f8", own=None):
    """Return the kernels of a slab, by default of the whole grid."""
    own = own or slice(0, cells[2])
    return make_slab_kernels(backend, Slab(cells, boundary, own.start, own.stop - own.start), dtype)


def red_black(kernels, halo, iterations=20, tolerance=1e-7, criterion="change"):
    """Return the solver of the course."""
    return RedBlack(kernels, halo, Accuracy(iterations, tolerance, criterion))


def make_model(
    cells,
    physics,
    communicator,
    events=(),
    backend=None,
    boundary=FREE_SLIP,
    dtype="f8",
    solver=red_black,
    weights=None,
    frames=None,
):
    """Return a model at rest; ``solver(kernels, halo)`` makes its solver."""
    backend = backend or make_backend("cpu", threads=1)
    halo = make_halo(backend, communicator, cells[2], boundary.periodic[2], weights)
    kernels = make_kernels(backend, cells, boundary, dtype, halo.own)
    sources = Sources(events)
    return FluidModel(
        kernels, halo, solver(kernels, halo), physics, sources, frames or Frames(), 20
    )


def centre(cells):
    """Return the box of the cell at the centre."""
    return Box.cell(*(number // 2 - 1 for number in cells))


def stirring(cells):
    """Return events that fill a grid with density and motion."""
    ball = Sphere(tuple(0.4 * number for number in cells), 0.2 * max(cells))
    nx, ny, nz = cells
    return (
        Event(0, 0, "density", (8.0,), centre(cells)),
        Event(0, 2, "velocity", (1.0, -2.0, 3.0), ball),
        Event(1, 1, "density", (0.5,), Box((0, nx // 2, 0, ny, nz // 2, nz)), "add"),
        Event(3, 4, "velocity", (0.2, 0.1, -0.4), Box((1, nx, 0, ny // 2, 0, nz)), "add"),
    )


def whole(model, name):
    """Return all planes of a field on every rank."""
    field = model.fields()[name]
    return np.concatenate(model.communicator.gather(field.host(0, field.rows)))


def state(model):
    """Return every array of the state, whole, on every rank."""
    return {name: whole(model, name) for name in model.fields()}


DEFAULT = Physics(dt=0.1, viscosity=1e-3, diffusivity=1e-3)
