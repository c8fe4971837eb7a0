"""Builds a run from a configuration and carries it out: the only place that knows every part."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hybrid_nbody.analysis.bodies_file import read_bodies
from hybrid_nbody.config import loader
from hybrid_nbody.config.schema import NBodyConfig
from hybrid_nbody.errors import DamagedFileError, InputError
from hybrid_nbody.job import Job
from hybrid_nbody.nbody import initial_conditions
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.model import NBodyModel
from hybrid_nbody.nbody.trial import compile_kernels, measured_weights
from hybrid_nbody.output import checkpoint, directory
from hybrid_nbody.output.log import Log
from hybrid_nbody.output.terminal import open_console
from hybrid_nbody.parallel.exchange import AllgatherExchange, choose_transport
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.placement import Placement, place
from hybrid_nbody.parallel.scatter import broadcast_array, scatter_rows
from hybrid_nbody.simulation.signals import StopSignals

CHANGEABLE = (
    "title",
    "time.end",
    "time.steps",
    "time.wall_limit",
    "time.max_energy_error",
    "compute",
    "output.trajectory",
    "output.diagnostics",
    "output.checkpoint",
)
"""What ``resume --set`` may change: not the physics that the part already done was computed with."""

NEEDS_G = ("plummer", "uniform-sphere", "two-body", "figure-eight", "lagrange-triangle")
NEEDS_SEED = ("plummer", "uniform-sphere", "cold-sphere", "random-box")


@dataclass(frozen=True)
class Ranks:
    """Where this rank computes, and which of all bodies are its own."""

    placement: Placement
    partition: Partition
    exchange: AllgatherExchange


# --- building -----------------------------------------------------------------------------------------------------


def initial_bodies(config: NBodyConfig) -> Bodies:
    """Return the bodies that a configuration asks for.

    Raises
    ------
    InputError
        If a file of bodies is missing or wrong.
    """
    choice = config.bodies
    if choice.kind == "file":
        table = read_bodies(choice.path)
        return Bodies(table.position, table.velocity, table.mass, table.id)
    arguments = {name: value for name, value in choice if name != "kind"}
    arguments |= {"G": config.gravity.G} if choice.kind in NEEDS_G else {}
    arguments |= {"seed": config.seed} if choice.kind in NEEDS_SEED else {}
    return getattr(initial_conditions, choice.kind.replace("-", "_"))(**arguments)


def check_weights(config: NBodyConfig, size: int) -> None:
    """Check that a list of weights has one for each rank.

    Raises
    ------
    InputError
        If it does not.
    """
    balance = config.compute.balance
    if not isinstance(balance, str) and len(balance) != size:
        raise InputError(
            f"compute.balance: {len(balance)} weights for {size} rank{'s' if size > 1 else ''}; give one weight a rank"
        ).on_all_ranks()


def arrange(config: NBodyConfig, number: int, communicator) -> Ranks:
    """Choose devices, compile kernels, share `number` bodies out and connect the ranks.

    Raises
    ------
    InputError
        On every rank, if the machine cannot do what the configuration asks for.
    """
    placement = place(config.compute.backend, config.compute.threads, communicator)
    backend, gravity = placement.backend, config.gravity
    communicator.first_on_node(lambda: compile_kernels(backend, gravity.precision, gravity.softening))
    weights = [1.0] * communicator.size if config.compute.balance == "equal" else config.compute.balance
    if weights == "measured":
        weights = measured_weights(backend, gravity.precision, gravity.softening, communicator)
    partition = Partition.weighted(number, weights)
    transport = choose_transport(config.compute.transport, backend, communicator, placement.shared_gpus)
    return Ranks(placement, partition, AllgatherExchange(transport, partition, communicator.rank))


def build_model(config: NBodyConfig, ranks: Ranks, mass, ids, communicator) -> NBodyModel:
    """Return the model of a configuration, its bodies not yet in place."""
    return NBodyModel(
        ranks.placement.backend,
        communicator,
        ranks.exchange,
        mass,
        ids,
        integrator=config.time.integrator,
        dt=config.time.dt,
        precision=config.gravity.precision,
        softening=config.gravity.softening,
        G=config.gravity.G,
    )


def model_from_bodies(config: NBodyConfig, bodies: Bodies | None, communicator) -> tuple[NBodyModel, Ranks]:
    """Return a model at its initial state; the root passes all bodies, the other ranks None."""
    number = communicator.broadcast(len(bodies) if communicator.is_root else 0)
    ranks = arrange(config, number, communicator)

    def rows(name, shape, dtype="f8"):
        return scatter_rows(getattr(bodies, name, None), shape, dtype, ranks.partition, communicator)

    mass = broadcast_array(bodies.mass if bodies else None, (number,), "f8", communicator)
    ids = rows("id", (number,), "i8")
    model = build_model(config, ranks, mass, ids, communicator)
    own = Bodies(rows("position", (number, 3)), rows("velocity", (number, 3)), model.own_mass, ids)
    model.begin(own)
    return model, ranks


def model_from_checkpoint(config, saved: checkpoint.Checkpoint, communicator) -> tuple[NBodyModel, Ranks]:
    """Return a model at the state of a checkpoint; every rank reads its own rows."""
    ranks = arrange(config, saved.number, communicator)
    start, stop = ranks.exchange.own.start, ranks.exchange.own.stop
    mass = saved.rows("bodies/mass", 0, saved.number)
    model = build_model(config, ranks, mass, saved.rows("bodies/id", start, stop), communicator)
    model.restore(lambda name: saved.rows(name, start, stop), saved.scalars)
    return model, ranks


# --- running ------------------------------------------------------------------------------------------------------


def open_log(communicator) -> Log:
    """Return the log; only the root's says anything."""
    return Log(open_console() if communicator.is_root else None)


