"""The fluid model: velocity and density on a grid, advanced step by step."""

import numpy as np

from hybrid_nbody.fluid import diagnostics
from hybrid_nbody.fluid.frames import Frames
from hybrid_nbody.fluid.sources import Sources
from hybrid_nbody.fluid.stencil import POISSON
from hybrid_nbody.fluid.step import Physics, Stepper
from hybrid_nbody.fluid.workspace import make_state
from hybrid_nbody.simulation.model import Field, Role, Work
from hybrid_nbody.simulation.timings import Timings

OPERATIONS_PER_CELL = 13
"""Floating-point operations of a cell in an iteration of a linear solve."""

SOLVES = 6
"""Linear systems of a step: three components of the velocity, two pressures, the density."""

STATE_NAMES = ("state/u", "state/v", "state/w", "state/density")
CARRIED_NAMES = ("carried/u", "carried/v", "carried/w", "carried/density")


class FluidModel:
    """Stable fluids on slabs of planes; see `hybrid_nbody.simulation.model.Model` for the contract.

    Parameters
    ----------
    kernels : Kernels
        The twin of this rank's device.
    halo : HaloExchange
        How ranks see each other's planes.
    communicator : Communicator
        All ranks; every method is collective.
    solver : object
        See `hybrid_nbody.fluid.solvers.relaxation`.
    physics : Physics
        What moves the fluid.
    sources : Sources
        Where density and velocity come from.
    frames : Frames
        What is written of a frame.
    iterations : int
        Most iterations of a solve, for rates.
    """

    quantities = diagnostics.QUANTITIES
    row_name = "plane"
    advice = {
        "start": "The initial state cannot be run",
        "run": "Look for events of huge numbers, or a buoyancy or confinement that feeds itself",
    }

    def __init__(
        self,
        kernels,
        halo,
        communicator,
        solver,
        physics: Physics,
        sources: Sources,
        frames: Frames,
        iterations,
    ):
        self.kernels = kernels
        self.halo = halo
        self.communicator = communicator
        self.backend = kernels.backend
        self.physics = physics
        self.sources = sources
        self.frames = frames
        self.step = 0
        self.seen = {"divergence_before": 0.0, "poisson_residual": 0.0}
        self.counted = {"solves": 0, "iterations": 0, "early": 0}
        self.timings = Timings()
        self.work = Work(
            "cells", float(np.prod(kernels.slab.cells)), SOLVES * iterations * OPERATIONS_PER_CELL
        )
        self.state = make_state(kernels)
        self.stepper = Stepper(kernels, halo, solver, self.state, physics)

    @property
    def time(self) -> float:
        """Simulated time; a multiple of dt, so that rounding does not add up."""
        return self.step * self.physics.dt

    # --- stepping ---------------------------------------------------------------------------------

    def advance(self, steps: int) -> None:
        """See `Model.advance`; the last of the steps is looked at more closely, for the diagnostics."""
        start = self.backend.mark()
        for remaining in reversed(range(steps)):
            self._apply_sources()
            if remaining:
                self.stepper.step_once()
            else:
                self.stepper.step(self._watch)
            self.step += 1
        self.timings.add("fluid", self.backend.elapsed(start, self.backend.mark()))

    def _apply_sources(self):
        state = self.state
        arrays = {"density": (state.density,), "velocity": state.velocity}
        for event in self.sources.at(self.step):
            event.apply(self.kernels, arrays[event.field])

    def _watch(self, b):
        """Remember how divergent the velocity was, and how well the pressure solves its equation."""
        largest = self.halo.largest(self.kernels.largest(b))
        residual = self.halo.largest(self.kernels.residual(self.state.x, self.state.b, POISSON))
        self.seen["divergence_before"] = largest / self.kernels.slab.spacing**2
        self.seen["poisson_residual"] = residual / largest if largest else 0.0

    # --- diagnostics ------------------------------------------------------------------------------

    def diagnostics(self):
        """See `Model.diagnostics`."""
        state = self.state
        kernels = self.kernels
        slab = self.kernels.slab
        fastest = self._fastest()
        energy = diagnostics.total(kernels.plane_squares(*state.velocity), self.communicator)
        ghosts = kernels.plane_sums_with_ghosts(state.density)
        return {
            "total_density": diagnostics.total(
                kernels.plane_sums(state.density), self.communicator
            ),
            "total_density_with_ghosts": diagnostics.total_with_ghosts(
                ghosts, not slab.periodic[2], self.communicator
            ),
            "kinetic_energy": 0.5 * energy * slab.spacing**3,
            "max_speed": fastest,
            "cfl": fastest * self.physics.dt / slab.spacing,
            "divergence_before": self.seen["divergence_before"],
            "divergence_after": self._divergence(),
            "poisson_residual": self.seen["poisson_residual"],
        } | self._iterations()

    def _fastest(self):
        """Return the largest component of the velocity."""
        return max(
            self.halo.largest(self.kernels.largest(component)) for component in self.state.velocity
        )

    def _divergence(self):
        """Return the largest divergence of the velocity."""
        state = self.state
        kernels = self.kernels
        self.halo.fill(state.velocity.w)
        kernels.divergence(state.velocity, 0.5 / kernels.slab.spacing, state.b)
        shape = kernels.slab.shape
        scratch = state.workspace.solver_scratch()  # x, free between steps, comes before b
        cells = scratch[: int(np.prod(shape))].reshape(shape)
        kernels.merge(state.b, cells)
        return self.halo.largest(kernels.largest(cells))

    def _iterations(self):
        """Return the work of the solver since the last row, and begin a new one."""
        counts = self._counts()
        self.kernels.reset_statistics()
        self.counted = dict.fromkeys(counts, 0)
        solves = max(counts["solves"], 1)
        return {
            "iterations_per_solve": counts["iterations"] / solves,
            "early_share": counts["early"] / solves,
        }

    def _counts(self):
        """Return what the solver did since the last row of diagnostics, before a restart included."""
        return {
            name: count + self.counted[name] for name, count in self.kernels.statistics().items()
        }

    # --- output -----------------------------------------------------------------------------------

    def fields(self):
        """See `Model.fields`."""
        fields = [*self.frames.fields(self.kernels.slab, self.state, self.backend)]
        fields += [self._field(name, array) for name, array in self._saved().items()]
        return {field.name: field for field in fields}

    def _saved(self):
        """Return the arrays of the complete state by name."""
        saved = dict(zip(STATE_NAMES, (*self.state.velocity, self.state.density), strict=True))
        if self.physics.carry_over:
            saved |= zip(CARRIED_NAMES, self.state.carried, strict=True)
        return saved

    def _field(self, name, array):
        """Return a field of the complete state, in full resolution."""
        slab = self.kernels.slab
        return Field(
            name=name,
            shape=tuple(reversed(slab.cells)),
            dtype=np.dtype(array.dtype),
            units="1",
            description="of every cell (z, y, x)",
            index=slice(slab.first, slab.first + slab.planes),
            host=lambda start, stop: self.backend.download(array[1 + start : 1 + stop]),
            role=Role.INTERNAL,
            check=lambda start, stop: self.kernels.plane_sums(array)[start:stop],
        )

    def scalars(self):
        """See `Model.scalars`."""
        return {"step": self.step, "time": self.time} | self.seen | self._counts()

    def restore(self, rows, scalars) -> None:
        """See `Model.restore`."""
        self.step = int(scalars["step"])
        self.seen = {name: scalars[name] for name in self.seen}
        self.counted = {name: int(scalars[name]) for name in self.counted}
        for name, array in self._saved().items():
            array[1:-1] = self.backend.upload(rows(name))

    def suspect(self) -> str:
        """Name the fastest fluid."""
        return f"the fastest fluid moves at {self._fastest():.6g}"
