"""Builds the N-body model of a configuration."""

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.state import StoredState
from hybrid_nbody.nbody.activity import ActivityMap
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.calibrate import compile_kernels, measured_pace, measured_weights
from hybrid_nbody.nbody.config import NBodyConfig
from hybrid_nbody.nbody.forces.base import BodyExchange, ForceSetup
from hybrid_nbody.nbody.forces.choice import AUTO, DIRECT, FMM, Choice, chosen
from hybrid_nbody.nbody.forces.external import with_fields
from hybrid_nbody.nbody.forces.registry import FORCES, check_backends
from hybrid_nbody.nbody.forces.tree.force import LAST_FORCE_BY_TREE
from hybrid_nbody.nbody.frames import Shown, frames_of
from hybrid_nbody.nbody.integrators.base import IntegratorSetup
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.units import Units, measured
from hybrid_nbody.nbody.model import NBodyModel
from hybrid_nbody.nbody.pace import expected_lines
from hybrid_nbody.nbody.precision_range import check_range, warnings_of
from hybrid_nbody.nbody.solver import wanted_of
from hybrid_nbody.nbody.starting import Initial, first_bodies, initial_bodies, on_all_ranks
from hybrid_nbody.nbody.state import BYTES_OF_A_SOURCE
from hybrid_nbody.nbody.time_scales import warnings_of_steps
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.exchange.ring import RingExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.placement import Placement
from hybrid_nbody.parallel.shares import (
    Devices,
    RunSetup,
    check_lists,
    placement_lines,
    plural,
    shares,
)
from hybrid_nbody.simulation.model import SavedState
from hybrid_nbody.simulation.plan import PREPARING
from hybrid_nbody.simulation.timings import Timings

ALLGATHER = AllgatherExchange.name
RING = RingExchange.name

EXCHANGES: dict[str, type[BodyExchange]] = {ALLGATHER: AllgatherExchange, RING: RingExchange}
"""The exchange for each value of ``compute.exchange``."""

LEAST_SECONDS = 0.1
"""Seconds spent in forces below which the speeds of ranks are not reliable."""


class Masses(NamedTuple):
    """The masses of this rank's bodies, and what returns those of all."""

    own: NDArray[np.float64]
    all: Callable[[], NDArray[np.float64]]


