"""What ``bench fluid`` computes: the plume of the course on one rank, random fields, and the truth they are held to."""

import numpy as np

from hybrid_nbody.fluid.frames import Frames
from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.kernels import make_kernels, reference
from hybrid_nbody.fluid.model import FluidModel
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.sources import Box, Event, Sources
from hybrid_nbody.fluid.stencil import POISSON
from hybrid_nbody.fluid.step import Physics
from hybrid_nbody.parallel.exchange.halo import FullGrid

DTYPE = "f4"
FREE_SLIP = Boundary.of_axes(("free-slip",) * 3)

COURSE = Accuracy(iterations=20, tolerance=1e-7)
"""When a solve of the course's program ends."""

PLUME = Physics(dt=0.1, viscosity=1e-4, diffusivity=1e-4, projection="course", carry_over=True)
CLEARED = Physics(dt=0.1, viscosity=1e-4, diffusivity=1e-4)
PLUME_STEPS = 100

PLUME_EVENTS = (
    (0, "density", (8.0,)),
    (5, "velocity", (0.0, 2.0, 0.0)),
    (12, "density", (6.0,)),
    (20, "velocity", (1.0, 0.0, 1.0)),
    (31, "density", (9.0,)),
    (38, "velocity", (0.0, -1.0, 2.0)),
    (46, "density", (5.0,)),
    (55, "velocity", (-2.0, 1.0, 0.0)),
    (63, "density", (10.0,)),
    (71, "velocity", (0.0, 0.0, -3.0)),
    (80, "density", (7.0,)),
    (88, "velocity", (2.0, 2.0, 2.0)),
)
"""Step, field and values, all in the cell at the centre: those of ``input/plume_84.yaml`` and its
fellows."""

SMALL = (10, 8, 9)
"""Cells nx, ny, nz on which results are compared with the float64 reference."""


class OneRank:
    """The ranks of a benchmark: this process alone, without MPI."""

    rank = 0
    size = 1
    is_root = True

    def gather(self, value):
        """Return the value of every rank."""
        return [value]

    def concatenate(self, rows):
        """Return the rows of all ranks."""
        return rows


def make_halo(cells) -> FullGrid:
    """Return the halo of a grid of cells nx, ny, nz within free-slip walls."""
    return FullGrid(cells[2], periodic=False)


def make_slab(cells) -> Slab:
    """Return such a grid."""
    return Slab.whole(cells, FREE_SLIP)


def centre(cells) -> Box:
    """Return the cell at the centre, as the course's program numbers it."""
    return Box.cell(*(number // 2 - 1 for number in cells))


def make_model(backend, cells, solver, physics, events) -> FluidModel:
    """Return a fluid at rest.

    Parameters
    ----------
    solver : callable
        Takes kernels, halo and `Accuracy`; returns a solver.
    events : sequence of (step, field, values)
        What happens in the cell at the centre.
    """
    halo = make_halo(cells)
    kernels = make_kernels(backend, make_slab(cells), DTYPE)
    place = centre(cells)
    sources = Sources([Event(step, step, field, values, place) for step, field, values in events])
    solver = solver(kernels, halo, COURSE)
    return FluidModel(
        kernels, halo, OneRank(), solver, physics, sources, Frames(), COURSE.iterations
    )


def random_fields(cells, seed=1):
    """Return a first guess and a right-hand side of random numbers, (nz, ny, nx) float32; the latter has no average."""
    random = np.random.default_rng(seed)
    x, b = random.standard_normal((2, *reversed(cells)), np.float32)
    return x, b - b.mean()


def smooth_field(edge: int, waves=4, seed=1):
    """Return a cube of random cosines, of 1 to `waves` half waves along each edge, float32; its average is zero."""
    number = np.arange(1, waves + 1)
    cosines = np.cos(np.pi * number[:, None] * (np.arange(edge) + 0.5) / edge)
    weight = np.random.default_rng(seed).standard_normal((waves,) * 3)
    return np.einsum("abc,az,by,cx->zyx", weight, cosines, cosines, cosines, optimize=True).astype(
        np.float32
    )


def relative_error(found, expected) -> float:
    """Return the largest difference over the largest value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def relaxed(cells, iterations: int):
    """Return what red-black iterations make of `random_fields` by Poisson's equation, in float64."""
    x, b = (field.astype(float) for field in random_fields(cells))
    return reference.relax(x, b, POISSON, FREE_SLIP, iterations)[0]
