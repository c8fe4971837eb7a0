"""Steps of a simulation, what is called meanwhile, and what stops it."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any

from hybrid_nbody.api.notebook import NotebookProgress, notebook
from hybrid_nbody.api.state import State
from hybrid_nbody.conditions import Condition, Watch
from hybrid_nbody.config.sections import MOST_STEPS
from hybrid_nbody.errors import InputError
from hybrid_nbody.number_checks import finite_number, positive_number, whole_number
from hybrid_nbody.parallel.shares import RunSetup
from hybrid_nbody.running import stopping
from hybrid_nbody.running.cores import cores_events
from hybrid_nbody.running.job import schedules_of
from hybrid_nbody.running.start import without_numpy_warnings
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

ENDLESS = 10**9
"""Steps of a simulation for which no end is given."""

BAR_SECONDS = 0.2
"""Wall-clock time between two looks of a bar in a notebook."""

LOOK_SECONDS = 1.0
"""Wall-clock time between two looks at whether the state is finite."""

OF_A_CONDITION = ("name", "found", "words")
"""What an object has by which a run may be stopped."""

Action = Callable[[Any], object]
"""A function that is called with a simulation while this goes on."""


class Stepping(State):
    """What advances a simulation; see `Simulation`."""

    outcome: str
    reason: str

    def attach(self, setup: RunSetup[Model]) -> None:
        """Take a model, at any step, as the one that runs."""
        self._running = TimeLoop(setup.model, self.communicator, _NoSignals(), time.monotonic())
        self._transport = setup.exchange.transport
        self._guard = Guard(self, self.communicator, None)
        self._guard.check_numbers()
        self._note_size()
        self._events: list[Event] = []
        self._stops = False  # whether a condition may end a run
        self._call = "run"
        self._advances = False
        self.outcome = ""
        self.reason = ""
        measure = schedules_of(self.config.output.diagnostics, self.dt)
        for look in self.config.conditions:
            self._watch(look.condition, stopping.schedule_of(look, measure))

    def run(self, until: float | None = None, steps: int | None = None) -> str:
        """Advance up to a time or by some steps, by default to the end; return the outcome.

        All ranks call together, with the same end.

        Parameters
        ----------
        until : float, optional
            A time, rounded to the nearest step.
        steps : int, optional

        Raises
        ------
        InputError
            On every rank, if both are given, or neither and nothing would end the run, if the time
            is in the past, or if ranks are given different ends.
        NumericalError
            On every rank, if a number is not finite any more.
        """
        return self._advance("run", lambda: self._last_step(until, steps))

    def _advance(self, call: str, last_step: Callable[[], int]) -> str:
        """Advance to a step, once all ranks agree on it; `call` is what the ranks call."""
        if self._advances:
            raise InputError(
                f"{call}: called by a function that the simulation itself calls while it goes on; "
                "it goes on by itself once the function has returned"
            )

        def checked() -> tuple[str, int]:
            last = last_step()
            return f" to step {last}", last

        last = self._agree(call, checked)
        self._call = call
        self._know_the_energy()
        self.outcome = ""
        self.reason = ""
        self._loop.outcome = ""
        self._loop.events = [
            *self._events,
            Event("guard", EveryWallClock(LOOK_SECONDS), self._guard.check_numbers),
            *self._progress(last),
            *cores_events(self._loop.model.backend, lambda text: None),
            Event("finish", AtStep(last), self._finish),
        ]
        with without_numpy_warnings(), self._advancing():
            self.outcome = self._loop.run()
        self._guard.check_numbers()
        return self.outcome

    @contextmanager
    def _advancing(self) -> Iterator[None]:
        """Refuse other calls that advance, which a function might make."""
        self._advances = True
        try:
            yield
        finally:
            self._advances = False

    def _know_the_energy(self) -> None:
        """Measure the energy from which its error counts, before the first step from there."""
        if getattr(self.model, "initial_energy", 0.0) is None:
            self.model.diagnostics()

    def step(self, number: int = 1) -> str:
        """Advance by some steps; return the outcome, as `run` does."""
        return self._advance("step", lambda: self._step_after("step: number", number))

    def stop(self, reason: str = "stopped") -> None:
        """End `run` at this step: for functions that `every` calls."""
        self._loop.stop(reason)

    def every(
        self, *, steps: int | None = None, time: float | None = None, wall: float | None = None
    ) -> Callable[[Action], Action]:
        """Return a decorator: the function is called with this simulation while it goes on.

        All ranks call together.

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
            On every rank, if not exactly one of them is given, greater than 0, or ranks are given
            different ones.
        """
        given = {"steps": steps, "time": time, "wall": wall}
        schedule = self._agree("every", lambda: _schedule_of(given, self.dt))

        def decorator(function: Action) -> Action:
            if not callable(function):
                raise InputError(f"every: give a function to call (got {function!r})")
            return self._add(schedule, function)

        return decorator

    def stop_when(self, condition: Action | Condition, every: int = 1) -> None:
        """Stop as soon as a condition holds; its name is the outcome.

        All ranks call together.

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

        Raises
        ------
        InputError
            On every rank, if it is no condition, or of what the model does not have, or `every` is
            no number of steps.
        """
        schedule = self._agree("stop_when", lambda: _looks_at(condition, every))
        if callable(condition):
            self._ask(condition, schedule)
        else:
            self._watch(condition, schedule)

    def _ask(self, condition: Action, schedule: Schedule) -> None:
        """Stop when a function says so."""
        name = getattr(condition, "__name__", "stopped")

        def look(simulation: Any) -> None:
            found = condition(simulation)
            if found:
                self._stop_at(name, found if isinstance(found, str) else f"{name} holds")

        self._add(schedule, look)
        self._stops = True

    def _watch(self, condition: Condition, schedule: Schedule) -> None:
        """Stop when a condition begins to hold; say of whom it holds already."""
        watch = Watch(condition)

        def look() -> None:
            text = watch.look(self.model, self.model.diagnostics)
            if text:
                self._stop_at(condition.name, text)

        text = watch.look(self.model, self.model.diagnostics)
        if text and self.communicator.is_root:
            warnings.warn(f"{text}, already: it stops when that happens anew", stacklevel=3)
        self._events.append(Event("conditions", schedule, look))
        self._stops = True

    def _stop_at(self, outcome: str, text: str) -> None:
        """End `run` at this step, and say what happened."""
        self.reason = f"step {self.steps}, t = {self.time:g}: {text}"
        self.stop(outcome)

    def _add(self, schedule: Schedule, function: Action) -> Action:
        """Call a function on a schedule, but not twice at the step where a run ends."""
        latest: int | None = None

        def action() -> None:
            nonlocal latest
            model = self._loop.model
            if model.step == latest:
                return
            latest = model.step
            model.fields()  # all ranks together: the function may ask for them on some alone
            function(self)
            self._loop.model.backend.use()  # a function may step another simulation
            ends = self._loop.outcome and f", and stops as {self._loop.outcome}"
            self._together(f"{self._call}{ends}")  # or what a function has called on some alone

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
        if steps is not None:
            return self._step_after("run: steps", steps)
        last = self._own_end() if until is None else self._step_at(until)
        if last < self.model.step:
            raise InputError(f"run: the simulation is at t = {self.time:g} already")
        return last

    def _own_end(self) -> int:
        """Return the last step of the configuration, which a condition may do without."""
        last: int = self.config.time.total_steps
        if last == ENDLESS and not self._stops:
            raise InputError("run: give until or steps: the simulation has no end of its own")
        return last

    def _step_at(self, until: float) -> int:
        """Return the step that is nearest to a time."""
        steps = finite_number("run: until", until) / self.dt
        if steps > MOST_STEPS:
            raise InputError(f"run: until must be at most 1e15 steps of dt away (got {until!r})")
        return round(steps)

    def _step_after(self, name: str, steps: int) -> int:
        """Return the step after some more; `name` is that of the argument."""
        return self.model.step + whole_number(name, steps, 0)


def _schedule_of(given: Mapping[str, Any], dt: float) -> tuple[str, Schedule]:
    """Return the schedule of the argument that is given to `every`, after it in words."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) != 1:
        raise InputError("every: give one of steps, time and wall, greater than 0")
    ((name, value),) = chosen.items()
    if name == "steps":
        steps = whole_number("every: steps", value, 1)
        return f"(steps={steps})", EverySteps(steps)
    interval = positive_number(f"every: {name}", value)
    schedule = EveryTime(interval, dt) if name == "time" else EveryWallClock(interval)
    return f"({name}={float(interval):.12g})", schedule


def _looks_at(condition: Any, every: int) -> tuple[str, Schedule]:
    """Return the schedule of looks at a condition, after the arguments of `stop_when` in words."""
    if not callable(condition) and not all(hasattr(condition, name) for name in OF_A_CONDITION):
        raise InputError(
            f"stop_when: give a function, or a condition such as escaped(50) (got {condition!r})"
        )
    steps = whole_number("stop_when: every", every, 1)
    name = getattr(condition, "__name__", type(condition).__name__)
    words = repr(condition) if is_dataclass(condition) else name
    return f"({words}, every={steps})", EverySteps(steps)


class _NoSignals:
    """Nobody asks a simulation in memory to stop: Ctrl-C interrupts it."""

    received = ""
