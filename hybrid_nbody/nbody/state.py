"""The bodies as one rank holds them while it computes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybrid_nbody.nbody.kernels.precision import chunk_capacity, common_mass

BYTES_OF_A_SOURCE = 512
"""Most memory that a rank needs for each body whose position it holds: position, mass and order
take 36 bytes, packed sources up to 64, sums over pairs up to 208
(`hybrid_nbody.nbody.kernels.pairs`), and sorting the rest for a while."""


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
        Where each chunk starts in `order`; see `hybrid_nbody.nbody.forces.sources.Order`.
    chunks : (1,) array of int32
        How many chunks are in use.
    place : (n,) array of int32
        Where each own body stands in `order`.
    own_order : (n,) array of int32
        The own bodies, counted from this rank's first, sorted by their places.
    orders : (1,) array of int64, on the host
        How many orders were set: a kernel that prepares for an order notices a new one.
    common_mass : float or None
        See `hybrid_nbody.nbody.kernels.precision.common_mass`; of all ranks' bodies.
    heaviest : float
        The largest mass of all.
    """

    position: Any
    own: slice
    velocity: Any
    acceleration: Any
    mass: Any
    order: Any
    starts: Any
    chunks: Any
    place: Any
    own_order: Any
    orders: np.ndarray
    common_mass: float | None
    heaviest: float

    def __post_init__(self):
        object.__setattr__(self, "own_position", self.position[self.own])


def make_state(backend, own: slice, mass) -> State:
    """Return a state on `backend` with the given masses, at rest at the origin, in no order yet."""
    return _state(backend, own, mass, mass)


def make_own_state(backend, own: slice, mass) -> State:
    """Return the same with this rank's bodies alone, `own` of all that have the given masses: N is n there."""
    return _state(backend, slice(0, own.stop - own.start), mass[own], mass)


def _state(backend, own, mass, all_masses):
    number = len(mass)
    owned = own.stop - own.start
    return State(
        position=backend.zeros((number, 3), "f8"),
        own=own,
        velocity=backend.zeros((owned, 3), "f8"),
        acceleration=backend.zeros((owned, 3), "f8"),
        mass=backend.upload(mass),
        order=backend.zeros(number, "i4"),
        starts=backend.zeros(chunk_capacity(number) + 1, "i4"),
        chunks=backend.zeros(1, "i4"),
        place=backend.zeros(owned, "i4"),
        own_order=backend.zeros(owned, "i4"),
        orders=np.zeros(1, "i8"),
        common_mass=common_mass(all_masses),
        heaviest=float(all_masses.max()),
    )


def set_order(backend, state: State, order) -> None:
    """Let the force sum the sources of `state` in `order` from now on."""
    state.orders[:] += 1
    xp = backend.xp
    own = state.own
    state.order[:] = xp.asarray(order.bodies)
    state.starts[:] = xp.asarray(order.starts)
    state.chunks[:] = order.chunks
    place = xp.empty_like(state.order)
    place[state.order] = xp.arange(len(place), dtype=place.dtype)
    state.place[:] = place[own]
    mine = (state.order >= own.start) & (state.order < own.stop)
    state.own_order[:] = state.order[mine] - own.start
