"""Gravity by a fast multipole method: distant bodies act through expansions of their cells."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.bodies import DeviceBodies
from hybrid_nbody.nbody.forces.base import Force, ForceSetup
from hybrid_nbody.nbody.kernels import make_kernels, make_tree_sums
from hybrid_nbody.nbody.kernels.expansions import expansion_for
from hybrid_nbody.nbody.state import make_state
from hybrid_nbody.nbody.step_timer import NullTimer, Timer
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.simulation.model import Field, Role, Work

ACCELERATION = "gravity/acceleration"
"""The field of a checkpoint with the accelerations that the next errors are compared with."""


class TreeForce(Force):
    """A fast multipole method; every rank holds all positions and sums the forces on some parts.

    The error of an expansion is held below a share of the last acceleration of the bodies that it
    acts on, which is therefore a part of the state. The parts and the order of their sums follow
    from the tree alone, so that ranks and threads change no bit.

    Parameters
    ----------
    setup : ForceSetup
        Device, ranks, exchange, masses, law and accuracy of the force.

    Attributes
    ----------
    state : State
        The arrays of this rank.
    """

    def __init__(self, setup: ForceSetup) -> None:
        if not isinstance(setup.exchange, AllgatherExchange):
            raise TypeError("TreeForce needs an AllgatherExchange")
        self.backend = setup.backend
        self.exchange = setup.exchange
        self.communicator = setup.communicator
        self.pair_force = setup.pair_force
        self.state = make_state(setup.backend, setup.exchange.own, setup.mass)
        kernels = make_kernels(setup.backend, self.state, setup.pair_force)
        self.bodies = DeviceBodies(self.state, kernels)
        self.expansion = expansion_for(setup.accuracy, setup.pair_force.precision)
        mass = setup.mass / setup.pair_force.units.mass
        self.tree = make_tree_sums(setup.backend, self.expansion, setup.pair_force.eps2, mass)
        self.last = setup.backend.zeros(len(setup.mass), "f8")

    @property
    def remark(self) -> str:
        """Say what expansions are used."""
        expansion = self.expansion
        bits = "float64" if expansion.double else "float32"
        leaf = f"leaves of at most {expansion.capacity} bodies"
        return f"expansions of order {expansion.order} in {bits}, {leaf}"

    @property
    def share(self) -> slice:
        """Return which parts of the tree this rank computes."""
        return slice(self.communicator.rank, None, self.communicator.size)

    def start(self) -> None:
        """Compute the accelerations: first some that errors can be compared with."""
        self._collect()
        self._add_up(self.tree.accelerations(self._positions(), None, self.share))
        self.accelerations(NullTimer())

    def accelerations(self, timer: Timer) -> None:
        """Exchange positions and compute accelerations."""
        self._collect()
        self._remember()
        timer.record("exchange")
        sums = self.tree.accelerations(self._positions(), self.last, self.share)
        timer.record("force")
        self._add_up(sums)
        timer.record("exchange")

    def _add_up(self, sums: Array) -> None:
        """Set the accelerations of this rank's bodies from the sums of all ranks."""
        units = self.pair_force.units
        scratch = self.backend.zeros(self.state.acceleration.shape, "f8")
        own = self.exchange.reduce_scatter(sums, scratch)
        self.state.acceleration[:] = units.accelerations(self.pair_force.G) * own

    def _collect(self) -> None:
        """Fill in the positions of the other ranks' bodies."""
        self.exchange.collect(self.state.position)

    def _positions(self) -> Array:
        """Return all positions in units of the kernels."""
        return self.state.position / self.pair_force.units.length

    def _remember(self) -> None:
        """Set the lengths of all bodies' last accelerations, in units of the kernels."""
        x, y, z = (self.state.acceleration[:, axis] for axis in range(3))
        lengths = self.backend.xp.sqrt(x * x + (y * y + z * z))
        self.last[self.state.own] = lengths / self.pair_force.units.accelerations(self.pair_force.G)
        self.exchange.collect(self.last)

    def potential(self) -> Array:
        """Return the potential at this rank's bodies for the current positions."""
        self._collect()
        self._remember()
        sums = self.tree.potentials(self._positions(), self.last, self.share)
        scratch = self.backend.zeros(len(self.state.velocity), "f8")
        own = self.exchange.reduce_scatter(sums, scratch)
        return -self.pair_force.units.potentials(self.pair_force.G) * own

    def work(self, jerks: bool) -> Work:
        """Return the bodies; their pairs and expansions are not counted as operations."""
        return Work("bodies", float(len(self.last)), 0.0)

    # --- restarts ---------------------------------------------------------------------------------

    def fields(self) -> list[Field]:
        """Return the last accelerations."""
        number = len(self.last)
        return [
            Field(
                name=ACCELERATION,
                shape=(number, 3),
                dtype=np.dtype("f8"),
                units="length / time^2",
                description="last acceleration of each body",
                index=self.exchange.own,
                host=self._acceleration_rows,
                role=Role.INTERNAL,
            )
        ]

    def _acceleration_rows(self, first: int, last: int) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = self.backend.download(self.state.acceleration[first:last])
        return rows

    def scalars(self) -> dict[str, float]:
        """Return the units of the kernels."""
        return self.pair_force.units.scalars()

    def restore(self, rows: Callable[[str], NDArray[Any]], scalars: Mapping[str, float]) -> None:
        """Take the last accelerations back: they are those of the saved positions."""
        self.state.acceleration[:] = self.backend.upload(rows(ACCELERATION))
