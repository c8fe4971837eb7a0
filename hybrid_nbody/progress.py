"""The progress of a long job: a bar on a terminal, plain lines in a pipe or a log file."""

import io
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar, cast

if TYPE_CHECKING:  # rich takes longer to import than a short command takes to answer
    from rich.console import Console
    from rich.progress import Progress as Bar

REDRAW_SECONDS = 0.1
"""Shortest time between two drawings of a bar."""

FIRST_PAUSE = 2.0
"""Seconds between the first lines of `GrowingPause`."""

LONGEST_PAUSE = 60.0
"""Longest pause between two of its lines, in seconds."""

T = TypeVar("T")

OnProgress = Callable[[int, int], None]
"""Called with the numbers of parts done and of all parts."""

Step = Callable[[], None]
"""Called after each part of a job."""

DuePart = Callable[[int, int], bool]
"""Takes the numbers of parts done and of all parts; returns whether a line is due."""


# --- streams --------------------------------------------------------------------------------------


class BestEffortStream:
    """A text stream that drops what cannot be written: a job outlives the reader of its progress.

    Parameters
    ----------
    stream : file or None
        Such as ``sys.stderr``, whose pipe or terminal may be closed and whose disk may be full.
    """

    def __init__(self, stream: IO[str] | None):
        self.stream = io.StringIO() if stream is None else stream

    def write(self, text: str) -> None:
        """Write `text` if possible."""
        with suppress(OSError, ValueError):
            self.stream.write(text)

    def flush(self) -> None:
        """Flush the stream if possible."""
        with suppress(OSError, ValueError):
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


# --- progress -------------------------------------------------------------------------------------