def count(bodies: int) -> str:
    """Return a number of bodies in words."""
    return f"{bodies} bod{'y' if bodies == 1 else 'ies'}"


def introduce(config: NBodyConfig, model: NBodyModel, ranks: Ranks, log: Log) -> None:
    """Say what runs where."""
    gravity, time_axis, exchange = config.gravity, config.time, ranks.exchange
    title = config.title or "hybrid_nbody"
    log.say(f"{title}: {count(ranks.partition.total)}, {time_axis.total_steps} steps of {time_axis.dt:g}")
    force = f"{gravity.solver} gravity, {gravity.precision} precision, softening {gravity.softening:g}"
    log.say(f"{time_axis.integrator}, {force}")
    how = "" if exchange.alone else f"; exchange {exchange.name} over {exchange.transport.name}"
    log.say(f"{ranks.placement.reason}{how}")
    for (rank, host, device), bodies in zip(ranks.placement.table, ranks.partition.counts, strict=True):
        log.say(f"  rank {rank:<4} {host:<20} {device:<28} {count(bodies)}")
    if ranks.placement.shared_gpus:
        log.say("warning: ranks share a GPU; start one rank a GPU for full speed")


def run(path, overrides: Sequence[str], overwrite: bool, communicator, started: float) -> int:
    """Run a configuration from the beginning; return the exit code.

    Parameters
    ----------
    path : str or Path
        The configuration.
    overrides : sequence of str
        ``dotted.key=value`` of ``--set``.
    overwrite : bool
        Whether a run that the output directory holds may be replaced.
    communicator : Communicator
        Every rank calls together.
    started : float
        ``time.monotonic()`` of the program's start.

    Raises
    ------
    InputError
        On every rank; nothing was written.
    NumericalError, FileError
        While running.
    """
    log = open_log(communicator)
    with StopSignals() as signals:
        config = communicator.on_root(lambda: loader.load(path, overrides))
        check_weights(config, communicator.size)
        folder = Path(config.output.directory)
        communicator.only_on_root(lambda: directory.check(folder, overwrite))
        bodies = communicator.only_on_root(lambda: initial_bodies(config))
        model, ranks = model_from_bodies(config, bodies, communicator)
        introduce(config, model, ranks, log)
        communicator.only_on_root(lambda: directory.lock(folder))
        communicator.only_on_root(lambda: directory.claim(folder, overwrite))
        job = Job(config, folder, model, communicator, log, started, signals)
        job.trajectory.create(model, job.header)
        log.open(folder / directory.LOG)
        return job.run(saved_step=None)


def resume(folder: Path, overrides: Sequence[str], communicator, started: float) -> int:
    """Continue a run from its newest checkpoint that is whole; return the exit code.

    Parameters
    ----------
    folder : Path
        The run's directory.
    overrides, communicator, started
        As in `run`; only `CHANGEABLE` keys can be overridden.

    Raises
    ------
    InputError, FileError
        On every rank; nothing was changed.
    """
    log = open_log(communicator)
    with StopSignals() as signals:
        config, saved, warnings = communicator.on_root(lambda: _saved_run(folder, overrides))
        check_weights(config, communicator.size)
        model, ranks = model_from_checkpoint(config, saved, communicator)
        for warning in warnings:
            log.say(f"warning: {warning}; the checkpoint before it is used")
        introduce(config, model, ranks, log)
        log.say(f"resuming {folder} at step {model.step}, t = {model.time:g}, from {saved.path.name}")
        job = Job(config, folder, model, communicator, log, started, signals)
        log.open(folder / directory.LOG)
        _continue_trajectory(job)
        return job.run(saved_step=model.step)


def _saved_run(folder, overrides):
    """Return configuration, checkpoint and warnings of a run to be resumed."""
    directory.require_run(folder)
    directory.lock(folder)
    saved, warnings = checkpoint.load_newest(folder)
    _refuse_changed_physics(overrides)
    config = loader.loads(saved.config, str(saved.path), overrides)
    config = config.model_copy(update={"output": config.output.model_copy(update={"directory": str(folder)})})
    if config.time.total_steps < saved.scalars["step"]:
        raise InputError(
            f"time: the run is at step {saved.scalars['step']:.0f} already, past the end asked for "
            f"({config.time.total_steps} steps); give a later time.end or time.steps"
        )
    return config, saved, warnings


def _refuse_changed_physics(overrides):
    for override in overrides:
        key = override.split("=")[0].strip()
        if not any(key == name or key.startswith(f"{name}.") for name in CHANGEABLE):
            raise InputError(f"--set {override}: a resumed run can only change {', '.join(CHANGEABLE)}")


def _continue_trajectory(job):
    """Cut the trajectory back to the checkpoint; a damaged one is kept aside, and a new one begun."""
    if not job.communicator.on_root(job.trajectory.path.exists):
        job.log.say(f"warning: {job.trajectory.path} is gone; a new trajectory begins here")
        job.trajectory.create(job.model, job.header)
        return
    try:
        job.trajectory.reopen(job.model, job.header)
    except DamagedFileError as error:
        aside = job.trajectory.path.with_suffix(".damaged.h5")
        job.log.say(f"warning: {error}; it is kept as {aside.name}, and a new trajectory begins here")
        job.communicator.only_on_root(lambda: directory.put_aside(job.trajectory.path, aside))
        job.trajectory.create(job.model, job.header)
