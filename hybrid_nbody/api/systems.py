"""Many small systems side by side on one device."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import InputError, NumericalError
from hybrid_nbody.nbody.kernels import make_systems
from hybrid_nbody.nbody.kernels.small_systems import MOST_BODIES
from hybrid_nbody.nbody.stages import EULER, FORCE, LEAPFROG, YOSHIDA4, StepPlan
from hybrid_nbody.number_checks import whole_number
from hybrid_nbody.parallel.communicator import Communicator, start_mpi
from hybrid_nbody.parallel.placement import assign_device

Rows = NDArray[np.float64]

STAGES = {"leapfrog": LEAPFROG, "yoshida4": YOSHIDA4, "euler": EULER}

BACKENDS = ("auto", "cpu", "gpu")

PIECE = 4096
"""Systems whose energies are computed at a time."""


class Systems:
    """Many systems of 2 to 32 bodies each, which do not see each other, in double precision.

    All steps of all systems are one call of compiled code, or one kernel of a GPU: for scans of
    initial conditions. Each rank has systems of its own.

    Parameters
    ----------
    positions, velocities : (S, n, 3) array
        Of n bodies in each of S systems.
    masses : (S, n) or (n,) array
    dt : float
        Time step.
    softening, G : float or (S,) array, optional
        Of all systems, or of each.
    integrator : {"leapfrog", "yoshida4", "euler"}, optional
    backend : str or Backend, optional
        As ``compute.backend``: auto, cpu or gpu; or a device that has been assigned.
    communicator : Communicator, optional
        The ranks, which share out devices together; by default all of them.

    Attributes
    ----------
    steps : int
        Steps done.

    Raises
    ------
    InputError
        If shapes do not fit, or a number is not finite.
    """

    def __init__(
        self,
        positions: ArrayLike,
        velocities: ArrayLike,
        masses: ArrayLike,
        *,
        dt: float,
        softening: ArrayLike = 0.0,
        G: ArrayLike = 1.0,
        integrator: str = "leapfrog",
        backend: str | Backend = "auto",
        communicator: Communicator | None = None,
    ) -> None:
        self._host = _checked(positions, velocities, masses)
        if integrator not in STAGES:
            raise InputError(f"integrator: must be one of {', '.join(STAGES)} (got {integrator})")
        if not (np.isfinite(dt) and dt > 0):
            raise InputError(f"dt: must be greater than 0 (got {dt})")
        self._plan = StepPlan(STAGES[integrator], dt)
        lengths = _of_each("softening", softening, len(self._host[0]))
        self._law = (lengths**2, _of_each("G", G, len(lengths)))
        self._backend = _device(backend, communicator)
        self.steps = 0
        self._begin()

    def _begin(self) -> None:
        """Bring the systems to the device, and compute the first accelerations."""
        position, velocity, mass = self._host
        eps2, G = self._law
        self._kernels = make_systems(self._backend, G[:, None] * mass, eps2)
        upload = self._backend.upload
        acceleration = self._backend.zeros(position.shape, "f8")
        self._moving = (upload(position), upload(velocity), acceleration)
        self._kernels.run(StepPlan((FORCE,), self._plan.dt), 1, self._moving)

    @property
    def time(self) -> float:
        """Return the simulated time."""
        return self.steps * self._plan.dt

    @property
    def positions(self) -> Rows:
        """Return a copy of the positions, (S, n, 3)."""
        return self._copy(0)

    @property
    def velocities(self) -> Rows:
        """Return a copy of the velocities, (S, n, 3)."""
        return self._copy(1)

    @property
    def energies(self) -> Rows:
        """Return the energy of each system, (S,)."""
        return self._energies_of(self.positions, self.velocities)

    @property
    def energy_errors(self) -> Rows:
        """Return the relative change of the energy of each system since the start, (S,).

        It is the change itself where the energy was 0. A close encounter shows in it.
        """
        position, velocity, _ = self._host
        return relative_change(self.energies, self._energies_of(position, velocity))

    def _energies_of(self, position: Rows, velocity: Rows) -> Rows:
        """Return the energy of each system at some positions and velocities."""
        _, _, mass = self._host
        kinetic = 0.5 * np.einsum("sn,sna,sna->s", mass, velocity, velocity)
        pieces = [slice(start, start + PIECE) for start in range(0, len(mass), PIECE)]
        eps2, G = self._law
        potential = [
            _potential(position[piece], mass[piece], eps2[piece], G[piece]) for piece in pieces
        ]
        total: Rows = kinetic + np.concatenate(potential)
        return total

    def run(self, steps: int) -> None:
        """Advance all systems by some steps.

        Raises
        ------
        NumericalError
            If a number of a system is not finite any more.
        """
        steps = whole_number("run: steps", steps, 0)
        self._backend.use()
        self._kernels.run(self._plan, steps, self._moving)
        self.steps += steps
        lost = np.flatnonzero(~np.isfinite(self.positions).all(axis=(1, 2)))
        if len(lost):
            raise NumericalError(
                f"{len(lost)} of {len(self._host[0])} systems, the first of them system {lost[0]}, "
                f"are not finite any more at step {self.steps}; take a softening, or a smaller dt"
            )

    def _copy(self, place: int) -> Rows:
        self._backend.use()
        return np.array(self._backend.download(self._moving[place]))

    def __repr__(self) -> str:
        """Return how many systems there are, and how far they are."""
        number, bodies, _ = self._host[0].shape
        return f"Systems({number} of {bodies} bodies, t={self.time:g}, steps={self.steps})"


def relative_change(now: Rows, start: Rows) -> Rows:
    """Return changes relative to the numbers at the start; themselves where these are 0."""
    change: Rows = (now - start) / np.where(start == 0, 1.0, np.abs(start))
    return change


def _device(backend: str | Backend, communicator: Communicator | None) -> Backend:
    """Return a device: the one that is given, or one that is assigned to this rank."""
    if isinstance(backend, Backend):
        return backend
    if backend not in BACKENDS:
        raise InputError(f"backend: must be one of {', '.join(BACKENDS)} (got {backend})")
    return assign_device(backend, "auto", communicator or start_mpi()).backend


def _checked(positions: ArrayLike, velocities: ArrayLike, masses: ArrayLike) -> tuple[Any, ...]:
    """Return the arrays of systems, (S, n, 3) twice and (S, n)."""
    position = np.array(positions, float)
    velocity = np.array(velocities, float)
    shape = position.shape
    if position.ndim != 3 or shape[2] != 3 or not shape[0] or not 2 <= shape[1] <= MOST_BODIES:
        raise InputError(
            f"positions: must be an (S, n, 3) array, n from 2 to {MOST_BODIES} (got {shape})"
        )
    if velocity.shape != shape:
        raise InputError(f"velocities: must be a {shape} array (got {velocity.shape})")
    mass = np.array(masses, float)
    if mass.shape not in (shape[:2], shape[1:2]):
        raise InputError(f"masses: must be a {shape[:2]} array (got {mass.shape})")
    mass = np.array(np.broadcast_to(mass, shape[:2]))
    for name, array in {"positions": position, "velocities": velocity, "masses": mass}.items():
        if not np.isfinite(array).all():
            raise InputError(f"{name}: every number must be finite")
    return position, velocity, mass


def _of_each(name: str, values: ArrayLike, systems: int) -> Rows:
    """Return a number of each system, none of which is negative."""
    found = np.array(values, float)
    if found.shape not in ((), (systems,)):
        raise InputError(f"{name}: must be a number or a ({systems},) array (got {found.shape})")
    if not (np.isfinite(found) & (found >= 0)).all():
        raise InputError(f"{name}: must be at least 0 (got {found})")
    return np.array(np.broadcast_to(found, systems))


def _potential(position: Rows, mass: Rows, eps2: Rows, G: Rows) -> Rows:
    """Return the potential energy of systems, each pair once."""
    first, second = np.triu_indices(mass.shape[1], 1)
    apart = position[:, first] - position[:, second]
    distance = np.sqrt((apart**2).sum(axis=2) + eps2[:, None])
    found: Rows = -G * (mass[:, first] * mass[:, second] / distance).sum(axis=1)
    return found
