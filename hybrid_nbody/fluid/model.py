"""The fluid model: velocity and density on a grid, advanced step by step."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid import diagnostics
from hybrid_nbody.fluid.frames import Frames, OwnPlanes
from hybrid_nbody.fluid.kernels.contract import Kernels
from hybrid_nbody.fluid.solvers.base import Solver
from hybrid_nbody.fluid.sources import Sources
from hybrid_nbody.fluid.stencil import POISSON
from hybrid_nbody.fluid.step import Physics, Stepper
from hybrid_nbody.fluid.step_memory import make_state
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.simulation.model import Field, Model, Role, Work
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
        Those of this rank's device.
    halo : HaloExchange
        How ranks see each other's planes; every method is collective.
    solver : Solver
        Solves the linear systems.
    physics : Physics
        What moves the fluid.
    sources : Sources
        Where density and velocity come from.
    frames : Frames
        What is written of a frame.
    iterations : int
        Most iterations of a solve, for rates.
    """

    row_name = "plane"
    advice = {
        "start": "The initial state cannot be run",
        "run": "Look for events of huge numbers, or a buoyancy or confinement that feeds itself",
    }

    def __init__(
        self,
        kernels: Kernels,
        halo: HaloExchange,
        solver: Solver,
        physics: Physics,
        sources: Sources,
        frames: Frames,
        iterations: int,
    ):
        self.kernels = kernels
        self.halo = halo
        self.communicator = halo.communicator
        self.backend = kernels.backend
        self.physics = physics
        self.sources = sources
        self.frames = frames
        self.quantities = diagnostics.quantities_of(
            physics.projection, physics.conserve, physics.budgeted
        )
        self.step = 0
        self.last_projection = {"divergence_before": 0.0, "poisson_residual": 0.0}
        self.earlier_counts = {"solves": 0, "iterations": 0, "early": 0}
        self.is_measured = False  # whether the diagnostics of this step are known
        self.timings = Timings()
        cells = float(np.prod(kernels.slab.cells))
        self.work = Work("cells", cells, SOLVES * iterations * OPERATIONS_PER_CELL)
        self.state = make_state(kernels)
        self.stepper = Stepper(kernels, halo, solver, self.state, physics)

    @property
    def time(self) -> float:
        """Simulated time; a multiple of dt, so that rounding does not add up."""
        return self.step * self.physics.dt

    def begin(self, fields: Mapping[str, np.ndarray]) -> None:
        """Go on from other values of this rank's planes, at the centres of cells.

        Parameters
        ----------
        fields : mapping of str to (planes, ny, nx, ...) array
            Of density, velocity or both, by their names in frames.
        """
        state = self.state
        if "velocity" in fields:
            for component, values in zip(state.velocity, _components(fields), strict=True):
                component[1:-1] = self.backend.upload(values)
        if "density" in fields:
            state.density[1:-1] = self.backend.upload(fields["density"])

    # --- stepping ---------------------------------------------------------------------------------

    def advance(self, steps: int) -> None:
        """See `Model.advance`; diagnostics need more of the last step."""
        start = self.backend.mark()
        if self.is_measured:
            self._count_from_zero()
        for remaining in reversed(range(steps)):
            self._apply_sources()
            if remaining:
                self.stepper.step_unwatched()
            else:
                self.stepper.step(self._record_projection)
            self.step += 1
        self.timings.add("fluid", self.backend.elapsed(start, self.backend.mark()))

    def _apply_sources(self) -> None:
        state = self.state
        arrays = {"density": (state.density,), "velocity": state.velocity}
        for event in self.sources.at(self.step):
            event.apply(self.kernels, arrays[event.field])

    def _record_projection(self, b: Array) -> None:
        """Store the divergence before the projection, and the residual of the pressure."""
        largest = self.halo.largest(self.kernels.largest(b))
        residual = self.halo.largest(self.kernels.residual(self.state.x, self.state.b, POISSON))
        self.last_projection["divergence_before"] = largest / self.kernels.slab.spacing**2
        self.last_projection["poisson_residual"] = residual / largest if largest else 0.0

    # --- diagnostics ------------------------------------------------------------------------------

    def diagnostics(self) -> dict[str, Any]:
        """See `Model.diagnostics`."""
        max_speed = self._max_speed()
        return {
            **self._totals(),
            **self._made(),
            "max_speed": max_speed,
            "cfl": max_speed * self.physics.dt / self.kernels.slab.spacing,
            "divergence_before": self.last_projection["divergence_before"],
            "divergence_after": self._max_divergence(),
            "poisson_residual": self.last_projection["poisson_residual"],
            **self._work_of_solver(),
        }

    def _totals(self) -> dict[str, float]:
        """Return the sums over all cells."""
        state = self.state
        kernels = self.kernels
        ranks = self.communicator
        energy = diagnostics.total(kernels.plane_squares(*state.velocity), ranks)
        density = diagnostics.total(kernels.plane_sums(state.density), ranks)
        ghosts = kernels.plane_sums_with_ghosts(state.density)
        walled = not kernels.slab.periodic[2]
        return {
            "total_density": density,
            "total_density_with_ghosts": diagnostics.total_with_ghosts(ghosts, walled, ranks),
            "kinetic_energy": 0.5 * energy * kernels.slab.spacing**3,
        }

    def _made(self) -> dict[str, float]:
        """Return what steps have made of the density, where that is summed."""
        budget = self.stepper.budget
        return {"advection_error": budget.scalars()["advection_error"]} if budget else {}

    def _max_speed(self) -> float:
        """Return the largest component of the velocity."""
        return max(
            self.halo.largest(self.kernels.largest(component)) for component in self.state.velocity
        )

    def _max_divergence(self) -> float:
        """Return the largest divergence of the velocity; between steps x and b are free."""
        state = self.state
        kernels = self.kernels
        self.halo.fill(state.velocity.w)
        kernels.divergence(state.velocity, 0.5 / kernels.slab.spacing, state.b)
        shape = kernels.slab.shape
        cells = state.x.reshape(-1)[: int(np.prod(shape))].reshape(shape)
        kernels.merge(state.b, cells)
        return self.halo.largest(kernels.largest(cells))

    def _count_from_zero(self) -> None:
        """Forget the statistics of solves, which a row of diagnostics holds.

        Not before the next step: the row can be made again from a checkpoint of the same one.
        """
        self.kernels.reset_statistics()
        self.earlier_counts = dict.fromkeys(self.earlier_counts, 0)
        self.is_measured = False

    def _work_of_solver(self) -> dict[str, float]:
        """Return the work of the solver since the diagnostics of an earlier step."""
        counts = self._counts()
        self.is_measured = True
        solves = max(counts["solves"], 1)
        return {
            "iterations_per_solve": counts["iterations"] / solves,
            "early_share": counts["early"] / solves,
        }

    def _counts(self) -> dict[str, int]:
        """Return the statistics of solves since the last diagnostics, also before a restart."""
        counts = self.kernels.statistics()
        return {name: count + self.earlier_counts[name] for name, count in counts.items()}

    # --- output -----------------------------------------------------------------------------------

    def fields(self) -> dict[str, Field]:
        """See `Model.fields`."""
        slab = self.kernels.slab
        own = slice(slab.first, slab.first + slab.planes)
        planes = OwnPlanes(slab.cells, own, self.kernels.dtype.str, self.backend)
        shown = {"density": lambda: (self.state.density,), "velocity": lambda: self.state.velocity}
        fields = self.frames.fields(planes, shown)
        fields += [self._field(name, array) for name, array in self._saved().items()]
        return {field.name: field for field in fields}

    def _saved(self) -> dict[str, Array]:
        """Return the arrays of the complete state by name."""
        saved = dict(zip(STATE_NAMES, (*self.state.velocity, self.state.density), strict=True))
        if self.physics.carry_over:
            saved |= zip(CARRIED_NAMES, self.state.carried, strict=True)
        return saved

    def _field(self, name: str, array: Array) -> Field:
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
            start=lambda: self.backend.start_download(array[1:-1]),
        )

    def scalars(self) -> dict[str, float]:
        """See `Model.scalars`."""
        clock = {"step": self.step, "time": self.time, "measured": float(self.is_measured)}
        made = self.stepper.budget.scalars() if self.stepper.budget else {}
        return {**clock, **self.last_projection, **self._counts(), **made}

    def restore(self, rows: Callable[[str], np.ndarray], scalars: Mapping[str, float]) -> None:
        """See `Model.restore`."""
        self.step = int(scalars["step"])
        self.is_measured = bool(scalars.get("measured", 0.0))
        self.last_projection = {name: scalars.get(name, 0.0) for name in self.last_projection}
        self.kernels.reset_statistics()
        self.earlier_counts = {name: int(scalars.get(name, 0)) for name in self.earlier_counts}
        if self.stepper.budget:  # runs of earlier versions have none
            made = scalars.get("advection_error", 0.0)
            self.stepper.budget.restore(made, scalars.get("density_left", 0.0))
        for name, array in self._saved().items():
            array[1:-1] = self.backend.upload(rows(name))

    def suspect(self) -> str:
        """Describe the largest speed."""
        return f"the fastest fluid moves at {self._max_speed():.6g}"


def _components(fields: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the components of the velocity, each in a piece of memory."""
    return [np.ascontiguousarray(fields["velocity"][..., axis]) for axis in range(3)]


if TYPE_CHECKING:  # mypy checks that the class satisfies the contract
    MODEL: type[Model] = FluidModel
