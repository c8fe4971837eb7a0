"""One step of stable fluids: velocity, then density, each by sources, diffusion, projection and advection.

Stam, "Stable Fluids" (SIGGRAPH 1999), and "Real-Time Fluid Dynamics for Games" (GDC 2003), whose
order this is.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.fluid.solvers.stencil import POISSON, SCALAR, diffusion

ROUNDING = 1e-6
"""Relative, of a displacement in the working type: a trace may go so much further than its length
in float64."""

MOST_TURNS = 16
"""Times that fluid may go round a periodic axis in a step, on several ranks."""


class Rooms(NamedTuple):
    """Memory whose numbers are not needed meanwhile: for each solve two fields side by side, for advection x and b.

    Attributes
    ----------
    velocity : tuple of flat array
        For the diffusion of u, v and w: the component itself, the right-hand side by then, and its
        spare array.
    density : flat array
        The same for the density.
    of_spare, of_velocity : flat array
        For the projection of the spare velocity, and for that of the velocity: two components of
        the other one.
    of_solver : flat array
        For advection: x and b.
    """

    velocity: tuple[Any, Any, Any]
    density: Any
    of_spare: Any
    of_velocity: Any
    of_solver: Any


@dataclass(frozen=True)
class State:
    """Arrays of one rank: of cells, with their halo planes, or of colours.

    Attributes
    ----------
    velocity : tuple of array
        u, v and w.
    density : array
    spare_velocity : tuple of array
        Room; between steps of a run that carries over, what the next velocity step starts by
        adding.
    spare_density : array
        The same for the density.
    x, b : array
        Colours: solution and right-hand side of the solver.
    rooms : Rooms
        Memory that a solver may use.
    """

    velocity: tuple[Any, Any, Any]
    density: Any
    spare_velocity: tuple[Any, Any, Any]
    spare_density: Any
    x: Any
    b: Any
    rooms: Rooms

    @property
    def kept(self) -> tuple:
        """The arrays that a run which carries over takes from step to step, beside velocity and density."""
        return *self.spare_velocity, self.spare_density


def make_state(kernels) -> State:
    """Return a fluid at rest, without density."""
    fields = kernels.backend.zeros((8, *kernels.slab.shape), kernels.dtype)
    u, spare_u, spare_v, v, w, spare_w, density, spare_density = fields
    pairs = [fields[first : first + 2].reshape(-1) for first in range(7)]
    system = kernels.colours(2)
    diffusion = pairs[0], pairs[2], pairs[4]
    rooms = Rooms(
        diffusion, pairs[6], of_spare=pairs[3], of_velocity=pairs[1], of_solver=system.reshape(-1)
    )
    return State((u, v, w), density, (spare_u, spare_v, spare_w), spare_density, *system, rooms)


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
        Whether the gradient of the pressure is divided by the spacing, as it should be, or not; as
        the course program does, diffusion then starts from zero.
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
        See `hybrid_nbody.fluid.solvers.relaxation`.
    state : State
        Changed in place.
    physics : Physics
        What moves the fluid.
    """

    def __init__(self, kernels, halo, solver, state: State, physics: Physics):
        self.kernels = kernels
        self.halo = halo
        self.solver = solver
        self.state = state
        self.physics = physics
        self.windows = {}
        slab = kernels.slab
        self.spacing = slab.spacing
        self.parities = [slab.velocity_parity(component) for component in range(3)]
        self.gradient_factor = {"exact": 0.5 / slab.spacing, "course": 0.5}[physics.projection]
        fresh = {"exact": self._start_from_field, "course": self._start_from_nothing}[
            physics.projection
        ]
        self.start = self._start_from_carried if physics.carry_over else fresh
        schemes = {
            "semi-lagrangian": (self._advect, self._advect_velocity),
            "maccormack": (self._advect_maccormack, self._advect_components),
        }
        self.advect, self.advect_velocity = schemes[physics.advection]
        self.ratios = [
            physics.dt * nu / slab.spacing**2 for nu in (physics.viscosity, physics.diffusivity)
        ]
        step_together = self._step_ahead if halo.recordable else self._step_in_parts
        self.step_once = kernels.backend.recorded(self.step) if halo.alone else step_together
        record = kernels.backend.recorded if halo.recordable else lambda action: action
        advections = partial(self.advect_velocity, 1), partial(self._carry_density, 1)
        parts = self._spread_velocity, advections[0], self._settle_velocity, advections[1]
        self.parts = [record(part) for part in parts]

    def step(self, watch=None) -> None:
        """Do a step; ``watch(b)`` is called after the last projection, with the right-hand side of its equation."""
        self._spread_velocity()
        self.advect_velocity(self._depth(self.state.spare_velocity)())
        self._settle_velocity(watch)
        self._carry_density(self._depth(self.state.velocity)())

    def _step_in_parts(self):
        """Do a step, once it is known how far fluid comes from."""
        spread, advect, settle, carry_density = self.parts
        spread()
        depth = self._depth(self.state.spare_velocity)()
        advect() if depth == 1 else self.advect_velocity(depth)
        settle()
        depth = self._depth(self.state.velocity)()
        carry_density() if depth == 1 else self._carry_density(depth)

    def _step_ahead(self):
        """Do a step whose parts are recorded, as if all fluid came from the halo planes at most.

        While the device advects, the host learns whether that is so; if not, it is done again.
        """
        spread, advect, settle, carry_density = self.parts
        spread()
        known_depth = self._depth(self.state.spare_velocity)
        advect()
        if (depth := known_depth()) > 1:
            self.advect_velocity(depth)
        settle()
        known_depth = self._depth(self.state.velocity)
        carry_density()
        if (depth := known_depth()) > 1:
            self._carry_density(depth)

    def _spread_velocity(self):
        """Add forces, diffuse and project into the spare arrays."""
        self._add_forces()
        state = self.state
        rooms = self.state.rooms
        for *arrays, parity in zip(
            state.velocity, state.spare_velocity, rooms.velocity, self.parities, strict=True
        ):
            self._diffuse(*arrays, self.ratios[0], parity)
        self._project(state.spare_velocity, rooms.of_spare)
        self.halo.fill(*state.spare_velocity)

    def _settle_velocity(self, watch=None):
        """Project the velocity after advection, and diffuse the density."""
        state = self.state
        self.halo.fill(state.velocity[2])  # of the others, no difference is along z
        self._project(state.velocity, state.rooms.of_velocity)
        pressure, divergence, _ = state.spare_velocity
        if watch or self.physics.carry_over:
            self.kernels.merge(state.b, divergence)
        if watch:
            watch(divergence)
        if self.physics.carry_over:
            self.kernels.merge(state.x, pressure)
        self._diffuse(
            state.density, state.spare_density, state.rooms.density, self.ratios[1], SCALAR
        )

    def _carry_density(self, depth):
        """Advect the density from the spare array, which keeps what it holds where it is carried over."""
        state = self.state
        self.advect(
            state.spare_density,
            state.density,
            state.velocity,
            SCALAR,
            depth,
            state.spare_velocity[0],
        )

    # --- sources ----------------------------------------------------------------------------------

    def _add_forces(self):
        """Add buoyancy and vorticity confinement over a step."""
        state = self.state
        dt = self.physics.dt
        if any(self.physics.lift):
            factors = [dt * component for component in self.physics.lift]
            self.kernels.buoyancy(*state.velocity, state.density, factors)
        if self.physics.confinement:
            self._confine(dt * self.physics.confinement)

    def _confine(self, strength):
        state = self.state
        length = self.state.spare_density
        self.halo.fill(*state.velocity)
        self.kernels.curl_length(*state.velocity, length)
        self.halo.fill(length)
        self.kernels.confine(*state.velocity, length, strength, *state.spare_velocity)
        for field, room in zip(state.velocity, state.spare_velocity, strict=True):
            field[...] = room

    # --- diffusion --------------------------------------------------------------------------------

    def _diffuse(self, field, spare, room, ratio, parity):
        """Leave in `spare` what `field` becomes, halo planes included; it may hold what is carried over.

        `room` is that of both.
        """
        x = self.state.x
        b = self.state.b
        self.start(field, spare)
        self.solver.solve(x, b, diffusion(ratio, parity), room)
        self.kernels.merge(x, spare)

    def _start_from_field(self, field, spare):
        """Take the field for right-hand side and first guess."""
        self.kernels.split_twice(field, self.state.b, self.state.x)

    def _start_from_nothing(self, field, spare):
        """Guess zero, as the course program does where its scratch arrays are cleared."""
        self.kernels.split(field, self.state.b)
        self.kernels.clear(self.state.x)

    def _start_from_carried(self, field, carried):
        """Add what is carried over, and guess that it is the solution, as the course program does."""
        self.kernels.split_carried(field, self.physics.dt, carried, self.state.b, self.state.x)

    # --- projection -------------------------------------------------------------------------------

    def _project(self, velocity, room):
        """Make `velocity` free of divergence; the pressure stays in x, the right side of its equation in b.

        The halo planes of its component along z are valid before, those of no component after.
        """
        kernels = self.kernels
        state = self.state
        kernels.divergence(*velocity, -0.5 * self.spacing, state.b)
        kernels.clear(state.x)
        self.solver.solve(state.x, state.b, POISSON, room)
        kernels.subtract_gradient(*velocity, state.x, self.gradient_factor)

    # --- advection --------------------------------------------------------------------------------

    def _advect_velocity(self, depth):
        """Let the velocity in the spare arrays carry itself back: all at once where nothing else has to be gathered."""
        state = self.state
        scale = self.physics.dt / self.spacing
        if depth == 1:
            self.kernels.advect_velocity(
                state.velocity, *state.spare_velocity, scale, state.rooms.of_solver
            )
        else:
            self._advect_components(depth)

    def _advect_components(self, depth):
        """Let the velocity in the spare arrays carry its components back, one after another."""
        state = self.state
        for field, room, parity in zip(
            state.velocity, state.spare_velocity, self.parities, strict=True
        ):
            self.advect(room, field, state.spare_velocity, parity, depth, state.spare_density)

    def _advect(self, source, target, velocity, parity, depth, room):
        """Leave in `target` what `velocity` brings from `source`, whose halo planes are valid; `room` is not needed."""
        planes = self._reach(source, depth, 0)
        scale = self.physics.dt / self.spacing
        memory = self.state.rooms.of_solver
        self.kernels.advect(planes, depth, target, *velocity, scale, parity, memory)

    def _advect_maccormack(self, source, target, velocity, parity, depth, room):
        """The same, corrected by what comes back; the uncorrected result is in `room` meanwhile."""
        self._advect(source, room, velocity, parity, depth, None)
        self.halo.fill(room)
        planes = self._reach(source, depth, 0)
        forward = self._reach(room, depth, 1)
        scale = self.physics.dt / self.spacing
        memory = self.state.rooms.of_solver
        self.kernels.correct(planes, forward, depth, target, *velocity, scale, parity, memory)

    def _reach(self, source, depth, number):
        """Return an array with the planes within `depth` of the slab, in window `number` of those that are kept."""
        if depth == 1:
            return source
        size = len(source) + 2 * depth - 2
        if len(self.windows.get(number, ())) < size:
            self.windows[number] = self.kernels.backend.zeros(
                (size, *source.shape[1:]), source.dtype
            )
        room = self.windows[number][:size]
        self.halo.window(source, depth, room)
        return room

    def _depth(self, velocity):
        """Return a function that returns how many planes beyond a slab the fastest fluid comes from, at least the next.

        The device begins to look for it here, and goes on with what is queued after. The function
        raises `NumericalError`, on every rank, if the fluid goes round the grid several times in a
        step: a window would not fit in memory.
        """
        if self.halo.alone:
            return lambda: 1
        known_largest = self.kernels.largest_later(velocity[2])
        return lambda: self._planes_beyond(
            self.halo.largest(known_largest()) * self.physics.dt / self.spacing
        )

    def _planes_beyond(self, reach):
        """Return the planes beyond a slab that fluid comes from, which moves so many cells along z at most."""
        planes = self.kernels.slab.cells[2]
        if not math.isfinite(reach):
            return 1  # the guard ends the run
        depth = math.floor(reach * (1 + ROUNDING)) + 1
        if not self.halo.periodic:
            return min(depth, planes)
        if depth > MOST_TURNS * planes:
            raise NumericalError(
                f"the fluid crosses {reach:.3g} cells along z in a step, more than {MOST_TURNS} times round the grid, "
                "which several ranks cannot follow; take a smaller time.dt"
            ).on_all_ranks()
        return depth
