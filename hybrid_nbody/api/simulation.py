"""A simulation that is stepped, and functions that are called meanwhile."""

import json
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from hybrid_nbody.api.bodies import checked_bodies
from hybrid_nbody.api.state import State
from hybrid_nbody.conditions import Condition, Watch
from hybrid_nbody.config import loader
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.parallel.communicator import Communicator, start_mpi
from hybrid_nbody.run.job import when
from hybrid_nbody.run.models import MODELS
from hybrid_nbody.run.start import built, resolved, told_by_the_guard
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.loop import Event, TimeLoop
from hybrid_nbody.simulation.schedule import (
    AnyOf,
    AtStep,
    EverySteps,
    EveryTime,
    EveryWallClock,
    Schedule,
)

ENDLESS = 10**9
"""Steps of a simulation for which no end is given."""

LOOK_SECONDS = 1.0
"""Wall-clock time between two looks at whether the state is finite."""

Action = Callable[["Simulation"], object]
"""A function that is called with a simulation while this goes on."""


class Simulation(State):
    """A simulation in memory, from a configuration.

    Parameters
    ----------
    path : str or Path, optional
        A configuration file.
    overrides : mapping, optional
        Values in the place of the file's, such as ``{"time.dt": 1e-3}``.
    communicator : Communicator, optional
        The ranks; by default all of them.
    initial : Bodies, optional
        The bodies at the start, in the place of those of the configuration.
    **sections
        What a file would hold, instead of one: ``model="nbody"``, ``bodies={...}``, ``time={...}``.
        Without ``time.steps`` or ``time.end`` there is no end.

    Attributes
    ----------
    config : ModelConfig
        The configuration, with every default.
    communicator : Communicator
    outcome : str
        Why the last `run` ended: ``finished``, what `stop` was told, or the name of a condition.
    reason : str
        What then happened, to whom and when, in words; empty if it was no condition.

    Raises
    ------
    InputError
        With every fault of the configuration.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        overrides: Mapping[str, Any] | None = None,
        communicator: Communicator | None = None,
        initial: Bodies | None = None,
        **sections: Any,
    ) -> None:
        if (path is None) == (not sections):
            raise InputError("Simulation: give a configuration file, or the sections of one")
        self.communicator = communicator or start_mpi()
        settings = [f"{key}={json.dumps(value)}" for key, value in (overrides or {}).items()]
        self.config: ModelConfig = self.communicator.on_root(
            lambda: resolved(path, settings) if path is not None else _config_of(sections, settings)
        )
        with told_by_the_guard():
            model = built(self.config, self.communicator, initial=initial).model
        self._loop = TimeLoop(model, self.communicator, _NoSignals(), time.monotonic())
        self._guard = Guard(self._loop, self.communicator, None)
        self._guard.check_numbers()
        self._events: list[Event] = []
        self.outcome = ""
        self.reason = ""
        measure = when(self.config.output.diagnostics, self.dt)
        for condition in self.config.conditions:
            self._watch(condition, AnyOf(*measure) if condition.measured else EverySteps(1))

    @classmethod
    def from_bodies(
        cls,
        positions: ArrayLike,
        velocities: ArrayLike,
        masses: ArrayLike,
        *,
        dt: float,
        softening: float = 0.0,
        G: float = 1.0,
        **sections: Any,
    ) -> Self:
        """Return a simulation of given bodies, which the root passes; other ranks' are not used.

        Parameters
        ----------
        positions, velocities : (N, 3) array
            In units of length, and of length over time.
        masses : (N,) array
        dt : float
            Time step.
        softening, G : float
            Of ``gravity``.
        **sections
            Other keys of a configuration: ``gravity={"solver": "fmm"}``,
            ``time={"integrator": "yoshida4"}``, ``compute={"backend": "gpu"}``.

        Raises
        ------
        InputError
            If shapes do not fit, or a number is not finite.
        """
        bodies = checked_bodies(positions, velocities, masses)
        placeholder = {"kind": "random-box", "n": len(bodies)}
        return cls(
            initial=bodies,
            model="nbody",
            bodies=placeholder,
            gravity={"G": G, "softening": softening} | sections.pop("gravity", {}),
            time={"dt": dt} | sections.pop("time", {}),
            **sections,
        )

    # ---- Steps -----------------------------------------------------------------------------------

    def run(self, until: float | None = None, steps: int | None = None) -> str:
        """Advance up to a time or by some steps, by default to the end; return the outcome.

        Parameters
        ----------
        until : float, optional
            A time, rounded to the nearest step.
        steps : int, optional

        Raises
        ------
        InputError
            If both are given, or the time is in the past.
        NumericalError
            On every rank, if a number is not finite any more.
        """
        last = self._last_step(until, steps)
        self.outcome = ""
        self.reason = ""
        self._loop.outcome = ""
        self._loop.events = [
            *self._events,
            Event("guard", EveryWallClock(LOOK_SECONDS), self._guard.check_numbers),
            Event("finish", AtStep(last), self._finish),
        ]
        with told_by_the_guard():
            self.outcome = self._loop.run()
        self._guard.check_numbers()
        return self.outcome

    def step(self, number: int = 1) -> str:
        """Advance by some steps; return the outcome, as `run` does."""
        return self.run(steps=number)

    def stop(self, reason: str = "stopped") -> None:
        """End `run` at this step: for functions that `every` calls."""
        self._loop.stop(reason)

    def every(
        self, *, steps: int | None = None, time: float | None = None, wall: float | None = None
    ) -> Callable[[Action], Action]:
        """Return a decorator: the function is called with this simulation while it goes on.

        Parameters
        ----------
        steps : int, optional
            Called at multiples of this step number.
        time : float, optional
            Called at multiples of this time.
        wall : float, optional
            Called about every so many seconds.

        Raises
        ------
        InputError
            If not exactly one of them is given.
        """
        given = [value for value in (steps, time, wall) if value is not None]
        if len(given) != 1 or not given[0] > 0:
            raise InputError("every: give one of steps, time and wall, greater than 0")
        schedule: Schedule
        if steps is not None:
            schedule = EverySteps(steps)
        elif time is not None:
            schedule = EveryTime(time, self.dt)
        else:
            schedule = EveryWallClock(given[0])
        return lambda function: self._add(schedule, function)

    def stop_when(self, condition: Action | Condition, every: int = 1) -> None:
        """Stop as soon as a condition holds; its name is the outcome.

        Parameters
        ----------
        condition : callable or Condition
            A function, called with this simulation, that returns the same on all ranks: it stops
            each run in which it holds. Or ``escaped(50)``, ``closest(0.01)``,
            ``energy_error(1e-3)``: such a one stops when it begins to hold of a body or a pair,
            and `reason` says of which. If it holds of some already, a warning says so.
        every : int, optional
            Steps between two looks.
        """
        if not callable(condition):
            self._watch(condition, EverySteps(every))
            return

        def look(simulation: "Simulation") -> None:
            if condition(simulation):
                simulation.stop(getattr(condition, "__name__", "stopped"))

        self._add(EverySteps(every), look)

    def _watch(self, condition: Condition, schedule: Schedule) -> None:
        """Stop when a condition begins to hold; say of whom it holds already."""
        watch = Watch(condition)

        def look() -> None:
            text = watch.look(self.model, self.model.diagnostics)
            if text:
                self.reason = f"step {self.steps}, t = {self.time:g}: {text}"
                self.stop(condition.name)

        text = watch.look(self.model, self.model.diagnostics)
        if text and self.communicator.is_root:
            warnings.warn(f"{text}, already: it stops when that happens anew", stacklevel=3)
        self._events.append(Event("conditions", schedule, look))

    def _add(self, schedule: Schedule, function: Action) -> Action:
        """Call a function on a schedule, but not twice at the step where a run ends."""
        called: list[int] = []

        def action() -> None:
            if called[-1:] != [self.model.step]:
                called[:] = [self.model.step]
                function(self)

        self._events.append(Event("function", schedule, action))
        return function

    def _finish(self) -> None:
        """End the run, unless a function has done so at this step."""
        if not self._loop.outcome:
            self._loop.stop("finished")

    def _last_step(self, until: float | None, steps: int | None) -> int:
        """Return the step at which a run ends."""
        if until is not None and steps is not None:
            raise InputError("run: give until or steps, not both")
        now = self.model.step
        last = self.config.time.total_steps
        if until is not None:
            last = round(until / self.dt)
        elif steps is not None:
            last = now + steps
        if last < now:
            raise InputError(f"run: the simulation is at t = {self.time:g} already")
        return last

    def __repr__(self) -> str:
        """Return what is simulated, and how far it is."""
        return f"Simulation(model={self.config.model}, t={self.time:g}, steps={self.steps})"


class _NoSignals:
    """Nobody asks a simulation in memory to stop: Ctrl-C interrupts it."""

    received = ""


def _config_of(sections: Mapping[str, Any], settings: list[str]) -> ModelConfig:
    """Return the configuration of sections, checked; without an end it has a distant one."""
    axis = dict(sections.get("time", {}))
    if not axis.keys() & {"end", "steps"}:
        axis["steps"] = ENDLESS
    text = json.dumps({**sections, "time": axis})
    config = loader.loads(text, "Simulation", settings, models=MODELS)
    complete: ModelConfig = MODELS[config.model].resolved(config)
    return complete
