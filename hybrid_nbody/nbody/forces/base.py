"""The contract of a force: what a model and its integrators ask of it.

A force of one's own derives from `Force`, or from `JerkForce` if Hermite's scheme is to use it, and
is added with `hybrid_nbody.nbody.forces.registry.register`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.bodies import LocalBodies
from hybrid_nbody.nbody.copies import StateCopies
from hybrid_nbody.nbody.kernels.contract import (
    HermiteFormulas,
    HermitePlan,
    HermitePoint,
    HermiteProgress,
    HermiteScratch,
    PairForce,
)
from hybrid_nbody.nbody.kernels.fields.field import Rotation
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.step_timer import Timer
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.exchange.ring import RingExchange
from hybrid_nbody.simulation.model import Field, Work
from hybrid_nbody.simulation.timings import Timings

BodyExchange = AllgatherExchange | RingExchange
"""The exchanges that bodies can have."""


@dataclass(frozen=True)
class ForceSetup:
    """The ingredients of a force.

    Attributes
    ----------
    backend : Backend
        The device of this rank.
    communicator : Communicator
        All ranks.
    exchange : AllgatherExchange or RingExchange
        How ranks see each other's bodies; ``exchange.own`` are this rank's rows.
    own_mass : (n,) array of float64
        The masses of this rank's bodies.
    all_masses : callable
        Returns the masses of all bodies, (N,), to a force that holds all of them; every rank calls
        together.
    pair_force : PairForce
        Precision, softening and gravitational constant.
    backends : tuple of str
        The name of every rank's backend.
    ring_order : bool
        Whether sums are to be those of a ring of ranks, on one rank too.
    timings : Timings
        Takes the seconds spent under ``force``, ``exchange`` and ``sort``.
    accuracy : float
        The rms error of accelerations over their rms, for a force that is not exact.
    """

    backend: Backend
    communicator: Communicator
    exchange: BodyExchange
    own_mass: NDArray[np.float64]
    all_masses: Callable[[], NDArray[np.float64]]
    pair_force: PairForce
    backends: tuple[str, ...]
    ring_order: bool = False
    timings: Timings = field(default_factory=Timings)
    accuracy: float = 1e-4

    @property
    def number(self) -> int:
        """Return the number of all ranks' bodies."""
        return self.exchange.partition.total


class Force(Protocol):
    """A force on the bodies of all ranks; every method is collective.

    The force provides the memory of the bodies, since their positions may be rows of an array that
    it shares with other ranks. Methods with a default may be left as they are.

    Attributes
    ----------
    bodies : LocalBodies
        The bodies of this rank.
    conserves_energy : bool
        Whether the exact motion does.
    rotation : Rotation or None
        The frame in which it does, where it turns: Jacobi's integral is conserved.
    """

    bodies: LocalBodies
    conserves_energy: bool = True
    rotation: Rotation | None = None

    @property
    def remark(self) -> str:
        """Return what the log says of how the force is computed on this rank, or nothing."""
        return ""

    def at(self, time: float) -> None:
        """Let the next forces and potentials be those of a time, if they depend on it."""
        return None

    def start(self) -> None:
        """Prepare for bodies at their initial positions, and compute their accelerations."""

    def accelerations(self, timer: Timer) -> None:
        """Compute ``bodies.acceleration`` for the current positions.

        Parameters
        ----------
        timer : Timer
            Records the parts ``exchange`` and ``force``.
        """

    def potential(self) -> Array:
        """Return the potential at this rank's bodies, an (n,) array on the device.

        The potential energy is the sum of m phi / 2 over all bodies, which counts each pair once;
        an external field therefore adds twice its potential.
        """

    def work(self, jerks: bool) -> Work:
        """Return the cost of computing all accelerations once, with their jerks or without."""

    def fields(self) -> list[Field]:
        """Return the distributed arrays that a restart of this force needs, beside the bodies."""
        return []

    def scalars(self) -> dict[str, float]:
        """Return the numbers that a restart of this force needs."""
        return {}

    def restore(self, rows: Callable[[str], NDArray[Any]], scalars: Mapping[str, float]) -> None:
        """Start from a saved state: ``rows(name)`` gives this rank's rows of a field."""
        self.start()

    def batches(self, step: int, steps: int) -> Iterator[int]:
        """Yield how many steps to take next until `steps` are done, from step number `step` on.

        Between batches a force may prepare anew what it uses for many steps.
        """
        yield steps

    def let_bodies_stay(self) -> None:
        """Let ranks hold bodies of others between steps, if that pays.

        An integrator allows it that moves bodies by ``bodies.kick`` and ``bodies.drift`` alone, and
        reads none of their arrays. A force that holds arrays of its own bodies does nothing here.
        """
        return None

    def bring_home(self) -> None:
        """Bring every body to the rank that owns its row, if steps have left it elsewhere.

        ``bodies`` has the arrays of this rank's own bodies from then on, until the next step.
        """
        return None

    def run(self, plan: StepPlan, steps: int) -> bool:
        """Take steps on a fast path; return False, having done nothing, where there is none."""
        return False

    @property
    def run_with_copies(self) -> Callable[[StepPlan, int, StateCopies], None] | None:
        """Return what takes steps as `run` does and copies the state among them, or None."""
        return None


HermitePath = Callable[
    [HermitePlan, HermiteScratch, HermitePoint, int, StateCopies | None], HermiteProgress
]
"""Takes steps of Hermite's scheme; see `JerkForce.run_hermite`."""


class JerkForce(Force, Protocol):
    """A force that gives the time derivative of the accelerations, too.

    Attributes
    ----------
    rounding : float
        Relative rounding error of a pair acceleration.
    relative : bool
        Whether accelerations and jerks follow from differences of positions alone, so that these
        may be counted from any origin.
    """

    rounding: float
    relative: bool = False

    @property
    def predicted_velocity(self) -> Array:
        """Return the (n, 3) array from which `accelerations_and_jerks` takes the velocities."""

    @property
    def formulas(self) -> HermiteFormulas:
        """Return the formulas of Hermite's scheme on this device."""

    def accelerations_and_jerks(self, jerk: Array, timer: Timer) -> None:
        """Compute ``bodies.acceleration`` and its time derivative.

        Parameters
        ----------
        jerk : (n, 3) array of float64
            Filled, in units of length over time cubed.
        timer : Timer
            Records the parts ``exchange`` and ``force``.
        """

    @property
    def run_hermite(self) -> HermitePath | None:
        """Return what takes steps from a point on, and copies the state among them, if any does.

        It may pause between two substeps. Without it the host takes every substep.
        """
        return None