class Progress:
    """The progress of a job: the part that is done, and the time that the rest will take.

    This class shows nothing, as is right for all ranks but the root; `LineProgress` and
    `BarProgress` do. Use it in a ``with`` statement, or call `close` at the end. An instance can be
    called in place of `update`.

    Parameters
    ----------
    what : str
        The singular of what is counted, such as ``frame``.
    steady : bool, optional
        Whether parts take about equally long. If not, the time taken is shown: the time left cannot
        be known.
    """

    def __init__(self, what: str, steady: bool = True):
        self.what = what
        self.steady = steady
        self.begin()

    def begin(self, done: int = 0) -> None:
        """Start the clock with `done` parts done already, as of a run that is resumed."""
        self._first = done
        self._started = time.monotonic()

    def clock(self, done: int, total: int) -> str:
        """Return the time left at the mean speed so far, or the time taken, in words."""
        if done <= self._first:
            return ""
        taken = time.monotonic() - self._started
        if not self.steady:
            return f"{duration(taken)} so far"
        return f"{duration(taken / (done - self._first) * (total - done))} left"

    def update(self, done: int, total: int, details: str = "") -> None:
        """Show that `done` of `total` parts are done, and `details` on the present one."""

    def __call__(self, done: int, total: int) -> None:
        self.update(done, total)

    def close(self) -> None:
        """Leave the terminal in order."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class LineProgress(Progress):
    """Progress as lines of text, for pipes and log files.

    Parameters
    ----------
    what : str
        See `Progress`.
    write : callable
        Takes a line.
    is_due : callable, optional
        Decides which updates become lines; by default one at each tenth of the job. The last
        update always does.
    steady : bool, optional
        See `Progress`.
    """

    def __init__(
        self,
        what: str,
        write: Callable[[str], None],
        is_due: DuePart | None = None,
        steady: bool = True,
    ):
        super().__init__(what, steady)
        self.write = write
        self.is_due = is_due or each_tenth

    def update(self, done: int, total: int, details: str = "") -> None:
        """See `Progress.update`."""
        if self.is_due(done, total) or done == total:
            share = f"{self.what} {done}/{total} ({done / total:.0%})"
            self.write("  ".join(filter(None, (share, details, self.clock(done, total)))))


class BarProgress(Progress):
    """Progress as a bar that is redrawn in place, for terminals.

    No thread redraws it between updates: what is being measured must not be disturbed.

    Parameters
    ----------
    what : str
        See `Progress`.
    console : rich.console.Console
        A terminal.
    transient : bool, optional
        Whether the bar disappears at the end.
    steady : bool, optional
        See `Progress`.
    """

    def __init__(self, what: str, console: "Console", transient: bool = False, steady: bool = True):
        super().__init__(what, steady)
        self._bar = _new_bar(what, console, transient)
        self._task = self._bar.add_task("", start=False, total=None, details="", clock="")
        self._next_drawing = 0.0

    def update(self, done: int, total: int, details: str = "") -> None:
        """See `Progress.update`."""
        now = time.monotonic()
        if now < self._next_drawing and done < total:
            return
        self._next_drawing = now + REDRAW_SECONDS
        clock = self.clock(done, total)
        self._bar.update(self._task, completed=done, total=total, details=details, clock=clock)
        with suppress(OSError):  # the terminal may be closed
            self._bar.start()
            self._bar.refresh()

    def close(self) -> None:
        """Leave the bar as it stands, and show the cursor again."""
        with suppress(OSError):
            self._bar.stop()


class SeveralProgress(Progress):
    """Progress that is shown in several ways at once, such as on a terminal and in a log.

    Parameters
    ----------
    *ways : Progress
    """

    def __init__(self, *ways: Progress):
        self.ways = ways
        super().__init__(ways[0].what)

    def begin(self, done: int = 0) -> None:
        """See `Progress.begin`."""
        for way in self.ways:
            way.begin(done)

    def update(self, done: int, total: int, details: str = "") -> None:
        """See `Progress.update`."""
        for way in self.ways:
            way.update(done, total, details)

    def close(self) -> None:
        """See `Progress.close`."""
        for way in self.ways:
            way.close()


def _new_bar(what: str, console: "Console", transient: bool) -> "Bar":
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (
        TextColumn(what + " {task.completed}/{task.total}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[details]}", markup=False),
        TextColumn("{task.fields[clock]}"),
    )
    return Progress(*columns, console=console, auto_refresh=False, expand=True, transient=transient)


def progress_on(stream: IO[str] | None, what: str) -> Progress:
    """Return what shows the progress of a job on a stream, which may fail without harm.

    Parameters
    ----------
    stream : file or None
        Such as ``sys.stderr``; None if there is none.
    what : str
        See `Progress`.
    """
    if stream is None:
        return Progress(what)
    output = BestEffortStream(stream)
    if not stream.isatty():
        return LineProgress(what, lambda line: print(line, file=output, flush=True))
    from rich.console import Console

    return BarProgress(what, Console(file=cast(IO[str], output)))


# --- counting parts -------------------------------------------------------------------------------


def counter(progress: OnProgress | None, total: int) -> Step:
    """Return a function to be called after each part of a job, however many passes it takes.

    Parameters
    ----------
    progress : callable or None
        Takes the numbers of parts done and of all parts.
    total : int
        Parts of the whole job.
    """
    if progress is None:
        return no_step
    done = count(1)
    return lambda: progress(next(done), total)


def no_step() -> None:
    """Count nothing."""


def counted(items: Iterable[T], step: Step) -> Iterator[T]:
    """Yield `items`, and call `step` after each when it has been dealt with."""
    for item in items:
        yield item
        step()


# --- when a line is due ---------------------------------------------------------------------------


def each_tenth(done: int, total: int) -> bool:
    """Return whether the part just done completes another tenth of the job."""
    return done * 10 // total > (done - 1) * 10 // total


def each_part(done: int, total: int) -> bool:
    """Return that every part is worth a line."""
    return True


class GrowingPause:
    """Lines that come soon at first, then more and more rarely, however fast the parts are."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._next = self._started

    def __call__(self, done: int, total: int) -> bool:
        """Return whether enough time has passed since the last line."""
        now = time.monotonic()
        if now < self._next:
            return False
        pause = 0.1 * (now - self._started)
        self._next = now + min(max(FIRST_PAUSE, pause), LONGEST_PAUSE)
        return True


def duration(seconds: float) -> str:
    """Return a time as people say it: ``42 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
