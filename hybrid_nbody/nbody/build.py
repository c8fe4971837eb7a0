"""Builds the N-body model of a configuration."""

from functools import partial

import numpy as np

from hybrid_nbody.backends.cpu import available_memory
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.nbody import initial_conditions
from hybrid_nbody.nbody.activity import ActivityMap
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.calibrate import compile_kernels, measured_weights
from hybrid_nbody.nbody.forces.base import ForceSetup
from hybrid_nbody.nbody.forces.registry import FORCES
from hybrid_nbody.nbody.integrators.base import IntegratorSetup
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.model import NBodyModel
from hybrid_nbody.nbody.state import BYTES_OF_A_SOURCE
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.exchange.ring import RingExchange
from hybrid_nbody.parallel.rows import broadcast_array, scatter_rows
from hybrid_nbody.parallel.shares import (
    Devices,
    RunSetup,
    check_lists,
    placement_lines,
    plural,
    shares,
)
from hybrid_nbody.simulation.timings import Timings

EXCHANGES = {exchange.name: exchange for exchange in (AllgatherExchange, RingExchange)}

NEEDS_G = ("plummer", "uniform-sphere", "two-body", "figure-eight", "lagrange-triangle")
NEEDS_SEED = ("plummer", "uniform-sphere", "cold-sphere", "random-box", "random-square")
NOT_ARGUMENTS = ("kind", "dimensions")

LEAST_BYTES_OF_A_BODY = 150
"""Of what a body takes while it is drawn, or then in the model, at least."""

LEAST_SECONDS = 0.1
"""Time of computing forces from which the speeds of ranks are judged."""


