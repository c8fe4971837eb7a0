"""The bodies as one rank holds them while it computes."""

from dataclasses import dataclass
from typing import Any

from hybrid_nbody.nbody.kernels.precision import chunk_capacity


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
    starts : (capacity + 1,) array of int32
        Where each chunk starts in `order`; see `hybrid_nbody.nbody.ordering.Order`.
    place : (n,) array of int32
        Where each own body stands in `order`.
    """

    position: Any
    own: slice
    velocity: Any
    acceleration: Any
    mass: Any
    order: Any
    starts: Any
    place: Any

    def __post_init__(self):
        object.__setattr__(self, "own_position", self.position[self.own])


def make_state(backend, own: slice, mass) -> State:
    """Return a state on `backend` with the given masses, at rest at the origin, in no order yet."""
    number, owned = len(mass), own.stop - own.start
    return State(
        position=backend.zeros((number, 3), "f8"),
        own=own,
        velocity=backend.zeros((owned, 3), "f8"),
        acceleration=backend.zeros((owned, 3), "f8"),
        mass=backend.upload(mass),
        order=backend.zeros(number, "i4"),
        starts=backend.zeros(chunk_capacity(number) + 1, "i4"),
        place=backend.zeros(owned, "i4"),
    )


def set_order(backend, state: State, order) -> None:
    """Let the force sum the sources of `state` in `order` from now on."""
    state.order[:] = backend.upload(order.bodies)
    state.starts[:] = backend.upload(order.starts)
    state.place[:] = backend.upload(order.places[state.own])
