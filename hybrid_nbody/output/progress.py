"""Telling how a run gets on: a bar on a terminal, plain lines in a batch log."""

import time
from contextlib import suppress
from dataclasses import dataclass

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from hybrid_nbody.output.summary import with_prefix


@dataclass(frozen=True)
class Status:
    """How far a run is.

    Attributes
    ----------
    step, last_step : int
        Steps done, and to be done.
    time : float
        Simulated time.
    step_seconds : float
        Seconds that a step takes, everything counted.
    rate : float
        Interactions (or cells) a second.
    unit : str
        What `rate` counts.
    energy_error : float or None
        Relative energy error of the latest diagnostics.
    """

    step: int
    last_step: int
    time: float
    step_seconds: float
    rate: float
    unit: str
    energy_error: float | None

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the last step, at the present pace."""
        return (self.last_step - self.step) * self.step_seconds

    @property
    def details(self) -> str:
        """Return time, rate and energy error in a few words."""
        rate = f"  {with_prefix(self.rate)}{self.unit}/s" if self.rate > 0 else ""
        error = "" if self.energy_error is None else f"  dE/E {self.energy_error:+.1e}"
        return f"t = {self.time:.4g}{rate}{error}"

    @property
    def left(self) -> str:
        """Return the time left in words; nothing as long as the pace is not known."""
        return f"{duration(self.seconds_left)} left" if self.step_seconds > 0 else ""


class BarProgress:
    """A bar that is drawn anew at every update.

    Parameters
    ----------
    console : rich.console.Console
        A terminal.
    """

    def __init__(self, console):
        columns = (
            TextColumn("step {task.completed}/{task.total}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TextColumn("{task.fields[details]}"),
            TextColumn("{task.fields[left]}"),
        )
        self.bar = Progress(*columns, console=console, auto_refresh=False, expand=True)
        self.task = None

    def update(self, status: Status) -> None:
        """Show `status`, as long as there is a terminal to show it on."""
        with suppress(OSError):
            self._draw(status)

    def _draw(self, status):
        fields = {"details": status.details, "left": status.left}
        if self.task is None:
            self.task = self.bar.add_task("", total=status.last_step, **fields)
            self.bar.start()
        self.bar.update(self.task, completed=status.step, **fields)
        self.bar.refresh()

    def close(self) -> None:
        """Leave the bar as it stands."""
        with suppress(OSError):
            self.bar.stop()


class LineProgress:
    """A line now and then: soon at first, then more and more rarely.

    Parameters
    ----------
    write : callable
        Takes a line.
    """

    def __init__(self, write):
        self.write = write
        self.started = self.next = time.monotonic()

    def update(self, status: Status) -> None:
        """Write `status` if enough time has passed since the last line, or at the last step."""
        now = time.monotonic()
        if now < self.next and status.step < status.last_step:
            return
        self.next = now + min(max(2.0, 0.1 * (now - self.started)), 60.0)
        done = f"step {status.step}/{status.last_step} ({status.step / status.last_step:.0%})"
        self.write(f"{done}  {status.details}  {status.left}".rstrip())

    def close(self) -> None:
        """Write nothing more."""


def duration(seconds: float) -> str:
    """Return seconds as a person says them: ``42 s``, ``3 min 20 s``, ``2 h 05 min``."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"
