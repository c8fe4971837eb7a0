"""Gravity by a fast multipole method: distant bodies act through expansions of their cells."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.forces.base import Force, ForceSetup
from hybrid_nbody.nbody.forces.tree.devices import TreeOnDevices
from hybrid_nbody.nbody.forces.tree.distribution import DistributedTree
from hybrid_nbody.nbody.forces.tree.held import HeldBodies
from hybrid_nbody.nbody.forces.tree.shares import MOST_WHOLE, SumsByShares
from hybrid_nbody.nbody.forces.tree.travel import Travels
from hybrid_nbody.nbody.kernels import (
    expansion_of,
    make_device_tree,
    make_kernels,
    make_tree_sums,
)
from hybrid_nbody.nbody.kernels.device_tree import DeviceTree
from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.state import make_state
from hybrid_nbody.nbody.step_timer import NullTimer, Timer
from hybrid_nbody.parallel.sums import reproducible_sum
from hybrid_nbody.simulation.model import Field, Role, Work

Tree = DistributedTree | TreeOnDevices

LAST_FORCE_BY_TREE = "last_force_by_tree"
"""A number of checkpoints of this force, by which they are known."""

MOST_AWAY = 0.05
"""Bodies stay where they travelled to if more than this share of them came from another rank."""

FORCES_AT_HOME = 8
"""Forces after which bodies may stay: to let them and to bring them home takes as long as to let
them travel for two or three forces."""

MOST_AT_HOME = 1024
"""That number doubles, up to this, each time that bodies were asked for within `FORCES_AT_HOME`
forces."""

ACCELERATION = "gravity/acceleration"
"""The field of a checkpoint with the accelerations that the next errors are compared with."""


class TreeForce(Force):
    """A fast multipole method; every rank holds its own bodies and what their part of a tree needs.

    The error of an expansion is held below a share of the last acceleration of the bodies that it
    acts on, which is therefore a part of the state.

    Parameters
    ----------
    setup : ForceSetup
        Device, ranks, exchange, masses, law and accuracy of the force.

    Attributes
    ----------
    bodies : HeldBodies
        This rank's bodies.
    """

    bodies: HeldBodies

    def __init__(self, setup: ForceSetup) -> None:
        self.backend = setup.backend
        self.own = setup.exchange.own
        self.number = setup.number
        self.pair_force = setup.pair_force
        self.bodies = _held_bodies(setup)
        self.expansion = expansion_of(setup.backend, setup.accuracy, setup.pair_force.precision)
        self.tree = _make_tree(setup, self.expansion)
        self._fill_own_rows = setup.backend.recorded(self._fill_rows)
        self._forces = 0  # since bodies settled or came home
        self._forces_at_home = FORCES_AT_HOME

    @property
    def remark(self) -> str:
        """Say what expansions are used."""
        expansion = self.expansion
        bits = "float32, low orders in float64" if expansion.double else "float32"
        leaf = f"leaves of at most {expansion.capacity} bodies"
        return f"expansions of order {expansion.order} in {bits}, {leaf}"

    def start(self) -> None:
        """Compute the accelerations: first some that errors can be compared with."""
        self.bring_home()
        self._accelerate(self._positions_and_masses(), NullTimer())
        self.accelerations(NullTimer())

    def accelerations(self, timer: Timer) -> None:
        """Compute accelerations, and exchange what they need of other ranks' bodies."""
        self._accelerate(self._bodies(), timer)
        self._settle(timer)

    def potential(self) -> Array:
        """Return the potential at this rank's bodies for the current positions."""
        self.bring_home()
        sums = self.tree.sums(self._bodies(), potentials=True, timer=NullTimer())
        return -self.pair_force.units.potentials(self.pair_force.G) * sums[:, 0]

    def _accelerate(self, bodies: Array, timer: Timer) -> None:
        """Set the accelerations from sums over all bodies."""
        sums = self.tree.sums(bodies, potentials=False, timer=timer)
        self.tree.tree.set_accelerations(sums, self._unit, self.bodies.state.acceleration)

    @property
    def _unit(self) -> float:
        """Return an acceleration of 1 in units of the kernels."""
        return self.pair_force.units.accelerations(self.pair_force.G)

    def _positions_and_masses(self) -> Array:
        """Return this rank's bodies in units of the kernels, (n, 4)."""
        units = self.pair_force.units
        xp = self.backend.xp
        rows = self.bodies.rows
        xp.divide(self.bodies.position, units.length, out=rows[:, :3])
        return xp.ascontiguousarray(rows[:, :4])

    def _bodies(self) -> Array:
        """Return the bodies held here, and the lengths of their last accelerations, (n, 5)."""
        if self.bodies.are_own:
            self._fill_own_rows()
        else:
            self._fill_rows()
        return self.bodies.rows

    def _fill_rows(self) -> None:
        """Fill the rows of the bodies from their state."""
        units = (self.pair_force.units.length, self._unit)
        state = self.bodies.state
        vectors = (state.own_position, state.acceleration)
        self.tree.tree.fill_rows(*vectors, units, self.bodies.rows)

    # --- where bodies stay ------------------------------------------------------------------------

    def let_bodies_stay(self) -> None:
        """Let ranks hold bodies of others between steps, if they are on several hosts.

        Within one host it takes longer to keep account of them than to let them travel.
        """
        ranks = self.tree.communicator
        self.tree.travels.may_settle = ranks.on_several_nodes

    def bring_home(self) -> None:
        """Bring every body to the rank that owns its row."""
        if self.bodies.are_own:
            return
        self.bodies.hold_own(self.tree.travels.bring_home(self.bodies.vectors()))
        stayed_long = self._forces >= FORCES_AT_HOME
        later = min(2 * self._forces_at_home, MOST_AT_HOME)
        self._forces_at_home = FORCES_AT_HOME if stayed_long else later
        self._forces = 0

    def _settle(self, timer: Timer) -> None:
        """Let bodies stay with the ranks that summed the last forces on them, where that pays."""
        self._forces += 1
        if self.bodies.are_own and self._forces < self._forces_at_home:
            return
        travels = self.tree.travels
        if travels.may_settle and travels.share_away > MOST_AWAY:
            *vectors, mass = travels.settle([*self.bodies.vectors(), self.bodies.mass()])
            self.bodies.hold(vectors, mass)
            self._forces = 0
            timer.record("exchange")

    def work(self, jerks: bool) -> Work:
        """Return the bodies; their pairs and expansions are not counted as operations."""
        return Work("bodies", float(self.number), 0.0)

    # --- restarts ---------------------------------------------------------------------------------

    def fields(self) -> list[Field]:
        """Return the last accelerations."""
        array = self.bodies.acceleration
        return [
            Field(
                name=ACCELERATION,
                shape=(self.number, 3),
                dtype=np.dtype("f8"),
                units="length / time^2",
                description="last acceleration of each body",
                index=self.own,
                host=self._acceleration_rows,
                role=Role.INTERNAL,
                start=lambda: self.backend.start_download(array),
                array=array,
            )
        ]

    def _acceleration_rows(self, first: int, last: int) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = self.backend.download(self.bodies.acceleration[first:last])
        return rows

    def scalars(self) -> dict[str, float]:
        """Return the units of the kernels, and that this is the force."""
        return {**self.pair_force.units.scalars(), LAST_FORCE_BY_TREE: 1.0}

    def restore(self, rows: Callable[[str], NDArray[Any]], scalars: Mapping[str, float]) -> None:
        """Take the last accelerations back: they are those of the saved positions."""
        self.bodies.acceleration[:] = self.backend.upload(rows(ACCELERATION))


