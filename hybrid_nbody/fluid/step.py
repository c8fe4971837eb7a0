"""One step of stable fluids: velocity, then density, each by sources, diffusion, projection and advection.

Stam, "Stable Fluids" (SIGGRAPH 1999), and "Real-Time Fluid Dynamics for Games" (GDC 2003), whose order this is.
"""

import math
from dataclasses import dataclass
from typing import Any

from hybrid_nbody.fluid.stencil import POISSON, SCALAR, diffusion


@dataclass(frozen=True)
class State:
    """Arrays of one rank: of cells, with their halo planes, or of colours.

    Attributes
    ----------
    velocity : tuple of array
        u, v and w.
    density : array
    spare_velocity : tuple of array
        Room; between steps of a run that carries over, what the next velocity step starts by adding.
    spare_density : array
        The same for the density.
    x, b : array
        Colours: solution and right-hand side of the solver.
    """

    velocity: tuple[Any, Any, Any]
    density: Any
    spare_velocity: tuple[Any, Any, Any]
    spare_density: Any
    x: Any
    b: Any

    @property
    def kept(self) -> tuple:
        """The arrays that a run which carries over takes from step to step, beside velocity and density."""
        return *self.spare_velocity, self.spare_density


def make_state(kernels) -> State:
    """Return a fluid at rest, without density."""
    fields = [kernels.field() for _ in range(8)]
    return State(tuple(fields[:3]), fields[3], tuple(fields[4:7]), fields[7], kernels.colours(), kernels.colours())


@dataclass(frozen=True)
class Physics:
    """What moves the fluid.

    Attributes
    ----------
    dt : float
        Length of a step.
    viscosity, diffusivity : float
        Of velocity and density, in edges of the box squared over time.
    projection : {"exact", "course"}
        Whether the gradient of the pressure is divided by the spacing, as it should be, or not.
    advection : {"semi-lagrangian", "maccormack"}
        See `hybrid_nbody.fluid.kernels.reference`.
    lift : tuple of float
        Acceleration of a unit of density.
    confinement : float
        Strength of vorticity confinement.
    carry_over : bool
        Whether a step starts by adding what the one before left in its spare arrays.
    """

    dt: float
    viscosity: float
    diffusivity: float
    projection: str = "exact"
    advection: str = "semi-lagrangian"
    lift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    confinement: float = 0.0
    carry_over: bool = False


