"""A rank's own bodies in two parts: the first ones on the main device, the last on the host."""

from dataclasses import dataclass, replace

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.hybrid import HybridBackend
from hybrid_nbody.backends.workspace import Workspace
from hybrid_nbody.nbody.state import State

DOWNLOADED = ("mass", "order", "starts", "chunks", "source_index", "own_order")
"""Arrays of a state that are copied to the host with each new order."""

MOVING = ("position", "velocity", "acceleration")
"""Arrays for which the host has pinned memory."""


@dataclass(frozen=True)
class Parts:
    """The two parts as states with the same sources, on the main device and on the host."""

    main: State
    helper: State


class SplitState:
    """Copies of a rank's state on the host, and views of its parts.

    Parameters
    ----------
    backend : HybridBackend
    """

    def __init__(self, backend: HybridBackend):
        self.backend = backend
        self.workspace = Workspace(backend.pinned)
        self._copied: State | None = None
        self._order = -1
        self._host: State | None = None
        self._count = -1
        self._parts: Parts | None = None

    def pinned(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return memory of the host that copies go to and come from."""
        return self.workspace.array(name, shape, "f8")

    def host(self, state: State) -> State:
        """Return the host's copy of a state in its present order.

        Positions, velocities and accelerations are not copied: their memory is `pinned`.
        """
        if self._host is None or self._copied is not state or self._order != state.orders[0]:
            down = {name: self.backend.download(getattr(state, name)) for name in DOWNLOADED}
            moving = {name: self.pinned(name, getattr(state, name).shape) for name in MOVING}
            self._host = replace(state, **down, **moving)
            self._copied = state
            self._order = int(state.orders[0])
            self._parts = None
        return self._host

    def parts(self, state: State, count: int) -> Parts:
        """Return the parts where the last `count` bodies are the host's."""
        host = self.host(state)  # a new one makes the parts obsolete
        if self._parts is None or self._count != count:
            self._parts = Parts(self._first(state, host, count), self.last(host, count))
            self._count = count
        return self._parts

    def _first(self, state: State, host: State, count: int) -> State:
        """Return all own bodies but the last `count`, on the main device."""
        cut = len(state.velocity) - count
        own_order = self.backend.upload(host.own_order[host.own_order < cut])
        return _rows_of(state, slice(0, cut), own_order)

    def last(self, host: State, count: int) -> State:
        """Return the last `count` bodies of a state on the host."""
        owned = len(host.velocity)
        cut = owned - count
        own_order = host.own_order[host.own_order >= cut] - np.int32(cut)
        return _rows_of(host, slice(cut, owned), own_order)


def _rows_of(state: State, rows: slice, own_order: Array) -> State:
    """Return `state` with some of its own bodies; the arrays are views."""
    return replace(
        state,
        own=slice(state.own.start + rows.start, state.own.start + rows.stop),
        velocity=state.velocity[rows],
        acceleration=state.acceleration[rows],
        source_index=state.source_index[rows],
        own_order=own_order,
    )
