"""Scalars of the staggered fluid: carried along the flow, they diffuse."""

from typing import TYPE_CHECKING

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
        self.before = stepper.memory.potential

    def carry(self, dt: float) -> None:
        """Carry all scalars along the flow, and let them diffuse."""
        step = self.stepper
        for name, field in self.fields.items():
            step.repeat(self._carry_one, name, dt)
            ratio = self._implicit_ratio(name, dt)
            if ratio:
                step.diffusion.spread(field, self.ghosts.scalar[name], self.grid.region, ratio)
            self.solids.blank(field)
            self._sum_changes(name)
            step.repeat(self._fill, name)

    def _sum_changes(self, name: str) -> None:
        """Sum what a scalar gained and lost, and correct that, in a closed box."""
        budget = self.stepper.budget
        if budget.closed:
            self.solids.blank(self.before)
            budget.finish(name, self.before, self.fields[name])

    def _needs_before(self, name: str) -> bool:
        """Return whether anything follows from what a scalar was before it is carried."""
        spreads = self.physics.diffusivity[name] > 0.0
        return self.stepper.budget.closed or spreads or not self.physics.second_order

    def _implicit_ratio(self, name: str, dt: float) -> float:
        """Return the part of the diffusion of a scalar in a time that is solved for."""
        implicit = 0.5 if self.physics.second_order else 1.0
        return implicit * (self.physics.diffusivity[name] * dt / self.grid.spacing**2)

    def _carry_one(self, name: str, dt: float) -> None:
        """Carry a scalar along the flow, with the explicit part of its diffusion."""
        field, kind = self.fields[name], self.ghosts.scalar[name]
        self.extend(name)
        if self._needs_before(name):
            self.grid.program.run("copy", self.grid.everywhere, field, self.before)
        if self.physics.second_order:
            self._add_diffusion(name, dt)
            self._carry_to_second_order(name)
        else:
            self.stepper.advection.carry(self.before, kind, self.grid.region, field)

    def _carry_to_second_order(self, name: str) -> None:
        """Carry a scalar along the flow, and correct what was made of it."""
        field, kind = self.fields[name], self.ghosts.scalar[name]
        advection = self.stepper.advection
        region = self.grid.region
        corrected = self.stepper.memory.own[0]
        advection.carry(field, kind, region, self.scratch)
        self.ghosts.fill(self.scratch, kind)
        self._bound(name)
        advection.correct(field, kind, self.scratch, region, corrected, 0.0)
        self.grid.program.run("copy", region, corrected, field)

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

    def _add_diffusion(self, name: str, dt: float) -> None:
        """Add the explicit half of the diffusion of a scalar in a time."""
        ratio = self._implicit_ratio(name, dt)
        if not ratio:
            return
        field, kind = self.fields[name], self.ghosts.scalar[name]
        fields = (self.before, field)
        self.stepper.diffusion.run("add_diffusion", fields, kind, self.grid.region, ratio)
        self.ghosts.fill(field, kind)
