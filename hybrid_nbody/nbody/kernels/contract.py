"""The contract of the kernels of a device, for forces and integrators.

`hybrid_nbody.nbody.kernels.make_kernels` returns the implementation of a backend.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.copies import StateCopies
from hybrid_nbody.nbody.kernels.units import Units
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import Sources, State


@dataclass(frozen=True)
class PairForce:
    """The law by which a pair of bodies attracts.

    Attributes
    ----------
    precision : {"single", "mixed", "double"}
        See `hybrid_nbody.nbody.precision.PRECISIONS`.
    softening : float
        Plummer softening length, in units of length.
    G : float
        Gravitational constant.
    units : Units
        Those in which kernels hold lengths, masses and velocities.
    """

    precision: str
    softening: float
    G: float = 1.0
    units: Units = Units()

    @property
    def eps2(self) -> float:
        """Return the softening length squared, in units of the kernels."""
        return (self.softening / self.units.length) ** 2


@dataclass(frozen=True)
class HermitePlan:
    """A step of Hermite's scheme.

    Attributes
    ----------
    dt : float
        Length of a step, in units of time.
    accuracy : float
        Parameter eta of Aarseth's criterion.
    rounding : float
        Accelerations up to this fraction of the largest one are negligible.
    noise : float
        Rounding of an acceleration, relative to it, that differences of accelerations may contain.
    shifts : bool
        Whether predicted positions are counted from the body with the shortest substep.
    long : float
        A compiled loop ends after a step with more forces than these.
    """

    dt: float
    accuracy: float
    rounding: float
    noise: float
    shifts: bool
    long: float


class Criterion(NamedTuple):
    """Limits of Hermite's substeps during a step.

    Attributes
    ----------
    accuracy, dt, noise : float
        As in `HermitePlan`.
    negligible : float
        Largest acceleration that does not limit a substep.
    """

    accuracy: float
    dt: float
    noise: float
    negligible: float


class HermitePoint(NamedTuple):
    """Where Hermite's scheme is: at the beginning of a step, or between two of its substeps.

    Attributes
    ----------
    substep : float
        The next substep by the criterion, in units of time.
    left : float
        What is left of the step, in units of time; zero at the beginning of a step.
    negligible : float
        Largest acceleration that does not limit a substep of this step.
    forces : int
        Evaluations of all forces in the present step, or in the one that ended.
    """

    substep: float
    left: float
    negligible: float
    forces: int


class HermiteProgress(NamedTuple):
    """The result of a compiled loop over Hermite's steps.

    Attributes
    ----------
    steps : int
        Whole steps done.
    point : HermitePoint
        Where the loop ended; within a step if it paused.
    stuck : bool
        Whether a substep became too small.
    forces : int
        Evaluations of all forces.
    seconds : float
        Time spent in the forces.
    """

    steps: int
    point: HermitePoint
    stuck: bool
    forces: int
    seconds: float


@dataclass(frozen=True)
class HermiteScratch:
    """Arrays of a substep beside the state of a rank, on its device.

    Attributes
    ----------
    start : (6, n, 3) array of float64
        Positions, velocities, accelerations and jerks at the beginning of a substep; then the low
        parts of the positions and of the velocities.
    low : (2, n, 3) array of float64
        The low parts of the present positions and velocities: what rounding has left of them.
    origin : (3,) array of float64, on the host
        Predicted positions are counted from it.
    velocity : (n, 3) array of float64
        Predicted velocities; a view of ``JerkForce.predicted_velocity``.
    jerk : (n, 3) array of float64
        At the predicted positions.
    substeps : (n,) array of float64
        The next substep of each body by Aarseth's criterion, in units of time.
    """

    start: Array
    low: Array
    origin: NDArray[np.float64]
    velocity: Array
    jerk: Array
    substeps: Array


HermiteRun = Callable[
    [State, HermiteScratch, HermitePlan, HermitePoint, int, StateCopies | None], HermiteProgress
]
"""Takes steps of Hermite's scheme; see `Kernels.run_hermite`."""


class Corrected(NamedTuple):
    """The result of a substep: positions and velocities, (n, 3) each, and their `low` parts."""

    position: Array
    velocity: Array
    low: Array