class NBodyBuilder:
    """From a configuration to bodies on all ranks; `FluidBuilder` has the same methods.

    Parameters
    ----------
    config : NBodyConfig
    communicator : Communicator
        Every rank calls together.
    devices : Devices, optional
        How ranks get their devices.

    Attributes
    ----------
    least : int
        Rows that a rank has at least where shares follow the speed.
    """

    least = 0

    def __init__(self, config, communicator, devices=None):
        self.config = config
        self.communicator = communicator
        self.devices = devices or Devices()
        gravity = config.gravity
        self.pair_force = PairForce(gravity.precision, gravity.softening, gravity.G)

    def check(self) -> None:
        """Check what can be checked before anything is made.

        Raises
        ------
        InputError
            On every rank.
        """
        check_lists(self.config.compute, self.communicator.size)

    def initial(self) -> Bodies:
        """Return all bodies; on the root alone.

        Raises
        ------
        InputError
            If a file of bodies is missing or wrong.
        """
        return initial_bodies(self.config)

    def fresh(self, bodies: Bodies | None) -> RunSetup:
        """Return a model at its initial state; the root passes all bodies, the other ranks None."""
        communicator = self.communicator
        number = communicator.broadcast(len(bodies) if communicator.is_root else 0)
        placement, exchange = self._arrange(number)

        def rows(name, shape, dtype="f8"):
            return scatter_rows(
                getattr(bodies, name, None), shape, dtype, exchange.partition, communicator
            )

        mass = broadcast_array(bodies.mass if bodies else None, (number,), "f8", communicator)
        ids = rows("id", (number,), "i8")
        model = self._model(placement, exchange, mass, ids)
        model.begin(
            Bodies(
                rows("position", (number, 3)), rows("velocity", (number, 3)), model.own_mass, ids
            )
        )
        return RunSetup(model, placement, exchange)

    def restored(self, saved) -> RunSetup:
        """Return a model at the state of a checkpoint; every rank reads its own rows."""
        return self._restored(saved, *self._arrange(saved.number))

    def busy_seconds(self, setup: RunSetup) -> float:
        """Return the seconds that this rank has computed forces."""
        return setup.model.timings["force"]

    def speeds(self, setup: RunSetup, seconds: list[float]) -> list[float] | None:
        """Return the bodies a second of each rank, whose forces took `seconds`; None if that is too short to tell.

        Where a rank has no bodies, and so no seconds, a trial measures all ranks: else it would
        never get any again.
        """
        counts = setup.exchange.partition.counts
        if 0 in counts:
            return self._trial(setup.placement, sum(counts))
        if max(seconds) < LEAST_SECONDS:
            return None
        return [
            count / taken if taken > 0 else 0.0
            for count, taken in zip(counts, seconds, strict=True)
        ]

    def rearranged(self, setup: RunSetup, partition, saved) -> RunSetup:
        """Return a model on the devices of `setup` with other shares, at a state that each rank reads its rows of."""
        exchange = type(setup.exchange)(setup.exchange.transport, partition, self.communicator.rank)
        return self._restored(saved, setup.placement, exchange)

    def _restored(self, saved, placement, exchange):
        own = exchange.own
        mass = saved.rows("bodies/mass", slice(0, saved.number))
        model = self._model(placement, exchange, mass, saved.rows("bodies/id", own))
        model.restore(lambda name: saved.rows(name, own), saved.scalars)
        return RunSetup(model, placement, exchange)

    def lines(self, setup: RunSetup) -> list[str]:
        """Say what runs where."""
        gravity = self.config.gravity
        time_axis = self.config.time
        total = setup.exchange.partition.total
        title = self.config.title or "hybrid_nbody"
        force = f"{gravity.solver} gravity, {gravity.precision} precision, softening {gravity.softening:g}"
        bodies = partial(plural, one="body", many="bodies")
        return [
            f"{title}: {bodies(total)}, {time_axis.total_steps} steps of {time_axis.dt:g}",
            f"{time_axis.integrator}, {force}",
            *placement_lines(self.config.compute, setup, bodies),
            *self._remarks(setup),
        ]

    def _remarks(self, setup):
        """Say how ranks with two devices share their bodies out among them; all ranks call together."""
        mine = setup.model.force.remark
        return [
            f"  rank {rank:<4} {remark}"
            for rank, remark in enumerate(self.communicator.gather(mine))
            if remark
        ]

    def _arrange(self, number):
        """Choose devices, compile kernels, share `number` bodies out and connect the ranks."""
        compute = self.config.compute
        communicator = self.communicator
        placement = self.devices.assign(
            compute.backend, compute.threads, communicator, compute.cpu_share
        )
        jerks = INTEGRATORS[self.config.time.integrator].jerks
        communicator.first_on_node(
            lambda device: compile_kernels(device, self.pair_force, jerks),
            placement.backend.devices,
        )
        partition = shares(compute, number, placement, lambda: self._trial(placement, number))
        transport = self.devices.connect(
            compute.transport, placement.backend, communicator, placement.shared_gpus
        )
        return placement, self._exchange(number, placement)(transport, partition, communicator.rank)

    def _trial(self, placement, number):
        """Return the speed of each rank in bodies a second, from a short trial."""
        rates = measured_weights(placement.backend, self.pair_force, number, self.communicator)
        return [rate / number for rate in rates]

    def _exchange(self, number, placement):
        """Return the kind of exchange: as asked for, or a ring where the positions of all bodies take much room."""
        asked = self.config.compute.exchange
        hybrid = "hybrid" in placement.kinds
        if asked == "ring" and hybrid:
            text = "compute.exchange: ring needs ranks that compute on one device; use allgather, or backend cpu or gpu"
            raise InputError(text).on_all_ranks()
        jerks = INTEGRATORS[self.config.time.integrator].jerks
        if self.communicator.size == 1 or hybrid or jerks:
            return AllgatherExchange
        if asked == "auto":
            return AllgatherExchange if self._have_room(number, placement.backend) else RingExchange
        return EXCHANGES[asked]

    def _have_room(self, number, backend):
        """Return whether every device has room for the positions of all bodies, and as much again."""
        sharing = self.communicator.node.allgather(backend.identity).count(backend.identity)
        free = self.communicator.minimum(np.array(backend.free_memory() // sharing))
        return 2 * number * BYTES_OF_A_SOURCE <= free

    def _model(self, placement, exchange, mass, ids):
        """Return the model, its bodies not yet set."""
        time_axis = self.config.time
        setup = self._force_setup(placement, exchange, mass)
        force = FORCES[self.config.gravity.solver].make(setup)
        steps = IntegratorSetup(
            backend=placement.backend,
            communicator=self.communicator,
            ids=ids,
            dt=time_axis.dt,
            accuracy=time_axis.accuracy,
            timings=setup.timings,
        )
        integrator = INTEGRATORS[time_axis.integrator].make(steps)
        shown = self._shown(placement.backend, len(mass))
        return NBodyModel(setup, ids, force, integrator, time_axis.dt, shown)

    def _force_setup(self, placement, exchange, mass):
        """Return what the force is made from; `exchange: ring` sums in ring order on one rank too."""
        return ForceSetup(
            backend=placement.backend,
            communicator=self.communicator,
            exchange=exchange,
            mass=mass,
            pair_force=self.pair_force,
            kinds=tuple(placement.kinds),
            ring_order=self.config.compute.exchange == RingExchange.name,
            timings=Timings(),
        )

    def _shown(self, backend, number):
        """Return what is written with the frames besides the bodies."""
        chosen = self.config.activity_map
        return (
            ()
            if chosen is None
            else (ActivityMap(backend, self.communicator, chosen.cells, number),)
        )


def initial_bodies(config) -> Bodies:
    """Return the bodies that a configuration asks for.

    Raises
    ------
    InputError
        If a file of bodies is missing or wrong, or this machine has no room for so many bodies.
    """
    choice = config.bodies
    if choice.kind == "file":
        return _bodies_of_file(choice, config.seed)
    arguments = {name: value for name, value in choice if name not in NOT_ARGUMENTS}
    arguments |= {"G": config.gravity.G} if choice.kind in NEEDS_G else {}
    arguments |= {"seed": config.seed} if choice.kind in NEEDS_SEED else {}
    _check_room(arguments.get("n", 0))
    return getattr(initial_conditions, choice.kind.replace("-", "_"))(**arguments)


def _check_room(number):
    """Refuse more bodies than this machine has room for: it would end this process, or another, without a word."""
    needed = number * LEAST_BYTES_OF_A_BODY
    free = available_memory()
    if needed > free:
        raise InputError(
            f"bodies.n: {number} bodies take {needed / 1e9:.3g} GB of memory at least, and {free / 1e9:.3g} GB are "
            "free on this machine; take fewer"
        )


def _bodies_of_file(choice, seed):
    table = read_bodies(choice.path, seed)
    if choice.dimensions == 2:
        _check_flat(choice.path, table)
    return Bodies(table.position, table.velocity, table.mass, table.id)


def _check_flat(path, table):
    """Check that bodies lie in the plane z = 0 and move within it."""
    outside = np.flatnonzero((table.position[:, 2] != 0) | (table.velocity[:, 2] != 0))
    if len(outside):
        z = table.position[outside[0], 2]
        speed = table.velocity[outside[0], 2]
        raise InputError(
            f"{path}: body {outside[0]}, counted from 0, has z = {z:g} and vz = {speed:g}; with bodies.dimensions: 2 "
            "both must be 0 for every body"
        )
