"""The fluid on the staggered grid, advanced step by step."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.frames import Frames, OwnPlanes
from hybrid_nbody.fluid.parts import Limits, parts_of
from hybrid_nbody.fluid.sources import Sources
from hybrid_nbody.fluid.staggered import diagnostics
from hybrid_nbody.fluid.staggered.events import apply
from hybrid_nbody.fluid.staggered.grid import AXES, STEPS
from hybrid_nbody.fluid.staggered.saved import Saved
from hybrid_nbody.fluid.staggered.state import Span, State
from hybrid_nbody.fluid.staggered.step import Stepper
from hybrid_nbody.simulation.model import Field, Model, Work
from hybrid_nbody.simulation.timings import Timings

OPERATIONS_PER_CELL = 13
"""Floating-point operations of a cell in an application of the Laplacian."""


@dataclass(frozen=True)
class Steps:
    """The length of steps.

    Attributes
    ----------
    dt : float
    limits : Limits or None
        Of the parts of a step; None: steps are taken whole.
    """

    dt: float
    limits: Limits | None = None


class StaggeredModel:
    """A fluid on slabs of planes; see `hybrid_nbody.simulation.model.Model` for the contract.

    Parameters
    ----------
    stepper : Stepper
    steps : Steps
    sources : Sources
        Where scalars and velocity come from.
    frames : Frames
        What is written of a frame.
    """

    row_name = "plane"
    advice = {
        "start": "The initial state cannot be run",
        "run": "Look for events of huge numbers, or a buoyancy or confinement that feeds itself",
    }

    def __init__(self, stepper: Stepper, steps: Steps, sources: Sources, frames: Frames) -> None:
        self.stepper = stepper
        self.grid = stepper.grid
        self.communicator = stepper.grid.halo.communicator
        self.backend = stepper.grid.backend
        self.steps = steps
        self.sources = sources
        self.frames = frames
        self.quantities = diagnostics.quantities_of(stepper)
        self.saved = Saved(self.grid, stepper.state, stepper.physics.second_order)
        self.timings = Timings()
        self.work = Work("cells", float(np.prod(self.grid.cells)), OPERATIONS_PER_CELL)
        self.step = 0
        self.parts = 0
        self.last_part = 0.0
        self.is_measured = False  # whether the diagnostics of this step are known
        self.stepper.begin(0.0)
        self._start_afresh()

    @property
    def time(self) -> float:
        """Simulated time; a multiple of dt, so that rounding does not add up."""
        return self.step * self.steps.dt

    @property
    def state(self) -> State:
        """Return the fluid on this rank's planes."""
        return self.stepper.state

    def begin(self, fields: Mapping[str, np.ndarray]) -> None:
        """Go on from other values of this rank's planes, at the centres of cells.

        Faces between two cells get the mean velocity of these, which is then made free of
        divergence.

        Parameters
        ----------
        fields : mapping of str to (planes, ny, nx, ...) array
            Of scalars, velocity or both, by their names in frames.
        """
        for name, field in self.stepper.state.scalars.items():
            if name in fields:
                self._put(field, fields[name])
        if "velocity" not in fields:
            self.stepper.fill()
            return
        for axis in AXES:
            self._put_velocity(axis, fields["velocity"][..., axis])
        self.stepper.begin(self.time)
        self._start_afresh()

    def _put(self, array: Array, values: np.ndarray) -> None:
        """Give the cells of this rank their values."""
        given = np.ascontiguousarray(values, self.grid.dtype)
        array[1:-1, 1:-1, 1:-1] = self.backend.upload(given)

    def _put_velocity(self, axis: int, values: np.ndarray) -> None:
        """Give inner faces across an axis the mean of two cells."""
        cells = self.stepper.cell_scratch
        self._put(cells, values)
        self.grid.fill(cells)
        low = tuple(-step for step in STEPS[axis])
        given = (cells, *low, self.stepper.state.velocity[axis])
        self.grid.program.run("centre", self.grid.inner_faces(axis), *given)

    # --- stepping ---------------------------------------------------------------------------------

    def advance(self, steps: int) -> None:
        """See `Model.advance`."""
        start = self.backend.mark()
        if self.is_measured:
            self._count_from_zero()
        for _ in range(steps):
            self._apply_sources()
            self._take_parts()
            self.step += 1
        self.timings.add("fluid", self.backend.elapsed(start, self.backend.mark()))

    def _apply_sources(self) -> None:
        """Put in what comes before this step; a velocity that is put in has no history."""
        events = self.sources.at(self.step)
        for event in events:
            apply(event, self.grid, self.stepper.state)
        if any(event.field == "velocity" for event in events):
            self.stepper.restart(self.time)
            self._start_afresh()
        elif events:
            self.stepper.fill()

    def _start_afresh(self) -> None:
        """Let the flow have been what it is now."""
        state = self.stepper.state
        for before, now in zip(state.before, state.velocity, strict=bool(state.before)):
            before[...] = now

    def _take_parts(self) -> None:
        """Take a step in as many parts as the flow needs."""
        self.parts = 0
        time = self.time
        whole = (self.step + 1) * self.steps.dt
        for part in self._parts():
            self.parts += 1
            is_last = whole - time < 1.5 * part
            end = whole if is_last else time + part
            ratio = part / self.last_part if self.last_part else 1.0
            self.stepper.step(Span(time, part, end), ratio)
            time = end
            self.last_part = part

    def _parts(self) -> Iterator[float]:
        """Return the lengths of the parts of this step."""
        limits = self.steps.limits
        if limits is None:
            return iter((self.steps.dt,))
        return parts_of(self.steps.dt, lambda: limits.length_at(self._max_speed()))

    def _max_speed(self) -> float:
        return self.grid.largest_speed(self.stepper.state.velocity)

    # --- diagnostics ------------------------------------------------------------------------------

    def diagnostics(self) -> dict[str, float | tuple[float, ...]]:
        """See `Model.diagnostics`."""
        values: dict[str, float | tuple[float, ...]] = {**diagnostics.measured(self.stepper)}
        values |= diagnostics.forces(self.stepper, self.time)
        projection = self.stepper.projection
        longest = self.last_part or self.steps.dt
        values["cfl"] = self._max_speed() * longest / self.grid.spacing
        values["parts"] = float(self.parts)
        values["iterations_per_solve"] = projection.iterations / max(projection.solves, 1)
        self.is_measured = True
        return {name: values[name] for name in self.quantities}

    def _count_from_zero(self) -> None:
        """Forget the iterations before this step, which a row of diagnostics holds.

        Not before the next step: the row can be made again from a checkpoint of the same one.
        """
        self.stepper.projection.iterations = 0
        self.stepper.projection.solves = 0
        self.is_measured = False

    # --- output -----------------------------------------------------------------------------------

    def fields(self) -> dict[str, Field]:
        """See `Model.fields`."""
        grid = self.grid
        own = slice(grid.first, grid.first + grid.planes)
        planes = OwnPlanes(grid.cells, own, grid.dtype, self.backend)
        state = self.stepper.state
        shown: dict[str, Callable[[], tuple[Array, ...]]] = {
            name: partial(self._at_centres, field) for name, field in state.scalars.items()
        }
        shown["pressure"] = partial(self._at_centres, state.pressure)
        shown["velocity"] = self._velocity_at_centres
        fields = [*self.frames.fields(planes, shown), *self.saved.fields()]
        return {field.name: field for field in fields}

    def _at_centres(self, field: Array) -> tuple[Array, ...]:
        """Return a field without its ghosts in rows and columns."""
        return (field[:, 1:-1, 1:-1],)

    def _velocity_at_centres(self) -> tuple[Array, ...]:
        """Return the velocity at the centres of cells, in memory that the next step overwrites."""
        means = self.stepper.next
        for axis in AXES:
            given = (self.stepper.state.velocity[axis], *STEPS[axis], means[axis])
            self.grid.program.run("centre", self.grid.region, *given)
        return tuple(mean[:, 1:-1, 1:-1] for mean in means)

    def scalars(self) -> dict[str, float]:
        """See `Model.scalars`."""
        projection = self.stepper.projection
        made = {f"made_{name}": value for name, value in self.stepper.budget.made.items()}
        return {
            "step": self.step,
            "time": self.time,
            "parts": self.parts,
            "last_part": self.last_part,
            "iterations": projection.iterations,
            "solves": projection.solves,
            "measured": float(self.is_measured),
            **made,
        }

    def restore(self, rows: Callable[[str], np.ndarray], scalars: Mapping[str, float]) -> None:
        """See `Model.restore`."""
        self.step = int(scalars["step"])
        self.parts = int(scalars["parts"])
        self.last_part = scalars["last_part"]
        budget = self.stepper.budget
        budget.made = {name: scalars[f"made_{name}"] for name in budget.made}
        self.saved.restore(rows)
        self.stepper.resume(self.time)
        self.stepper.projection.iterations = int(scalars["iterations"])
        self.stepper.projection.solves = int(scalars["solves"])
        self.is_measured = bool(scalars.get("measured", 0.0))

    def suspect(self) -> str:
        """Describe the largest speed."""
        return f"the fastest fluid moves at {self._max_speed():.6g}"


if TYPE_CHECKING:  # mypy checks that the class satisfies the contract
    MODEL: type[Model] = StaggeredModel
