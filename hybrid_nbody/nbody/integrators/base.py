"""The contract of an integrator, which owns the time step: its length, its stages, its substeps.

An integrator of one's own derives from `Integrator` and is added with
`hybrid_nbody.nbody.integrators.registry.register`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.bodies import LocalBodies
from hybrid_nbody.nbody.copies import StateCopies
from hybrid_nbody.nbody.forces.base import Force
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.simulation.timings import Timings

AnyForce = TypeVar("AnyForce", bound=Force, contravariant=True)
"""What an integrator needs: a `Force`, or a `hybrid_nbody.nbody.forces.base.JerkForce`."""

Rows = Callable[[str], NDArray[np.float64]]
"""Returns this rank's rows of an integrator's array in a checkpoint, (n, 3), by its name."""


@dataclass(frozen=True)
class IntegratorSetup:
    """The ingredients of an integrator.

    Attributes
    ----------
    backend : Backend
        The device of this rank.
    communicator : Communicator
        All ranks.
    ids : (n,) array of int64
        The identity of each of this rank's bodies.
    dt : float
        Length of a step, in units of time.
    accuracy : float
        ``time.accuracy``, for integrators with adaptive substeps.
    timings : Timings
        Takes the seconds spent under ``force`` and ``exchange``.
    """

    backend: Backend
    communicator: Communicator
    ids: NDArray[np.int64]
    dt: float
    accuracy: float
    timings: Timings


class Integrator(Protocol[AnyForce]):
    """Advances bodies in time under a force; every method is collective.

    An integrator is generic in the force: `Integrator[Force]`, or `Integrator[JerkForce]` where
    `uses_jerks` is true. On entry of `advance` the accelerations are those of the current positions
    only if the integrator left them so. Methods with a default may be left as they are.
    """

    @property
    def forces_per_step(self) -> float:
        """Return the evaluations of all forces a step, on average so far."""

    @property
    def remark(self) -> str:
        """Return what the log says of the steps once they can begin, or nothing."""
        return ""

    @property
    def uses_jerks(self) -> bool:
        """Return whether jerks are computed with the accelerations."""
        return False

    @property
    def only_kicks_and_drifts(self) -> bool:
        """Return whether bodies are moved by their `kick` and `drift` alone, and never read."""
        return False

    def begin(self, force: AnyForce, bodies: LocalBodies) -> None:
        """Prepare for the first step, the bodies being at their initial state."""
        return None

    def scalars(self) -> dict[str, float]:
        """Return the numbers that a restart needs."""
        return {}

    def arrays(self) -> Mapping[str, Array]:
        """Return the arrays that a restart needs beside positions and velocities, by name.

        Each is an (n, 3) array of float64 of this rank's bodies, on its device.
        """
        return {}

    def restore(self, rows: Rows, scalars: Mapping[str, float]) -> None:
        """Take back the numbers of a checkpoint, and the arrays: ``rows(name)`` on the host."""
        return None

    def advance(self, force: AnyForce, bodies: LocalBodies, step: int, steps: int) -> None:
        """Take `steps` steps from step number `step` on.

        The steps are taken in the batches that ``force.batches(step, steps)`` yields.

        Raises
        ------
        NumericalError
            On every rank, if a step cannot be taken.
        """

    def advance_with_copies(self, force: AnyForce) -> Callable[[int, StateCopies], None] | None:
        """Return what takes the steps of all copies from a step number on, or None.

        It is None where that is no faster than to copy the state after every `advance`.
        """
        return None
