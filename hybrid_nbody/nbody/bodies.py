"""A set of bodies on the host: what initial conditions make and files hold."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Bodies:
    """N bodies, or one rank's share of them.

    Attributes
    ----------
    position, velocity : (N, 3) array of float64
    mass : (N,) array of float64
    id : (N,) array of int64
        Identity of each body, by default its place in the set.
    """

    position: np.ndarray
    velocity: np.ndarray
    mass: np.ndarray
    id: np.ndarray | None = None

    def __post_init__(self):
        if self.id is None:
            object.__setattr__(self, "id", np.arange(len(self.mass), dtype=np.int64))

    def __len__(self):
        """Return the number of bodies."""
        return len(self.mass)

    def share(self, own: slice) -> "Bodies":
        """Return copies of the bodies in `own`."""
        return Bodies(
            *(array[own].copy() for array in (self.position, self.velocity, self.mass, self.id))
        )


def centred(position, velocity, mass) -> Bodies:
    """Return bodies whose centre of mass rests at the origin."""
    weights = mass / mass.sum()
    return Bodies(position - weights @ position, velocity - weights @ velocity, mass)
