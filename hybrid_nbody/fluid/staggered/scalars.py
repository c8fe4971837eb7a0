"""Scalars of the staggered fluid: carried along the flow, they diffuse."""

from typing import TYPE_CHECKING

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.staggered.ghosts import Kind

if TYPE_CHECKING:  # the stepper has scalars
    from hybrid_nbody.fluid.staggered.step import Stepper


class Scalars:
    """Carries the scalars of a fluid.

    Parameters
    ----------
    stepper : Stepper
        Has the fields, and what carries and spreads them.
    """

    def __init__(self, stepper: "Stepper") -> None:
        self.stepper = stepper
        self.grid = stepper.grid
        self.ghosts = stepper.ghosts
        self.solids = stepper.solids
        self.physics = stepper.physics
        self.fields = stepper.state.scalars
        self.scratch = stepper.memory.cell_scratch

    def carry(self, dt: float) -> None:
        """Carry all scalars along the flow, and let them diffuse."""
        step = self.stepper
        for name, field in self.fields.items():
            step.repeat(self._carry_one, name, dt)
            ratio = self._implicit_ratio(name, dt)
            if ratio:
                step.diffusion.spread(field, self.ghosts.scalar[name], self.grid.region, ratio)
            self.solids.blank(field)
            step.budget.finish(name, field)
            step.repeat(self._fill, name)

    def _implicit_ratio(self, name: str, dt: float) -> float:
        """Return the part of the diffusion of a scalar in a time that is solved for."""
        implicit = 0.5 if self.physics.second_order else 1.0
        return implicit * (self.physics.diffusivity[name] * dt / self.grid.spacing**2)

    def _carry_one(self, name: str, dt: float) -> None:
        """Carry a scalar along the flow, with the explicit part of its diffusion."""
        field, kind = self.fields[name], self.ghosts.scalar[name]
        advection = self.stepper.advection
        self.stepper.budget.begin(field)
        self.extend(name)
        if self.physics.second_order and self.physics.diffusivity[name]:
            self._add_diffusion(field, kind, self._implicit_ratio(name, dt))
        advection.carry(field, kind, self.grid.region, self.scratch)
        carried = self.scratch
        if self.physics.second_order:
            self.ghosts.fill(carried, kind)
            self._bound(name)
            carried = self.stepper.memory.own[0]
            advection.correct(field, kind, self.scratch, self.grid.region, carried, 0.0)
        self.grid.program.run("copy", self.grid.region, carried, field)

    def extend(self, name: str) -> None:
        """Continue a scalar, whose ghosts are valid, into obstacles."""
        if not self.solids.masked:
            return
        field = self.fields[name]
        self._bound(name)
        self.solids.extend(field, self.ghosts.bound[name], self.ghosts)
        if self.ghosts.inlets:
            self._fill(name)

    def _bound(self, name: str) -> None:
        """Give the ghosts of a scalar behind inlets the value that enters."""
        if self.ghosts.inlets:
            self.ghosts.fill(self.fields[name], self.ghosts.bound[name])

    def _fill(self, name: str) -> None:
        """Fill the ghosts of a scalar."""
        self.ghosts.fill(self.fields[name], self.ghosts.scalar[name])

    def _add_diffusion(self, field: Array, kind: Kind, ratio: float) -> None:
        """Add an explicit part of diffusion."""
        run = self.grid.program.run
        run("copy", self.grid.everywhere, field, self.scratch)
        fields = (self.scratch, field)
        self.stepper.diffusion.run("add_diffusion", fields, kind, self.grid.region, ratio)
        self.ghosts.fill(field, kind)
