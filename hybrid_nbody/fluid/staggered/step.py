"""A step of the staggered fluid: forces, advection, viscosity, projection, scalars."""

from collections.abc import Callable, Hashable
from functools import partial

from hybrid_nbody.fluid.staggered.advection import Advection
from hybrid_nbody.fluid.staggered.budget import Budget
from hybrid_nbody.fluid.staggered.confinement import Confinement
from hybrid_nbody.fluid.staggered.diffusion import Diffusion
from hybrid_nbody.fluid.staggered.ghosts import Ghosts
from hybrid_nbody.fluid.staggered.grid import AXES, STEPS, Grid, Vector
from hybrid_nbody.fluid.staggered.memory import Memory
from hybrid_nbody.fluid.staggered.pressure import Accuracy, Projection, subtract_gradient
from hybrid_nbody.fluid.staggered.repeats import Repeats
from hybrid_nbody.fluid.staggered.scalars import Scalars
from hybrid_nbody.fluid.staggered.solids import Solids
from hybrid_nbody.fluid.staggered.state import Physics, Span, State

SLACK = 0.5
"""How far a component of the velocity may be beyond those that it comes from, over their range.

At a smooth maximum the velocity between elements is greater than at them, by less than this: with
no slack the scheme would be of first order there, without a limit it would be unstable.
"""

MOST_EXPLICIT = 2.0
"""Viscosity times time over the square of the edge of a cell up to which steps are of second order
in a box with an outlet; with 3 the flow in a channel is a tenth too fast, with 10 unstable."""


