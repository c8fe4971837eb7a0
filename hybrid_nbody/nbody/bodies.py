"""Bodies on the host, as files hold them, and the bodies of a rank on its device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels.contract import Kernels
from hybrid_nbody.nbody.state import State


@dataclass(frozen=True)
class Bodies:
    """N bodies on the host, or one rank's share of them.

    Attributes
    ----------
    position, velocity : (N, 3) array of float64
        In units of length, and of length over time.
    mass : (N,) array of float64
    id : (N,) array of int64
        Identity of each body; by default its index.
    """

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    mass: NDArray[np.float64]
    id: NDArray[np.int64] = None  # type: ignore[assignment]  # replaced at once

    def __post_init__(self) -> None:
        if self.id is None:
            object.__setattr__(self, "id", np.arange(len(self.mass), dtype=np.int64))

    def __len__(self) -> int:
        """Return the number of bodies."""
        return len(self.mass)

    def sample(self) -> "Bodies":
        """Return the bodies that stand for all where units and precision are chosen: all."""
        return self

    def some(self, rows: NDArray[np.int64]) -> "Bodies":
        """Return copies of the bodies in `rows`."""
        return Bodies(self.position[rows], self.velocity[rows], self.mass[rows], self.id[rows])

    def part(self, first: int, last: int) -> "Bodies":
        """Return views of the bodies first … last - 1."""
        part = slice(first, last)
        return Bodies(self.position[part], self.velocity[part], self.mass[part], self.id[part])

    def share(self, own: slice) -> "Bodies":
        """Return copies of the bodies in `own`."""
        return Bodies(
            self.position[own].copy(),
            self.velocity[own].copy(),
            self.mass[own].copy(),
            self.id[own].copy(),
        )


def joined(parts: Sequence[Bodies]) -> Bodies:
    """Return the bodies of all parts, one after the other."""
    return Bodies(
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.velocity for part in parts]),
        np.concatenate([part.mass for part in parts]),
        np.concatenate([part.id for part in parts]),
    )


def centred(
    position: NDArray[np.float64], velocity: NDArray[np.float64], mass: NDArray[np.float64]
) -> Bodies:
    """Return bodies whose centre of mass is at rest at the origin."""
    weights = mass / mass.sum()
    return Bodies(position - weights @ position, velocity - weights @ velocity, mass)


def check_is_in_plane(
    path: str, position: NDArray[np.float64], velocity: NDArray[np.float64], first: int = 0
) -> None:
    """Check that bodies of a file, from the `first` on, lie in the plane z = 0 and stay there.

    Raises
    ------
    InputError
        If one does not.
    """
    for body in np.flatnonzero((position[:, 2] != 0) | (velocity[:, 2] != 0))[:1]:
        found = f"z = {position[body, 2]:g} and vz = {velocity[body, 2]:g}"
        advice = "with bodies.dimensions: 2 both must be 0 for every body"
        raise InputError(f"{path}: body {first + body}, counted from 0, has {found}; {advice}")


class BodySource(Protocol):
    """All bodies at the start of a run, of which each rank asks for the rows that it wants."""

    def __len__(self) -> int:
        """Return the number of all bodies."""

    def rows(self, first: int, last: int) -> Bodies:
        """Return the bodies first … last - 1; every rank calls together, each for its own."""

    def masses(self) -> NDArray[np.float64]:
        """Return the masses of all bodies, for a force that sums over all; collective as well."""


class LocalBodies(Protocol):
    """The n bodies of a rank on its device, which integrators and forces change in place.

    Arrays are those of the bodies whose rows the rank owns. It may hold others while an integrator
    takes steps by `kick` and `drift` alone; see `hybrid_nbody.nbody.forces.base.Force`.

    Attributes
    ----------
    position, velocity, acceleration : (n, 3) array of float64
        In units of length, of length over time, and of length over time squared.
    """

    @property
    def position(self) -> Array:
        """Return the positions."""

    @property
    def velocity(self) -> Array:
        """Return the velocities."""

    @property
    def acceleration(self) -> Array:
        """Return the accelerations."""

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""


class DeviceBodies:
    """The bodies of a rank in its rows of a `State`, moved by kernels; see `LocalBodies`.

    Parameters
    ----------
    state : State
        Holds the arrays.
    kernels : Kernels
        Kick and drift the bodies.
    """

    def __init__(self, state: State, kernels: Kernels) -> None:
        self.state = state
        self.kernels = kernels

    @property
    def position(self) -> Array:
        """Return the positions."""
        return self.readable_state().own_position

    @property
    def velocity(self) -> Array:
        """Return the velocities."""
        return self.readable_state().velocity

    @property
    def acceleration(self) -> Array:
        """Return the accelerations."""
        return self.readable_state().acceleration

    def readable_state(self) -> State:
        """Return the state of the bodies whose rows this rank owns."""
        return self.state

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self.kernels.kick(self.state, duration)

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self.kernels.drift(self.state, duration)
