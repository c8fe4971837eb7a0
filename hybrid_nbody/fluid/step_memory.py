"""The memory of a step on one rank: fields, arrays of the solver, and scratch made of both."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.fluid.kernels.contract import Array, Kernels, Velocity

FIELDS = ("u", "next_u", "next_v", "v", "w", "next_w", "density", "next_density")
"""The fields as they lie in memory, so that those of each scratch are next to each other."""

SCRATCH = {
    "diffusion of u": {"u", "next_u"},
    "diffusion of v": {"v", "next_v"},
    "diffusion of w": {"w", "next_w"},
    "diffusion of density": {"density", "next_density"},
    "first projection": {"v", "w"},
    "second projection": {"next_u", "next_v"},
}
"""The two fields whose memory each part of a step may overwrite. A diffusion: the field, whose
values are in the right-hand side by then, and the next one. The projection of the next velocity:
components of the present one, which have been diffused; that of the velocity: components of the
next one, which have been advected."""

ARRAYS = len(FIELDS) + 2
"""Arrays of the grid that a rank holds: the fields, and two of the solver."""

HALO_PLANES = 2
"""Planes that a rank holds beyond its own."""

OF_COMPLETE_GRIDS = 5
"""Of the finest coarse grid that is complete on every rank: arrays of that and the next ones, and
rows on the way to them, where they do not fit into scratch memory."""


def rank_bytes(cells: Sequence[int], planes: int, dtype: DTypeLike) -> int:
    """Return the bytes that a rank holds for some planes of a grid of `cells`."""
    nx, ny, _ = cells
    return ARRAYS * (planes + HALO_PLANES) * nx * ny * np.dtype(dtype).itemsize


def complete_bytes(
    cells: Sequence[int], message_cells: int, dtype: DTypeLike, arrays: int = OF_COMPLETE_GRIDS
) -> int:
    """Return the bytes of coarse grids that each of several ranks keeps complete.

    Parameters
    ----------
    cells : sequence of int
        Of the finest grid; each coarse one has half as many along each axis.
    message_cells : int
        The most cells of a grid that is complete.
    dtype : dtype_like
    arrays : int, optional
        Of the finest complete grid, that hold all of them.
    """
    coarse = math.prod(-(-number // 2) for number in cells)
    return arrays * min(coarse, message_cells) * np.dtype(dtype).itemsize


@dataclass(frozen=True)
class StepMemory:
    """Fields by name, colours of the solver, and scratch made of those not needed meanwhile.

    Attributes
    ----------
    fields : dict of array
        The fields of `FIELDS`, zero at first. The next ones are scratch between steps, except in a
        run that carries over: there they hold what the next step starts by adding.
    block : array
        All fields in one piece.
    solver : array
        The colours of the solution and of the right-hand side, in one piece.
    """

    fields: dict[str, Array]
    block: Array
    solver: Array

    @classmethod
    def allocate(cls, kernels: Kernels) -> "StepMemory":
        """Return the memory of a rank: eight fields and two arrays of colours, all zero."""
        block = kernels.backend.zeros((len(FIELDS), *kernels.slab.shape), kernels.dtype)
        return cls(dict(zip(FIELDS, block, strict=True)), block, kernels.colours(2))

    def scratch(self, part: str) -> Array:
        """Return flat memory, two fields long, that is free during a part of a step.

        Parts are named in `SCRATCH`.
        """
        first = min(map(FIELDS.index, SCRATCH[part]))
        return self.block[first : first + 2].reshape(-1)

    def solver_scratch(self) -> Array:
        """Return the flat memory of the solver's arrays, which are free during advection."""
        return self.solver.reshape(-1)

    def velocity(self, prefix: str = "") -> Velocity:
        """Return the velocity, or, with the prefix ``next_``, the next one."""
        return Velocity(*(self.fields[prefix + name] for name in "uvw"))


@dataclass(frozen=True)
class State:
    """The fluid on one rank's planes.

    Attributes
    ----------
    velocity : Velocity
    density : array
    next_velocity, next_density
        What a step makes of them before it advects. Between steps of a run that carries over, what
        the next step starts by adding.
    x, b : array by colour
        Solution and right-hand side of the solver.
    memory : StepMemory
        The memory of all these.
    """

    velocity: Velocity
    density: Array
    next_velocity: Velocity
    next_density: Array
    x: Array
    b: Array
    memory: StepMemory

    @property
    def carried(self) -> tuple[Array, ...]:
        """Return what a run that carries over keeps, beside velocity and density."""
        return *self.next_velocity, self.next_density


def make_state(kernels: Kernels) -> State:
    """Return a fluid at rest, without density."""
    memory = StepMemory.allocate(kernels)
    x, b = memory.solver
    return State(
        velocity=memory.velocity(),
        density=memory.fields["density"],
        next_velocity=memory.velocity("next_"),
        next_density=memory.fields["next_density"],
        x=x,
        b=b,
        memory=memory,
    )
