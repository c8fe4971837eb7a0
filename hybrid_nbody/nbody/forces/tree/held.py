"""The bodies that a rank holds while steps are taken: its own, or those of its parts."""

from collections.abc import Sequence
from dataclasses import replace

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.bodies import DeviceBodies
from hybrid_nbody.nbody.kernels.contract import Kernels
from hybrid_nbody.nbody.state import State

MASS = 3
"""The column of the masses in rows of bodies."""


class HeldBodies(DeviceBodies):
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
        The bodies that are held now. Where they are others than its own, only positions, velocities
        and accelerations are theirs.
    rows : (n, 5) array of float64
        The same as a tree takes them: positions, masses and lengths of the last accelerations.
    """

    def __init__(self, backend: Backend, own: State, mass: Array, kernels: Kernels) -> None:
        super().__init__(own, kernels)
        self.backend = backend
        self._own = own
        self.rows = self._own_rows = backend.zeros((len(mass), 5), "f8")
        self.rows[:, MASS] = mass

    @property
    def are_own(self) -> bool:
        """Return whether this rank holds the bodies whose rows it owns."""
        return self.state is self._own

    def readable_state(self) -> State:
        """Return the state of the bodies whose rows this rank owns, while it holds them."""
        assert self.are_own, "`Force.bring_home` comes first"
        return self.state

    def vectors(self) -> list[Array]:
        """Return positions, velocities and accelerations of the bodies that are held, (n, 3)."""
        return [self.state.own_position, self.state.velocity, self.state.acceleration]

    def mass(self) -> Array:
        """Return the masses of the bodies that are held, (n, 1), in units of a tree."""
        return self.backend.xp.ascontiguousarray(self.rows[:, MASS : MASS + 1])

    def hold(self, vectors: Sequence[Array], mass: Array) -> None:
        """Hold other bodies, with what `vectors` and `mass` return of them."""
        position, velocity, acceleration = vectors
        self.state = replace(
            self._own,
            position=position,
            own=slice(0, len(position)),
            velocity=velocity,
            acceleration=acceleration,
        )
        self.rows = self.backend.zeros((len(position), 5), "f8")
        self.rows[:, MASS : MASS + 1] = mass

    def hold_own(self, vectors: Sequence[Array]) -> None:
        """Hold this rank's own bodies again, with `vectors` that they have now."""
        self.state = self._own
        self.rows = self._own_rows
        for array, brought in zip(self.vectors(), vectors, strict=True):
            array[:] = brought
