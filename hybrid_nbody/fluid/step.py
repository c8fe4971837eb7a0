"""One step of stable fluids: forces, diffusion, projection and advection.

The velocity is advanced first, then the density.

Stam, "Stable Fluids" (SIGGRAPH 1999), and "Real-Time Fluid Dynamics for Games" (GDC 2003), whose
order this is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from hybrid_nbody.fluid.advection import Advection
from hybrid_nbody.fluid.budget import Budget
from hybrid_nbody.fluid.kernels.contract import Array, Kernels, Velocity
from hybrid_nbody.fluid.solvers.base import Solver
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.stencil import POISSON, Stencil, diffusion
from hybrid_nbody.fluid.step_memory import State


@dataclass(frozen=True)
class Physics:
    """The physical constants and options of a step.

    Attributes
    ----------
    dt : float
        Length of a step.
    viscosity, diffusivity : float
        Of velocity and density, in edges of the box squared over time.
    projection : {"exact", "course"}
        Whether the gradient of the pressure is divided by the spacing, as it should be, or not; as
        the course program does, diffusion then starts from zero.
    advection : {"semi-lagrangian", "maccormack"}
        See `hybrid_nbody.fluid.kernels.reference`.
    lift : tuple of float
        Acceleration of a unit of density.
    confinement : float
        Strength of vorticity confinement.
    carry_over : bool
        Whether a step starts by adding what the previous one left in its next fields.
    conserve : bool
        Whether what diffusion and advection make or lose of the density is taken back.
    """

    dt: float
    viscosity: float
    diffusivity: float
    projection: str = "exact"
    advection: str = "semi-lagrangian"
    lift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    confinement: float = 0.0
    carry_over: bool = False
    conserve: bool = False

    @property
    def budgeted(self) -> bool:
        """Return whether steps sum what they make or lose of the density.

        What is carried over from step to step would count as made.
        """
        return self.conserve or not self.carry_over


Watch = Callable[[Array], object]
"""Called after the last projection of a step with the right-hand side of its equation, a field."""


@dataclass(frozen=True)
class Diffusion:
    """The diffusion of a field.

    Attributes
    ----------
    equation : Stencil
    scratch : flat array
        Memory that is free meanwhile.
    """

    equation: Stencil
    scratch: Array

    @cached_property
    def has_offsets(self) -> bool:
        """Return whether ghosts of the field have offsets, which belong to the right-hand side."""
        return any(self.equation.ghosts.offsets)


class Parts(NamedTuple):
    """The parts of a step, in this order; fluid is taken to come from the halo planes at most."""

    diffuse_velocity: Callable[[], None]
    advect_velocity: Callable[[], None]
    project: Callable[[], None]
    advect_density: Callable[[], None]
    correct_density: Callable[[], None]


class Stepper:
    """A step on the planes of all ranks.

    Parameters
    ----------
    kernels : Kernels
        Those of this rank's device.
    halo : HaloExchange or FullGrid
        How ranks see each other's planes.
    solver : Solver
        Solves the linear systems.
    state : State
        Changed in place.
    physics : Physics
        What moves the fluid.
    """

    def __init__(
        self, kernels: Kernels, halo: Halo, solver: Solver, state: State, physics: Physics
    ):
        self.kernels = kernels
        self.halo = halo
        self.solver = solver
        self.state = state
        self.physics = physics
        self.advection = Advection(kernels, halo, state, physics.dt, physics.advection)
        self.spacing = kernels.slab.spacing
        self.gradient_factor = {"exact": 0.5 / self.spacing, "course": 0.5}[physics.projection]
        self.velocity_diffusions, self.density_diffusion = self._diffusions()
        self.first_scratch = state.memory.scratch("first projection")
        self.second_scratch = state.memory.scratch("second projection")
        self.start_diffusion = self._diffusion_start()
        self.budget = self._make_budget()
        self._record()

    def _make_budget(self) -> Budget | None:
        """Return the budget of the density, if there is one.

        It keeps the density in the next velocity, which is free after its projection.
        """
        if not self.physics.budgeted:
            return None
        before = self.state.next_velocity.w
        return Budget(self.kernels, self.halo, before, self.physics.conserve)

    def _record(self) -> None:
        """Let the device replay a step, or its parts, if it can do so without the host."""
        recorded = self.kernels.backend.recorded
        parts = Parts(
            self._diffuse_velocity,
            partial(self.advection.advect_velocity, 1),
            self._project_velocity_and_diffuse_density,
            partial(self.advection.advect_density, 1),
            self._correct_density,
        )
        self.parts = Parts(*map(recorded, parts)) if self.halo.recordable else parts
        together = self._step_ahead if self.halo.recordable else self.step
        self.step_unwatched = recorded(self.step) if self.halo.alone else together

    # --- a step -----------------------------------------------------------------------------------

    def step(self, watch: Watch | None = None) -> None:
        """Do a step."""
        find_depth = self.advection.find_depth
        self._diffuse_velocity()
        self.advection.advect_velocity(find_depth(self.state.next_velocity)())
        self._project_velocity_and_diffuse_density(watch)
        self.advection.advect_density(find_depth(self.state.velocity)())
        self._correct_density()

    def _step_ahead(self) -> None:
        """Do a step whose parts are recorded, as if all fluid came from the halo planes at most.

        While the device advects, the host learns whether that is so; if not, it is done again.
        """
        parts = self.parts
        advection = self.advection
        parts.diffuse_velocity()
        wait_for_depth = advection.find_depth(self.state.next_velocity)
        parts.advect_velocity()
        if (depth := wait_for_depth()) > 1:
            advection.advect_velocity(depth)
        parts.project()
        wait_for_depth = advection.find_depth(self.state.velocity)
        parts.advect_density()
        if (depth := wait_for_depth()) > 1:
            advection.advect_density(depth)
        parts.correct_density()

    def _diffuse_velocity(self) -> None:
        """Add forces, diffuse and project: the result is the next velocity."""
        self._add_forces()
        state = self.state
        fields = zip(state.velocity, state.next_velocity, self.velocity_diffusions, strict=True)
        for field, target, setup in fields:
            self._diffuse(field, target, setup)
        self._project(state.next_velocity, self.first_scratch)
        self.halo.fill(*state.next_velocity)

    def _project_velocity_and_diffuse_density(self, watch: Watch | None = None) -> None:
        """Project the velocity after advection, and diffuse the density into the next one."""
        state = self.state
        self.halo.fill(state.velocity.w)  # of u and v, no difference is along z
        self._project(state.velocity, self.second_scratch)
        self._keep_projection(watch)
        if self.budget:
            self.budget.begin(state.density)
        self._diffuse(state.density, state.next_density, self.density_diffusion)

    def _correct_density(self) -> None:
        """Sum what the step has made or lost of the density, and take it back if asked to."""
        if self.budget:
            self.budget.finish(self.state.density)

    def _keep_projection(self, watch: Watch | None) -> None:
        """Store pressure and divergence, if the next step or a caller needs them."""
        state = self.state
        pressure, divergence, _ = state.next_velocity
        if watch or self.physics.carry_over:
            self.kernels.merge(state.b, divergence)
        if watch:
            watch(divergence)
        if self.physics.carry_over:
            self.kernels.merge(state.x, pressure)

    # --- forces -----------------------------------------------------------------------------------

    def _add_forces(self) -> None:
        """Add buoyancy and vorticity confinement over a step."""
        state = self.state
        dt = self.physics.dt
        if any(self.physics.lift):
            factors = [dt * component for component in self.physics.lift]
            self.kernels.buoyancy(state.velocity, state.density, factors)
        if self.physics.confinement:
            self._confine(dt * self.physics.confinement)

    def _confine(self, strength: float) -> None:
        state = self.state
        length = state.next_density
        self.halo.fill(*state.velocity)
        self.kernels.curl_length(state.velocity, length)
        self.halo.fill(length)
        self.kernels.confine(state.velocity, length, strength, state.next_velocity)
        for field, confined in zip(state.velocity, state.next_velocity, strict=True):
            field[...] = confined

    # --- diffusion --------------------------------------------------------------------------------

    def _diffusions(self) -> tuple[list[Diffusion], Diffusion]:
        """Return the diffusion of the components of the velocity, and that of the density."""
        physics = self.physics
        slab = self.kernels.slab
        scratch = self.state.memory.scratch
        ratio = physics.dt * physics.viscosity / self.spacing**2
        velocity = [
            Diffusion(diffusion(ratio, ghosts), scratch(f"diffusion of {name}"))
            for name, ghosts in zip("uvw", slab.velocity_ghosts, strict=True)
        ]
        ratio = physics.dt * physics.diffusivity / self.spacing**2
        equation = diffusion(ratio, slab.boundary.scalar_ghosts)
        return velocity, Diffusion(equation, scratch("diffusion of density"))

    def _diffuse(self, field: Array, target: Array, diffusion: Diffusion) -> None:
        """Fill `target` with what a field becomes, halo planes included.

        In a run that carries over, `target` holds what is carried over.
        """
        x = self.state.x
        b = self.state.b
        self.start_diffusion(field, target)
        if diffusion.has_offsets:
            self.kernels.impose(diffusion.equation, b)
        self.solver.solve(x, b, diffusion.equation, diffusion.scratch)
        self.kernels.merge(x, target)

    def _diffusion_start(self) -> Callable[[Array, Array], None]:
        """Return what prepares right-hand side and first guess of a diffusion."""
        if self.physics.carry_over:
            return self._start_from_carried
        return {"exact": self._start_from_field, "course": self._start_from_zero}[
            self.physics.projection
        ]

    def _start_from_field(self, field: Array, target: Array) -> None:
        """Take the field for right-hand side and first guess."""
        self.kernels.split_twice(field, self.state.b, self.state.x)

    def _start_from_zero(self, field: Array, target: Array) -> None:
        """Guess zero, as the course program does where its scratch arrays are cleared."""
        self.kernels.split(field, self.state.b)
        self.kernels.clear(self.state.x)

    def _start_from_carried(self, field: Array, carried: Array) -> None:
        """Add what is carried over, and take it for the first guess, as the course program does."""
        self.kernels.split_carried(field, self.physics.dt, carried, self.state.b, self.state.x)

    # --- projection -------------------------------------------------------------------------------

    def _project(self, velocity: Velocity, scratch: Array) -> None:
        """Make a velocity free of divergence; pressure and right-hand side stay in x and b.

        The halo planes of its component along z are valid before, those of no component after.
        """
        kernels = self.kernels
        state = self.state
        kernels.divergence(velocity, -0.5 * self.spacing, state.b)
        kernels.clear(state.x)
        self.solver.solve(state.x, state.b, POISSON, scratch)
        kernels.subtract_gradient(velocity, state.x, self.gradient_factor)
