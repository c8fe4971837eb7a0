"""The bodies as one rank holds them while it computes."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class State:
    """Arrays of one rank, on its device; N bodies in all, n of them owned by this rank.

    Attributes
    ----------
    position : (N, 3) array of float64
        Every body's position; the rows of other ranks are filled by the exchange.
    own : slice
        This rank's rows of the arrays of length N.
    velocity, acceleration : (n, 3) array of float64
        Of this rank's bodies.
    mass : (N,) array of float64
        Every body's mass.
    order : (N,) array of int32
        Bodies in the order in which the force sums them.
    place : (n,) array of int32
        Where each own body stands in `order`.
    """

    position: Any
    own: slice
    velocity: Any
    acceleration: Any
    mass: Any
    order: Any
    place: Any

    def __post_init__(self):
        object.__setattr__(self, "own_position", self.position[self.own])


def make_state(backend, own: slice, mass, order) -> State:
    """Return a state on `backend` with the given masses and order, at rest at the origin."""
    number, owned = len(mass), own.stop - own.start
    return State(
        position=backend.zeros((number, 3), "f8"),
        own=own,
        velocity=backend.zeros((owned, 3), "f8"),
        acceleration=backend.zeros((owned, 3), "f8"),
        mass=backend.upload(mass),
        order=backend.upload(order),
        place=backend.zeros(owned, "i4"),
    )