class HermiteFormulas(Protocol):
    """The formulas of a substep for this rank's bodies, on its device.

    `start` is that of `HermiteScratch`; a body whose acceleration is negligible does not limit the
    substep.
    """

    def predict(
        self,
        h: float,
        start: Array,
        origin: NDArray[np.float64],
        position: Array,
        velocity: Array,
    ) -> None:
        """Fill positions from `origin` and velocities, (n, 3) each, a time `h` after `start`."""

    def correct(
        self, h: float, start: Array, acceleration: Array, jerk: Array, corrected: Corrected
    ) -> None:
        """Fill corrected positions and velocities from the accelerations and jerks at the end."""

    def first_steps(
        self, accuracy: float, negligible: float, acceleration: Array, jerk: Array, result: Array
    ) -> None:
        """Fill `result`, (n,), with the first substep of each body."""

    def next_steps(
        self,
        h: float,
        criterion: Criterion,
        start: Array,
        acceleration: Array,
        jerk: Array,
        result: Array,
    ) -> None:
        """Fill `result`, (n,), with the substep of each body that follows one of length `h`.

        A derivative that rounding explains in part is reduced by that part, and where it explains
        half of it the substep at most doubles.
        """

    def keep(self, acceleration: Array, jerk: Array, corrected: Corrected, start: Array) -> None:
        """Fill `start` with the end of a substep, from which the next one begins."""


class Sorter(Protocol):
    """Sorts the sources of a state without the host."""

    def sort(self) -> None:
        """Order the sources by their positions, as `hybrid_nbody.nbody.sources` does."""


class Kernels(Protocol):
    """Direct sums, kicks and drifts on one device for a `State`.

    A method queues its work on the device and may return before it is done. `pack` prepares the
    sources; every sum uses the sources of the last `pack`. No method talks to other ranks.

    Attributes
    ----------
    remark : str
        What the log says of the choices that the kernels made, or nothing.
    skips_massless : bool
        Whether bodies after the last chunk are no sources.
    run_hermite : callable or None
        ``run_hermite(state, scratch, plan, point, steps, copies)`` takes steps of a rank that owns
        every body in a compiled loop, from a `HermitePoint` on, and copies the state among them; it
        may pause within a step. None where a device has no such loop.
    run_with_copies : callable or None
        ``run_with_copies(state, plan, steps, copies)`` takes steps as `run` does and copies the
        state among them. None where a device does that no faster than between two runs.
    """

    @property
    def remark(self) -> str:
        """Return what the log says of the kernels' choices, or nothing."""

    skips_massless: bool

    @property
    def hermite(self) -> HermiteFormulas:
        """Return the formulas of Hermite's scheme."""

    @property
    def run_hermite(self) -> HermiteRun | None:
        """Return the compiled loop over Hermite's steps, or None."""

    @property
    def run_with_copies(
        self,
    ) -> Callable[[State, StepPlan, int, StateCopies], Callable[[], float]] | None:
        """Return what takes steps and copies the state among them, or None."""

    def sorter(self, state: State) -> "Sorter | None":
        """Return what sorts the sources of a rank that owns every body; None if nothing does."""

    def pack(self, sources: Sources) -> None:
        """Store the sources as the sums read them."""

    def accelerations(self, state: State) -> None:
        """Fill ``state.acceleration`` from the packed sources."""

    def accelerations_and_jerks(self, state: State, velocity: Array, jerk: Array) -> None:
        """Fill ``state.acceleration`` and `jerk`, (n, 3), from the velocities of all bodies."""

    def potential(self, state: State, result: Array) -> None:
        """Fill `result`, (n,), with the potential at this rank's bodies."""

    def kick(self, state: State, duration: float) -> None:
        """Change velocities: v += a `duration`."""

    def drift(self, state: State, duration: float) -> None:
        """Change positions: x += v `duration`."""

    def run(self, state: State, plan: StepPlan, steps: int) -> Callable[[], float]:
        """Take whole steps of a rank that owns every body; may return before they are done.

        What it returns waits for them, and returns the seconds spent in forces.
        """


class ActivityCounter(Protocol):
    """Counts bodies in the cells of the unit square, on one device."""

    def count(self, position: Array) -> NDArray[np.int32]:
        """Return the (D, D) counts on the host, valid until the next call."""