def _held_bodies(setup: ForceSetup) -> HeldBodies:
    """Return the bodies that this rank owns, at rest at the origin."""
    state = make_state(setup.backend, slice(0, len(setup.own_mass)), setup.own_mass)
    kernels = make_kernels(setup.backend, state, setup.pair_force)
    return HeldBodies(setup.backend, state, state.mass / setup.pair_force.units.mass, kernels)


def _make_tree(setup: ForceSetup, expansion: Expansion) -> Tree:
    """Return the tree of all ranks."""
    backend = setup.backend
    law = setup.pair_force
    terms = setup.own_mass / law.units.mass
    mass = float(reproducible_sum(terms, setup.number, setup.communicator))
    ranks = (backend, setup.communicator, setup.exchange)
    if backend.shares_host_memory:
        sums = make_tree_sums(backend, expansion, law.eps2, mass)
        return DistributedTree(sums, Travels(sums, expansion.capacity, *ranks))
    tree = make_device_tree(backend, expansion, law.eps2, mass)
    by_shares = _sums_by_shares(setup, tree)
    return TreeOnDevices(tree, Travels(tree, expansion.capacity, *ranks), by_shares)


def _sums_by_shares(setup: ForceSetup, tree: DeviceTree) -> SumsByShares | None:
    """Return the sums by a tree that each device of a host has whole; None where none does."""
    exchange = setup.exchange
    if exchange.alone or setup.number > MOST_WHOLE or exchange.transport.peers is None:
        return None
    share = tree.share(exchange.transport.peers, exchange.partition, exchange.rank)
    return SumsByShares(share, setup.communicator, setup.number)
