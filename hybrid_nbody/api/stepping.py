"""Steps of a simulation, what is called meanwhile, and what stops it."""

import time
import warnings
from collections.abc import Callable
from typing import Any

from hybrid_nbody.api.notebook import NotebookProgress, notebook
from hybrid_nbody.api.state import State
from hybrid_nbody.conditions import Condition, Watch
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.shares import RunSetup
from hybrid_nbody.running import stopping
from hybrid_nbody.running.job import when
from hybrid_nbody.running.start import told_by_the_guard
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.loop import Event, TimeLoop
from hybrid_nbody.simulation.model import Model
from hybrid_nbody.simulation.schedule import (
    AnyOf,
    AtStep,
    EverySteps,
    EveryTime,
    EveryWallClock,
    Schedule,
)

BAR_SECONDS = 0.2
"""Wall-clock time between two looks of a bar in a notebook."""

LOOK_SECONDS = 1.0
"""Wall-clock time between two looks at whether the state is finite."""

Action = Callable[[Any], object]
"""A function that is called with a simulation while this goes on."""


class Stepping(State):
    """What advances a simulation; see `Simulation`."""

    def attach(self, setup: RunSetup[Model]) -> None:
        """Take a model, at any step, as the one that runs."""
        self._running = TimeLoop(setup.model, self.communicator, _NoSignals(), time.monotonic())
        self._transport = setup.exchange.transport
        self._guard = Guard(self, self.communicator, None)
        self._guard.check_numbers()
        self._note_size()
        self._events: list[Event] = []
        self.outcome = ""
        self.reason = ""
        measure = when(self.config.output.diagnostics, self.dt)
        for look in self.config.conditions:
            self._watch(look.condition, stopping.when(look, measure))

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
        self._together("run")
        last = self._last_step(until, steps)
        self._know_the_energy()
        self.outcome = ""
        self.reason = ""
        self._loop.outcome = ""
        self._loop.events = [
            *self._events,
            Event("guard", EveryWallClock(LOOK_SECONDS), self._guard.check_numbers),
            *self._progress(last),
            Event("finish", AtStep(last), self._finish),
        ]
        with told_by_the_guard():
            self.outcome = self._loop.run()
        self._guard.check_numbers()
        return self.outcome

    def _know_the_energy(self) -> None:
        """Measure the energy from which its error counts, before the first step from there."""
        if getattr(self.model, "initial_energy", 0.0) is None:
            self.model.diagnostics()

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
            Called about every `wall` seconds.

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
            each run in which it holds, and may return a text as the `reason`. Or ``escaped(50)``,
            ``closest(0.01)``, ``energy_error(1e-3)``: such a one stops when it begins to hold of a
            body or a pair, and `reason` says of which. If it holds of some already, a warning says
            so.
        every : int, optional
            Steps between two looks.
        """
        if not callable(condition):
            self._watch(condition, EverySteps(every))
            return

        name = getattr(condition, "__name__", "stopped")

        def look(simulation: Any) -> None:
            found = condition(simulation)
            if found:
                self._stop_at(name, found if isinstance(found, str) else f"{name} holds")

        self._add(EverySteps(every), look)

    def _watch(self, condition: Condition, schedule: Schedule) -> None:
        """Stop when a condition begins to hold; say of whom it holds already."""
        self._together("stop_when")
        watch = Watch(condition)

        def look() -> None:
            text = watch.look(self.model, self.model.diagnostics)
            if text:
                self._stop_at(condition.name, text)

        text = watch.look(self.model, self.model.diagnostics)
        if text and self.communicator.is_root:
            warnings.warn(f"{text}, already: it stops when that happens anew", stacklevel=3)
        self._events.append(Event("conditions", schedule, look))

    def _stop_at(self, outcome: str, text: str) -> None:
        """End `run` at this step, and say what happened."""
        self.reason = f"step {self.steps}, t = {self.time:g}: {text}"
        self.stop(outcome)

    def _add(self, schedule: Schedule, function: Action) -> Action:
        """Call a function on a schedule, but not twice at the step where a run ends."""
        called: list[int] = []

        def action() -> None:
            if called[-1:] != [self.model.step]:
                called[:] = [self.model.step]
                function(self)
                self.model.backend.use()  # a function may step another simulation
                self._together("run")  # or what a function has called on some ranks alone

        self._events.append(Event("function", schedule, action))
        return function

    def _progress(self, last: int) -> list[Event]:
        """Return what shows how far a run is, in a notebook; nothing elsewhere."""
        displays = notebook()
        if displays is None:
            return []
        progress = NotebookProgress("step", displays)
        progress.begin(self.steps)

        def show() -> None:
            progress.update(self.steps, last, f"t = {self.time:.4g}")

        return [Event("progress", AnyOf(EveryWallClock(BAR_SECONDS), AtStep(last)), show)]

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


class _NoSignals:
    """Nobody asks a simulation in memory to stop: Ctrl-C interrupts it."""

    received = ""
