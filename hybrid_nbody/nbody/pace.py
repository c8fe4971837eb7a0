"""How long the forces of a run take, before it has taken a step."""

from collections.abc import Callable

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.nbody.config import NBodyConfig
from hybrid_nbody.nbody.forces.choice import DIRECT, FMM, Choice
from hybrid_nbody.nbody.forces.speed import SPEEDS
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS
from hybrid_nbody.nbody.model import NBodyModel
from hybrid_nbody.nbody.solver import wanted_of
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.placement import working_threads
from hybrid_nbody.parallel.shares import RunSetup
from hybrid_nbody.progress import duration
from hybrid_nbody.simulation.plan import Workers

WORTH_SAYING = 10.0
"""Seconds from which on a run says at its start how long it takes."""


def seconds_of_force(
    config: NBodyConfig, number: int, choice: Choice, workers: Workers
) -> float | None:
    """Return the seconds of a force on all bodies; None where no speed is known.

    Parameters
    ----------
    config : NBodyConfig
    number : int
        Bodies.
    choice : Choice
        How forces are computed.
    workers : Workers
        The devices of all ranks, and their pace.
    """
    device = workers.backends[0]
    if device not in SPEEDS or choice.name not in (DIRECT, FMM):
        return None
    wanted = wanted_of(config, number)
    speed = SPEEDS[device]
    units = workers.threads if speed.of_a_thread else len(workers.backends)
    if choice.name == FMM:
        seconds = speed.seconds_of_tree(number, wanted.accuracy, wanted.precision, units)
    else:
        seconds = speed.seconds_of_pairs(number, wanted.precision, units)
    return seconds / workers.pace + speed.overhead


def seconds_of_step(force: float, config: NBodyConfig) -> float:
    """Return the seconds of a step, of which substeps make more, from those of a force."""
    return force * INTEGRATORS[config.time.integrator].forces_per_step


def expected_lines(
    setup: RunSetup[NBodyModel],
    config: NBodyConfig,
    choice: Choice,
    communicator: Communicator,
    pace: Callable[[Backend], float],
) -> list[str]:
    """Return a line on the seconds that a run still takes; none where they are few or unknown.

    Parameters
    ----------
    setup : RunSetup
        The model at the start.
    config : NBodyConfig
    choice : Choice
        How forces are computed.
    communicator : Communicator
        Every rank calls together.
    pace : callable
        Measures the speed of the devices beside that in the tables; called where it matters.
    """
    backend = setup.placement.backend
    threads = working_threads(backend.threads, communicator)
    workers = Workers(tuple(setup.placement.backends), threads)
    number = setup.model.number
    steps = config.time.total_steps - setup.model.step
    tabulated = seconds_of_force(config, number, choice, workers)
    if tabulated is None or steps * seconds_of_step(tabulated, config) < WORTH_SAYING:
        return []
    measured = seconds_of_force(config, number, choice, workers._replace(pace=pace(backend)))
    once = seconds_of_step(measured or tabulated, config)
    return [f"expected: {in_words(steps * once, config)}, {of_a_step(once)} a step, without output"]


def of_a_step(seconds: float) -> str:
    """Return the seconds of a step in words."""
    return f"{seconds:.2g} s" if seconds < 60 else duration(seconds)


def in_words(seconds: float, config: NBodyConfig) -> str:
    """Return the seconds of a run; adaptive substeps make them more."""
    least = "at least" if INTEGRATORS[config.time.integrator].adaptive else "about"
    return f"{least} {duration(seconds)}" if seconds >= 1 else "less than a second"