class Stepper:
    """Advances the fluid.

    Parameters
    ----------
    grid : Grid
    solids : Solids
    physics : Physics
    accuracy : Accuracy
    """

    def __init__(self, grid: Grid, solids: Solids, physics: Physics, accuracy: Accuracy) -> None:
        self.grid = grid
        self.solids = solids
        self.physics = physics
        names = list(physics.diffusivity)
        self.ghosts = Ghosts(grid, names)
        before = grid.vector() if physics.second_order else ()
        scalars = {name: grid.zeros() for name in names}
        self.state = State(grid.vector(), before, grid.zeros(), scalars)
        self.memory = Memory(grid)
        self.cell_scratch = self.memory.cell_scratch
        self.repeats = Repeats(grid, self.ghosts, solids)
        self.projection = Projection(self.repeats, self.ghosts, solids, accuracy, self.memory)
        self.diffusion = Diffusion(self.repeats, self.ghosts, solids, accuracy, self.memory)
        self.advection = Advection(grid, solids)
        self.confinement = Confinement(grid, self.ghosts, self.memory)
        self.budget = Budget(grid, names, physics.conserve)
        self.scalars = Scalars(self)
        self.regions = tuple(grid.open_faces(axis) for axis in AXES)
        self.inner = tuple(grid.inner_faces(axis) for axis in AXES)
        self._prepare()

    def _prepare(self) -> None:
        """Begin to compile the kernels of boxes; a GPU goes on with that in the background.

        Else the first step might do that: neither a fluid at rest nor a run that is resumed solves
        anything before.
        """
        self.projection.solver.prepare()
        for axis in AXES if self.physics.viscosity else ():
            self.diffusion.prepare(axis)
        if any(self.physics.diffusivity.values()):
            self.diffusion.prepare(None)

    def begin(self, time: float) -> None:
        """Start from a state: make it valid, and let the pressure hold what lifts the fluid."""
        self.restart(time)
        self.grid.clear(self.state.pressure)
        if self.physics.lift:
            self._hold_lift()

    def _hold_lift(self) -> None:
        """Let the pressure hold what lifts the fluid."""
        lifted = self.next
        for axis in AXES:
            given = (self.state.velocity[axis], lifted[axis])
            self.grid.program.run("copy", self.grid.everywhere, *given)
        self._add_lift(lifted, 1.0)
        self.solids.fill_solid(lifted, self.ghosts)
        self.projection.project(lifted, self.state.pressure, self.grid.spacing)

    def restart(self, time: float) -> None:
        """Make the ghosts of a state valid, and its velocity free of divergence."""
        self.resume(time)
        self.projection.project(self.state.velocity, self.state.pressure, 0.0)
        self._extend_sliding()

    def resume(self, time: float) -> None:
        """Make the ghosts of a state valid whose velocity is free of divergence."""
        self.ghosts.at(time)
        self._place(time)
        self.fill()

    def fill(self) -> None:
        """Make all ghosts valid, and fields what they are within obstacles."""
        self.repeat(self._fill_all)

    def _fill_all(self) -> None:
        """Do so: for `fill`, which repeats it."""
        state = self.state
        self._fill_solid()
        self.ghosts.fill(state.pressure, self.ghosts.pressure)
        for name, array in state.scalars.items():
            self.solids.blank(array)
            self.ghosts.fill(array, self.ghosts.scalar[name])

    def _place(self, time: float) -> None:
        """Put obstacles where they are at a time."""
        if self.solids.moving:
            self.solids.place(time)
            self.projection.refresh()

    def _go_to(self, time: float) -> None:
        """Let faces and obstacles go to a time; what these uncover holds what was beside it."""
        self.ghosts.at(time)
        if not self.solids.moving:
            return
        state = self.state
        kinds = [self.ghosts.pressure, *self.ghosts.scalar.values()]
        fields = list(zip((state.pressure, *state.scalars.values()), kinds, strict=True))
        self.solids.extend(state.pressure, self.ghosts.pressure, self.ghosts)
        for name in state.scalars:
            self.scalars.extend(name)
        self._place(time)
        for field, kind in fields:
            self.solids.blank(field)
            self.ghosts.fill(field, kind)

    def _extend_sliding(self) -> None:
        """Continue a flow that slides along obstacles into them."""
        if self.solids.slips:
            self.repeat(self._fill_solid)

    def _fill_solid(self) -> None:
        """Give the velocity its values within obstacles, and fill its ghosts."""
        self.solids.fill_solid(self.state.velocity, self.ghosts)

    def step(self, span: Span, ratio: float = 1.0) -> None:
        """Advance the state.

        Parameters
        ----------
        span : Span
        ratio : float
            This step over the one before.
        """
        if not self.ghosts.steady:
            self.ghosts.at(span.start)
            self._fill_solid()
        if self._is_second_order(span.length):
            self._second_order(span, ratio)
        else:
            self._first_order(span)

    def _is_second_order(self, dt: float) -> bool:
        """Return whether a step of some length is of second order.

        Before an outlet it is not where viscosity reaches far in a step: half of it would be
        explicit, and at the faces of an outlet nothing damps that.
        """
        reach = self.physics.viscosity * dt / self.grid.spacing**2
        is_far = self.grid.faces.has_outlets and reach > MOST_EXPLICIT
        return self.physics.second_order and not is_far

    @property
    def next(self) -> Vector:
        """Return where the next velocity is made."""
        return self.memory.next

    # --- first order ------------------------------------------------------------------------------

    def _first_order(self, span: Span) -> None:
        """Carry the fluid along a flow without divergence; what the pressure was holds it."""
        state = self.state
        dt = span.length
        self.advection.follow(state.velocity, dt)
        self.scalars.carry(dt)
        self.repeat(self._carry_once, dt)
        self._rotate()
        self.repeat(self._push, dt)
        self._go_to(span.end)
        self._finish(dt, 1.0)

    def repeat(self, action: Callable[..., None], *arguments: Hashable) -> None:
        """Do what follows from the fields and the flow that paths follow; see `Repeats`."""
        state = self.state
        arrays = (*state.velocity, *state.before, *self.next, state.pressure)
        others = (action.__name__, *arguments, *self.advection.flow_key)
        scalars = tuple(state.scalars.values())
        self.repeats.do(partial(action, *arguments), (*arrays, *scalars), *others)

    def _carry_once(self, dt: float) -> None:
        """Set the next velocity to what comes along the flow, to first order."""
        for axis in AXES:
            given = (self.state.velocity[axis], self.ghosts.velocity[axis], self.regions[axis])
            self.advection.carry(*given, self.next[axis])
        self._confine(self.next, dt)

    def _push(self, dt: float) -> None:
        """Add what pressure and scalars do to the velocity in a time."""
        self._add_pressure(self.state.velocity, dt)
        self._add_lift(self.state.velocity, dt)

    def _finish(self, dt: float, implicit: float) -> None:
        """Apply viscosity and the projection to the velocity of the state."""
        state = self.state
        ratio = implicit * self.physics.viscosity * dt / self.grid.spacing**2
        if self.solids.masked:
            self.repeat(self._hold_at_walls, ratio)
        self._spread_velocity(ratio)
        self.projection.project(state.velocity, state.pressure, self.grid.spacing / dt)
        self._extend_sliding()

    def _hold_at_walls(self, ratio: float) -> None:
        """Give the velocity its values within obstacles, and at walls to which it sticks."""
        self._fill_solid()
        self._stick(ratio)

    def _spread_velocity(self, ratio: float) -> None:
        """Apply viscosity to the velocity of the state, whose ghosts are valid in the end."""
        velocity = self.state.velocity
        if not ratio:
            self.repeat(self._fill_velocity)
        for axis in AXES if ratio else ():
            self.diffusion.spread(
                velocity[axis], self.ghosts.velocity[axis], self.inner[axis], ratio
            )

    def _fill_velocity(self) -> None:
        """Fill the ghosts of the velocity."""
        self.ghosts.fill_velocity(self.state.velocity)

    def _stick(self, ratio: float) -> None:
        """Hold the fluid at walls to which it sticks."""
        if self.physics.viscosity:
            self.solids.stick(self.state.velocity)
            self.solids.drag_along(self.state.velocity, ratio, self.inner)

    def _confine(self, velocity: Vector, dt: float) -> None:
        """Add what confinement of the present eddies does to a velocity in a time."""
        if self.physics.confinement:
            strength = dt * self.physics.confinement
            self.confinement.add(self.state.velocity, strength, velocity, self.inner)

    def _add_lift(self, velocity: Vector, dt: float) -> None:
        """Add what the scalars do to a velocity in a time."""
        for name, lift in self.physics.lift.items():
            for axis in AXES:
                low = tuple(-step for step in STEPS[axis])
                given = (velocity[axis], self.state.scalars[name], dt * lift[axis], *low)
                if lift[axis]:
                    self.grid.program.run("add_between", self.inner[axis], *given)

    # --- second order -----------------------------------------------------------------------------

    def _second_order(self, span: Span, ratio: float) -> None:
        """Extrapolate the flow to the middle of the step; explicit and implicit halves of forces.

        The half of the forces before advection travels with the fluid (Crank and Nicolson along
        paths); the pressure of the step before stands for that of this one, and what the projection
        adds corrects it.
        """
        dt = span.length
        self.ghosts.at(span.start + 0.5 * dt)
        self.repeat(self._extrapolate, ratio)
        self.ghosts.at(span.start)
        self.repeat(self._begin_explicit, dt)
        self.advection.follow(self._before, dt)
        self.scalars.carry(dt)
        self.repeat(self._carry_velocity)
        self._rotate()
        self.repeat(self._push, 0.5 * dt)
        self._go_to(span.end)
        self._finish(dt, 0.5)

    def _extrapolate(self, ratio: float) -> None:
        """Replace the velocity a step ago by that in the middle of this one."""
        state = self.state
        for axis in AXES:
            given = (state.velocity[axis], state.before[axis], 0.5 * ratio)
            self.grid.program.run("extrapolate", self.regions[axis], *given)
        self.solids.fill_solid(self._before, self.ghosts)

    def _begin_explicit(self, dt: float) -> None:
        """Set the next velocity to the present one, with what acts on it before it is carried."""
        velocity = self.state.velocity
        for axis in AXES:
            given = (velocity[axis], self.next[axis])
            self.grid.program.run("copy", self.grid.everywhere, *given)
        self._confine(self.next, dt)
        self._add_explicit_half(self.next, velocity, dt)

    @property
    def _before(self) -> Vector:
        """Return the velocity a step ago."""
        u, v, w = self.state.before
        return u, v, w

    def _add_explicit_half(self, out: Vector, velocity: Vector, dt: float) -> None:
        """Add half of viscosity, pressure and lift of the beginning of a step."""
        ratio = 0.5 * self.physics.viscosity * dt / self.grid.spacing**2
        for axis in AXES if ratio else ():
            fields = (velocity[axis], out[axis])
            kind = self.ghosts.velocity[axis]
            self.diffusion.run("add_viscosity", fields, kind, self.inner[axis], ratio)
        if ratio:
            self.solids.drag_along(out, ratio, self.inner)
        self._add_pressure(out, 0.5 * dt)
        self._add_lift(out, 0.5 * dt)
        if ratio and self.solids.masked:
            self.solids.stick(out)
        self.solids.fill_solid(out, self.ghosts)

    def _add_pressure(self, velocity: Vector, dt: float) -> None:
        """Add what the pressure does in a time."""
        subtract_gradient(self.solids, velocity, self.state.pressure, dt / self.grid.spacing)

    def _carry_velocity(self) -> None:
        """Set the next velocity to what comes along the flow."""
        run = self.grid.program.run
        for axis in AXES:
            kind = self.ghosts.velocity[axis]
            source = self.next[axis]
            self.advection.carry(source, kind, self.regions[axis], self.cell_scratch)
            run("copy", self.grid.everywhere, source, self.memory.potential)
            self.solids.fill_solid_component(self.cell_scratch, axis, self.ghosts)
            given = (self.memory.potential, kind, self.cell_scratch, self.regions[axis], source)
            self.advection.correct(*given, SLACK)

    def _rotate(self) -> None:
        """Replace the velocity by the next one; keep what it was, if that is of use."""
        state = self.state
        free = self._before if state.before else state.velocity
        state.before = state.velocity if state.before else ()
        state.velocity, self.memory.next = self.next, free
