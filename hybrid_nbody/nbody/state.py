"""The bodies as one rank holds them while it computes."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.precision import chunk_capacity, common_mass
from hybrid_nbody.nbody.sources import Order

BYTES_OF_A_SOURCE = 640
"""Most memory that a rank needs for each body whose position it holds: position, mass and order
take 36 bytes, packed sources up to 64, sums over pairs up to 208
(`hybrid_nbody.nbody.kernels.gpu.symmetric`), and sorting the rest for a while. A run on a GPU took
603 at its peak."""


@dataclass(frozen=True)
class Sources:
    """The N bodies that a force sums over, on the device of a rank.

    Attributes
    ----------
    position : (N, 3) array of float64
    mass : (N,) array of float64
    order : (N,) array of int32
        The bodies in the order of the sum.
    starts : (capacity + 1,) array of int32
        Index in `order` at which each chunk starts; see
        `hybrid_nbody.nbody.sources.Order`.
    chunks : (1,) array of int32
        Number of chunks in use.
    """

    position: Array
    mass: Array
    order: Array
    starts: Array
    chunks: Array


@dataclass(frozen=True)
class State(Sources):
    """The arrays of one rank on its device: N sources, n of them this rank's own bodies.

    Attributes
    ----------
    own : slice
        This rank's rows of the arrays of length N.
    velocity, acceleration : (n, 3) array of float64
        Of this rank's bodies.
    source_index : (n,) array of int32
        Index of each own body in `order`; -1 where it is not among the sources.
    own_order : (n,) array of int32
        The own bodies, counted from this rank's first, sorted by `source_index`.
    orders : (1,) array of int64, on the host
        How many orders were set: a kernel that prepares for an order notices a new one.
    common_mass : float or None
        See `hybrid_nbody.nbody.precision.common_mass`; of all ranks' bodies.
    heaviest : float
        The largest mass of all bodies.
    own_position : (n, 3) array of float64
        This rank's rows of `position`, a view.
    """

    own: slice
    velocity: Array
    acceleration: Array
    source_index: Array
    own_order: Array
    orders: NDArray[np.int64]
    common_mass: float | None
    heaviest: float
    own_position: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "own_position", self.position[self.own])


def make_state(backend: Backend, own: slice, mass: NDArray[np.float64]) -> State:
    """Return a state with the positions of all bodies, at rest at the origin, in no order yet.

    Parameters
    ----------
    backend : Backend
    own : slice
        This rank's rows.
    mass : (N,) array of float64
        The masses of all bodies.
    """
    return _zeros(backend, own, mass, mass)


def make_own_state(backend: Backend, own: slice, mass: NDArray[np.float64]) -> State:
    """Return a state of this rank's bodies alone: its N is n; parameters as in `make_state`."""
    return _zeros(backend, slice(0, own.stop - own.start), mass[own], mass)


def _zeros(
    backend: Backend, own: slice, mass: NDArray[np.float64], all_masses: NDArray[np.float64]
) -> State:
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
        source_index=backend.zeros(owned, "i4"),
        own_order=backend.zeros(owned, "i4"),
        orders=np.zeros(1, "i8"),
        common_mass=common_mass(all_masses),
        heaviest=float(all_masses.max(initial=0.0)),
    )


def set_order(backend: Backend, state: State, order: Order) -> None:
    """Let the force sum the sources of `state` in `order` from now on."""
    state.orders[:] += 1
    xp = backend.xp
    own = state.own
    state.order[:] = xp.asarray(order.bodies)
    state.starts[:] = xp.asarray(order.starts)
    state.chunks[:] = order.chunks
    source_index = xp.empty_like(state.order)
    source_index[state.order] = xp.arange(len(source_index), dtype=source_index.dtype)
    state.source_index[:] = source_index[own]
    mine = (state.order >= own.start) & (state.order < own.stop)
    state.own_order[:] = state.order[mine] - own.start