class NBodyBuilder:
    """Builder of the N-body model on all ranks; see `hybrid_nbody.running.contract.Builder`.

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
    doing : str
        What takes long now, in words.
    solver : Choice
        The force, once devices are known.
    start : StoredState or None
        The state of another run that this one starts from.
    """

    least = 0
    doing = PREPARING

    def __init__(
        self, config: NBodyConfig, communicator: Communicator, devices: Devices | None = None
    ) -> None:
        self.config = config
        self.communicator = communicator
        self.devices = devices or Devices()
        self.warnings: list[str] = []
        self.solver = Choice(config.gravity.solver)
        self.start: StoredState | None = None

    def check(self) -> None:
        """Check what can be checked before anything is made.

        Raises
        ------
        InputError
            On every rank.
        """
        check_lists(self.config.compute, self.communicator.size)
        softening = self.config.gravity.softening
        if math.isinf(softening * softening):
            raise InputError(
                f"gravity.softening: must be at most 1e150 (got {softening:g}): its square is "
                "beyond the range of float64; choose a larger unit of length"
            ).on_all_ranks()

    def initial(self) -> Initial:
        """Return all bodies, what draws them, or a file that holds them; on the root alone.

        Raises
        ------
        InputError
            If a file of bodies is missing or wrong, or the precision cannot hold the bodies.
        """
        here = self.communicator.local_size / self.communicator.size
        initial = initial_bodies(self.config, here, self.start)
        check_range(initial.sample(), self.config.gravity)
        return initial

    def pace(self, backend: Backend) -> float:
        """Return the speed of this rank's device beside that in the tables, measured briefly."""
        return measured_pace(backend, self._pair_force(Units()), self.communicator)

    def fresh(self, initial: Initial | None) -> RunSetup[NBodyModel]:
        """Return a model at its initial state; the root passes what `initial` gave, others None."""
        units = Units() if initial is None else self._examined(initial)
        units = self.communicator.broadcast(units)
        bodies = on_all_ranks(initial, self.communicator)
        pair_force = self._pair_force(units)
        placement, exchange = self._arrange(len(bodies), pair_force)
        own = bodies.rows(exchange.own.start, exchange.own.stop)
        masses = Masses(own.mass, cache(bodies.masses))
        setup = self._force_setup(placement, exchange, masses, pair_force)
        model = self._model(setup, own.id)
        model.step = self.start.step if self.start else 0
        self.doing = "computing the first forces"
        model.begin(own)
        return RunSetup(model, placement, exchange)

    def _examined(self, initial: Initial) -> Units:
        """Return the units of the initial bodies, and note what a person is warned of."""
        sample = initial.sample()
        self.warnings = [
            *warnings_of(sample, self.config.gravity),
            *warnings_of_steps(sample, len(initial), self.config),
        ]
        return self._units(sample)

    def branched(self, start: StoredState) -> RunSetup[NBodyModel]:
        """Return a model at the bodies of a state of another run, from which it starts afresh."""
        self.start = start
        return self.fresh(self.communicator.only_on_root(self.initial))

    def restored(self, saved: SavedState) -> RunSetup[NBodyModel]:
        """Return a model at the state of a checkpoint; every rank reads its own rows."""
        pair_force = self._saved_pair_force(saved)
        placement, exchange = self._arrange(saved.number, pair_force, saved)
        return self._restored(saved, placement, exchange, pair_force)

    def busy_seconds(self, setup: RunSetup[NBodyModel]) -> float:
        """Return the seconds that this rank has computed forces."""
        return setup.model.timings["force"]

    def speeds(self, setup: RunSetup[NBodyModel], seconds: list[float]) -> list[float] | None:
        """Return the bodies a second of each rank; None if `seconds` are too few to tell.

        Where a rank has no bodies, and so no seconds, all ranks are calibrated: otherwise it would
        never get any again.
        """
        counts = setup.exchange.partition.counts
        if 0 in counts:
            return self._calibrate(setup.placement, sum(counts), setup.model.pair_force)
        if max(seconds) < LEAST_SECONDS:
            return None
        pairs = zip(counts, seconds, strict=True)
        return [count / taken if taken > 0 else 0.0 for count, taken in pairs]

    def rearranged(
        self, setup: RunSetup[None], partition: Partition, saved: SavedState
    ) -> RunSetup[NBodyModel]:
        """Return a model with other shares on the devices of `setup`, at a saved state."""
        make = EXCHANGES[setup.exchange.name]
        exchange = make(setup.exchange.transport, partition, self.communicator.rank)
        pair_force = self._saved_pair_force(saved)
        return self._restored(saved, setup.placement, exchange, pair_force)

    def _restored(
        self,
        saved: SavedState,
        placement: Placement,
        exchange: BodyExchange,
        pair_force: PairForce,
    ) -> RunSetup[NBodyModel]:
        own = exchange.own
        everyone = slice(0, saved.number)
        masses = Masses(
            saved.rows("bodies/mass", own), cache(lambda: saved.rows("bodies/mass", everyone))
        )
        setup = self._force_setup(placement, exchange, masses, pair_force)
        model = self._model(setup, saved.rows("bodies/id", own))
        model.restore(lambda name: saved.rows(name, own), saved.scalars)
        return RunSetup(model, placement, exchange)

    def _pair_force(self, units: Units) -> PairForce:
        """Return the law of the configuration, held in units."""
        gravity = self.config.gravity
        return PairForce(gravity.precision, gravity.softening, gravity.G, units)

    def _saved_pair_force(self, saved: SavedState) -> PairForce:
        """Return the law in the units of a checkpoint; collective where it has none."""
        units = Units.of_scalars(saved.scalars)
        return self._pair_force(units or self._units(first_bodies(saved)))

    def _units(self, bodies: Bodies) -> Units:
        """Return the units of bodies."""
        gravity = self.config.gravity
        arrays = (bodies.position, bodies.velocity, bodies.mass)
        return measured(*arrays, gravity.softening, gravity.G)

    def lines(self, setup: RunSetup[NBodyModel]) -> list[str]:
        """Say what runs where."""
        gravity = self.config.gravity
        time = self.config.time
        total = _bodies_in_words(setup.exchange.partition.total)
        steps = f"{time.total_steps} steps of {time.dt:g}"
        precision = f"{gravity.precision} precision, softening {gravity.softening:g}"
        return [
            f"{self.config.title or 'hybrid_nbody'}: {total}, {steps}",
            *self.config.unit_lines,
            f"{time.integrator}, {self.solver.name} gravity, {precision}",
            *([self.solver.line] if self.solver.reason else []),
            *placement_lines(self.config.compute, setup, _bodies_in_words),
            *self._remarks(setup),
            *expected_lines(setup, self.config, self.solver, self.communicator, self.pace),
            *(f"warning: {warning}" for warning in self.warnings),
        ]

    def _remarks(self, setup: RunSetup[NBodyModel]) -> list[str]:
        """Say how ranks with two devices share their bodies out, and what limits the steps."""
        remarks = self.communicator.gather(setup.model.force.remark)
        lines = [f"  rank {rank:<4} {remark}" for rank, remark in enumerate(remarks) if remark]
        limited = setup.model.integrator.remark
        precision = self.config.gravity.precision
        return [*lines, f"{precision} precision: {limited}"] if limited else lines

    def _arrange(
        self, number: int, pair_force: PairForce, saved: SavedState | None = None
    ) -> tuple[Placement, BodyExchange]:
        """Choose devices, compile kernels, share the bodies out and connect the ranks."""
        compute = self.config.compute
        communicator = self.communicator
        placement = self.devices.assign(
            compute.backend, compute.threads, communicator, compute.cpu_share
        )
        self.solver = self._chosen(number, placement.backends, saved)
        check_backends(self.solver.name, placement.backends)
        beforehand = placement.backend.compiled_beforehand
        communicator.first_on_node(partial(self._compile, pair_force, number), beforehand)

        calibrate = partial(self._calibrate, placement, number, pair_force)
        partition = shares(compute, number, placement, calibrate)
        transport = self.devices.connect(
            compute.transport, placement.backend, communicator, placement.shared_gpus
        )
        exchange = EXCHANGES[self._exchange_name(number, placement)]
        return placement, exchange(transport, partition, communicator.rank)

    def _chosen(self, number: int, backends: Sequence[str], saved: SavedState | None) -> Choice:
        """Return the force: that of the checkpoint, where the choice was left open."""
        if self.config.gravity.solver == AUTO and saved is not None:
            name = FMM if LAST_FORCE_BY_TREE in saved.scalars else DIRECT
            return Choice(name, "the run began with it")
        several = self.communicator.on_several_nodes
        return chosen(wanted_of(self.config, number, several), backends)

    def _compile(self, pair_force: PairForce, number: int, device: Backend) -> None:
        """Compile what the run needs: direct sums also to compare ranks, or at no cost on a GPU."""
        force = FORCES[self.solver.name]
        sums = force.direct_sums or device.runs_ahead or self.communicator.size > 1
        jerks = INTEGRATORS[self.config.time.integrator].jerks
        compile_kernels(device, pair_force, number, jerks, sums)
        force.compile(device, pair_force, self.config.gravity.accuracy)

    def _calibrate(self, placement: Placement, number: int, pair_force: PairForce) -> list[float]:
        """Return the speed of each rank in bodies a second, measured briefly."""
        rates = measured_weights(placement.backend, pair_force, number, self.communicator)
        return [rate / number for rate in rates]

    def _exchange_name(self, number: int, placement: Placement) -> str:
        """Return how ranks see each other's bodies.

        Where that is left open it is a ring if the positions of all bodies take much memory.
        """
        asked: str = self.config.compute.exchange
        if self._needs_all_positions(placement):
            return ALLGATHER
        if asked != "auto":
            return asked
        return ALLGATHER if self._has_memory(number, placement.backend) else RING

    def _needs_all_positions(self, placement: Placement) -> bool:
        """Return whether every rank must hold the positions of all bodies.

        Raises
        ------
        InputError
            On every rank, if a ring was asked for that hybrid ranks cannot join.
        """
        is_hybrid = "hybrid" in placement.backends
        force = FORCES[self.solver.name]
        if is_hybrid and self.config.compute.exchange == RING:
            raise InputError(
                "compute.exchange: ring needs ranks that compute on one device; use allgather, or "
                "backend cpu or gpu"
            ).on_all_ranks()
        if is_hybrid or not force.rings or self.communicator.size == 1:
            return True
        return INTEGRATORS[self.config.time.integrator].jerks

    def _has_memory(self, number: int, backend: Backend) -> bool:
        """Return whether every device has memory for twice the positions of all bodies."""
        sharing = self.communicator.node.allgather(backend.identity).count(backend.identity)
        free = self.communicator.minimum(np.array(backend.free_memory() // sharing))
        return bool(2 * number * BYTES_OF_A_SOURCE <= free)

    def _model(self, setup: ForceSetup, ids: np.ndarray) -> NBodyModel:
        """Return the model, its bodies not yet set."""
        time_axis = self.config.time
        gravity = self.config.gravity
        between = FORCES[self.solver.name].make(setup)
        force = with_fields(
            between, [field.made for field in gravity.external or ()], gravity.G, setup
        )
        steps = IntegratorSetup(
            backend=setup.backend,
            communicator=self.communicator,
            ids=ids,
            dt=time_axis.dt,
            accuracy=time_axis.accuracy,
            timings=setup.timings,
        )
        integrator = INTEGRATORS[time_axis.integrator].make(steps)
        return NBodyModel(setup, ids, force, integrator, time_axis.dt, self._shown(setup, ids))

    def _force_setup(
        self,
        placement: Placement,
        exchange: BodyExchange,
        masses: Masses,
        pair_force: PairForce,
    ) -> ForceSetup:
        """Return what the force is made from.

        ``exchange: ring`` sums in ring order on one rank too.
        """
        return ForceSetup(
            backend=placement.backend,
            communicator=self.communicator,
            exchange=exchange,
            own_mass=masses.own,
            all_masses=masses.all,
            pair_force=pair_force,
            backends=tuple(placement.backends),
            ring_order=self.config.compute.exchange == RING,
            timings=Timings(),
            accuracy=self.config.gravity.accuracy,
        )

    def _shown(self, setup: ForceSetup, ids: NDArray[np.int64]) -> Shown:
        """Return what is written with the frames; all ranks call together."""
        section = self.config.output.trajectory
        own = setup.exchange.own
        frames = frames_of(section, ids, own, setup.number, self.communicator, setup.backend)
        maps = self._maps(setup.backend, setup.number)
        return Shown(frames, maps, self.config.unit_names, self.config.time.advise)

    def _maps(self, backend: Backend, number: int) -> tuple[ActivityMap, ...]:
        """Return the maps that are written with the frames."""
        section = self.config.activity_map
        ranks = self.communicator
        return (ActivityMap(backend, ranks, section.cells, number),) if section else ()


def _bodies_in_words(number: int) -> str:
    return plural(number, "body", "bodies")
