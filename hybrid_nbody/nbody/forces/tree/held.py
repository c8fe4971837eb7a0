"""The bodies that a rank holds while steps are taken: its own, or those of its parts."""

from collections.abc import Sequence
from dataclasses import replace

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.kernels.contract import Kernels
from hybrid_nbody.nbody.state import State

MASS = 3
"""The column of the masses in rows of bodies."""


class HeldBodies:
    """The bodies of a rank, which may be others during some steps; see `LocalBodies`.

    Parameters
    ----------
    backend : Backend
    own : State
        The bodies whose rows this rank owns.
    mass : (n,) array of float64
        Theirs, in units of a tree.
    kernels : Kernels
        Kick and drift bodies.

    Attributes
    ----------
    state : State
        The bodies that are held now.
    rows : (n, 5) array of float64
        The same as a tree takes them: positions, masses and lengths of the last accelerations.
    position, velocity, acceleration : (n, 3) array of float64
        Those of this rank's own, up to date while it holds these.
    """

    def __init__(self, backend: Backend, own: State, mass: Array, kernels: Kernels) -> None:
        self.backend = backend
        self.own = own
        self.own_rows = backend.zeros((len(mass), 5), "f8")
        self.own_rows[:, MASS] = mass
        self.kernels = kernels
        self.state = own
        self.rows = self.own_rows
        self.position: Array = own.own_position
        self.velocity: Array = own.velocity
        self.acceleration: Array = own.acceleration

    @property
    def are_own(self) -> bool:
        """Return whether this rank holds the bodies whose rows it owns."""
        return self.state is self.own

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self.kernels.kick(self.state, duration)

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self.kernels.drift(self.state, duration)

    def arrays(self) -> list[Array]:
        """Return positions, velocities and accelerations of the bodies that are held, (n, 3)."""
        return [self.state.own_position, self.state.velocity, self.state.acceleration]

    def mass(self) -> Array:
        """Return the masses of the bodies that are held, (n, 1), in units of a tree."""
        return self.backend.xp.ascontiguousarray(self.rows[:, MASS : MASS + 1])

    def hold(self, arrays: Sequence[Array], mass: Array) -> None:
        """Hold other bodies, with `arrays` and a `mass` like those that this object returns."""
        position, velocity, acceleration = arrays
        self.state = replace(
            self.own,
            position=position,
            own=slice(0, len(position)),
            velocity=velocity,
            acceleration=acceleration,
        )
        self.rows = self.backend.zeros((len(position), 5), "f8")
        self.rows[:, MASS : MASS + 1] = mass

    def hold_own(self, arrays: Sequence[Array]) -> None:
        """Hold this rank's own bodies again, as they have become."""
        self.state = self.own
        self.rows = self.own_rows
        for array, brought in zip(self.arrays(), arrays, strict=True):
            array[:] = brought