class Stepper:
    """The parts of a step on the planes of all ranks.

    Parameters
    ----------
    kernels : Kernels
        The twin of this rank's device.
    halo : HaloExchange
        How ranks see each other's planes.
    solver : object
        See `hybrid_nbody.fluid.solvers`.
    state : State
        Changed in place.
    physics : Physics
        What moves the fluid.
    """

    def __init__(self, kernels, halo, solver, state: State, physics: Physics):
        self.kernels, self.halo, self.solver, self.state, self.physics = kernels, halo, solver, state, physics
        slab = kernels.slab
        self.spacing = slab.spacing
        self.parities = [slab.velocity_parity(component) for component in range(3)]
        self.gradient_factor = {"exact": 0.5 / slab.spacing, "course": 0.5}[physics.projection]
        self.start = self._start_from_carried if physics.carry_over else self._start_from_field
        self.advect = {"semi-lagrangian": self._advect, "maccormack": self._advect_maccormack}[physics.advection]
        self.ratios = [physics.dt * nu / slab.spacing**2 for nu in (physics.viscosity, physics.diffusivity)]

    def step(self, watch=None) -> None:
        """Do a step; ``watch(b)`` is called after the last projection, with the right-hand side of its equation."""
        self._add_forces()
        self._move_velocity(watch)
        self._move_density()

    def _move_velocity(self, watch):
        """Diffuse and project into the spare arrays, advect and project back."""
        state = self.state
        for field, room, parity in zip(state.velocity, state.spare_velocity, self.parities, strict=True):
            self._diffuse(field, room, self.ratios[0], parity)
        self._project(state.spare_velocity, state.velocity[1])
        for array in state.spare_velocity:
            self.halo.fill(array)
        for field, room, parity in zip(state.velocity, state.spare_velocity, self.parities, strict=True):
            self.advect(room, field, state.spare_velocity, parity, state.spare_density)
        self._project(state.velocity, state.spare_velocity[1])
        if watch:
            watch(state.spare_velocity[1])
        if self.physics.carry_over:
            self.kernels.merge(state.x, state.spare_velocity[0])  # the divergence is in the next one already

    def _move_density(self):
        """Diffuse into the spare array, which keeps the result where it is carried over, and advect back."""
        state = self.state
        self._diffuse(state.density, state.spare_density, self.ratios[1], SCALAR)
        self.halo.fill(state.spare_density)
        self.advect(state.spare_density, state.density, state.velocity, SCALAR, state.spare_velocity[0])

    # --- sources --------------------------------------------------------------------------------------------------

    def _add_forces(self):
        """Add buoyancy and vorticity confinement over a step."""
        state, dt = self.state, self.physics.dt
        if any(self.physics.lift):
            factors = [dt * component for component in self.physics.lift]
            self.kernels.buoyancy(*state.velocity, state.density, factors)
        if self.physics.confinement:
            self._confine(dt * self.physics.confinement)

    def _confine(self, strength):
        state, length = self.state, self.state.spare_density
        for array in state.velocity:
            self.halo.fill(array)
        self.kernels.curl_length(*state.velocity, length)
        self.halo.fill(length)
        self.kernels.confine(*state.velocity, length, strength, *state.spare_velocity)
        for field, room in zip(state.velocity, state.spare_velocity, strict=True):
            field[...] = room

    # --- diffusion ------------------------------------------------------------------------------------------------

    def _diffuse(self, field, room, ratio, parity):
        """Leave in `room` what `field` becomes; `room` may hold what is carried over."""
        x, b = self.state.x, self.state.b
        self.start(field, room)
        self.solver.solve(x, b, diffusion(ratio, parity))
        self.kernels.merge(x, room)

    def _start_from_field(self, field, room):
        """Take the field for right-hand side and first guess."""
        self.kernels.split(field, self.state.b)
        self.state.x[...] = self.state.b

    def _start_from_carried(self, field, carried):
        """Add what is carried over, and guess that it is the solution, as the course program does."""
        self.kernels.split_sum(field, self.physics.dt, carried, self.state.b)
        self.kernels.split(carried, self.state.x)

    # --- projection -----------------------------------------------------------------------------------------------

    def _project(self, velocity, room):
        """Make `velocity` free of divergence; the pressure stays in x, the right side of its equation in `room`."""
        kernels, state = self.kernels, self.state
        for array in velocity:
            self.halo.fill(array)
        kernels.divergence(*velocity, -0.5 * self.spacing, room)
        kernels.split(room, state.b)
        kernels.fill(state.x, 0.0)
        self.solver.solve(state.x, state.b, POISSON)
        kernels.subtract_gradient(*velocity, state.x, self.gradient_factor)

    # --- advection ------------------------------------------------------------------------------------------------

    def _advect(self, source, target, velocity, parity, room):
        """Leave in `target` what `velocity` brings from `source`, whose halo planes are valid."""
        planes, below = self._reach(source, velocity)
        self.kernels.advect(planes, below, target, *velocity, self.physics.dt / self.spacing, parity)

    def _advect_maccormack(self, source, target, velocity, parity, room):
        """The same, corrected by what comes back; the uncorrected result is in `room` meanwhile."""
        scale = self.physics.dt / self.spacing
        self._advect(source, room, velocity, parity, None)
        self.halo.fill(room)
        planes, below = self._reach(source, velocity)
        forward, _ = self._reach(room, velocity)
        self.kernels.correct(planes, forward, below, target, *velocity, scale, parity)

    def _reach(self, source, velocity):
        """Return the planes from which the velocity may bring anything, and how many of them lie below the slab."""
        depth = 1 if self.halo.alone else self._depth(velocity[2])
        if depth == 1:
            return source, 1
        room = self.kernels.backend.zeros((source.shape[0] + 2 * depth - 2, *source.shape[1:]), source.dtype)
        self.halo.window(source, depth, room)
        return room, depth

    def _depth(self, w):
        """Return how many planes beyond a slab the fastest fluid of all ranks comes from, the next one included."""
        reach = self.halo.largest(self.kernels.largest(w)) * self.physics.dt / self.spacing
        if not math.isfinite(reach):
            return 1  # the guard ends the run
        most = math.inf if self.halo.periodic else self.kernels.slab.cells[2]
        return min(math.floor(reach) + 1, most)
