"""The memory of a step on one rank: fields, arrays of the solver, and scratch made of both."""

from dataclasses import dataclass
from typing import NamedTuple

from hybrid_nbody.fluid.kernels.contract import Array, Kernels, Velocity


class Pair(NamedTuple):
    """Two fields that lie side by side in memory: together they are one piece of scratch."""

    first: str
    second: str


FIELDS = ("u", "next_u", "next_v", "v", "w", "next_w", "density", "next_density")
"""The fields in the order in which they lie in memory."""

DIFFUSION = {
    "u": Pair("u", "next_u"),
    "v": Pair("next_v", "v"),
    "w": Pair("w", "next_w"),
    "density": Pair("density", "next_density"),
}
"""Free while a field is diffused: the field, whose values are in the right-hand side by then, and
the next one."""

FIRST_PROJECTION = Pair("v", "w")
"""Free while the next velocity is projected: the present one has been diffused."""

SECOND_PROJECTION = Pair("next_u", "next_v")
"""Free while the velocity is projected: the next one has been advected."""


@dataclass(frozen=True)
class Workspace:
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
    def allocate(cls, kernels: Kernels) -> "Workspace":
        """Return the workspace of a rank: eight fields and two arrays of colours, all zero."""
        block = kernels.backend.zeros((len(FIELDS), *kernels.slab.shape), kernels.dtype)
        return cls(dict(zip(FIELDS, block, strict=True)), block, kernels.colours(2))

    def scratch(self, pair: Pair) -> Array:
        """Return the flat memory of two fields.

        Raises
        ------
        ValueError
            If the second does not follow the first in memory.
        """
        first = FIELDS.index(pair.first)
        if FIELDS[first + 1 : first + 2] != (pair.second,):
            raise ValueError(f"{pair.second} does not follow {pair.first} in memory")
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
    workspace : Workspace
        The memory of all these.
    """

    velocity: Velocity
    density: Array
    next_velocity: Velocity
    next_density: Array
    x: Array
    b: Array
    workspace: Workspace

    @property
    def carried(self) -> tuple[Array, ...]:
        """Return what a run that carries over keeps, beside velocity and density."""
        return *self.next_velocity, self.next_density


def make_state(kernels: Kernels) -> State:
    """Return a fluid at rest, without density."""
    workspace = Workspace.allocate(kernels)
    x, b = workspace.solver
    return State(
        velocity=workspace.velocity(),
        density=workspace.fields["density"],
        next_velocity=workspace.velocity("next_"),
        next_density=workspace.fields["next_density"],
        x=x,
        b=b,
        workspace=workspace,
    )
