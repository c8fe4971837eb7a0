"""Telling how far a long job is: a bar on a terminal, a line at every tenth elsewhere."""

import io
from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Unfailing:
    """A stream whose reader may have gone, or never was: what is written to it is lost then, and no more.

    Parameters
    ----------
    stream : file or None
    """

    def __init__(self, stream):
        self.stream = stream if stream is not None else io.StringIO()

    def write(self, text):
        """Write, if it can be."""
        with suppress(OSError, ValueError):  # a full disk under a log, a terminal that is closed
            self.stream.write(text)

    def flush(self):
        """Flush, if it can be."""
        with suppress(OSError, ValueError):
            self.stream.flush()

    def __getattr__(self, name):
        return getattr(self.stream, name)


class FrameProgress:
    """Shows the number of frames done, or of other parts; use it in a ``with`` statement, and call it after each.

    Parameters
    ----------
    stream : file or None
        Where a person or a batch log reads, if anybody does: if not, the job goes on all the same.
    what : str, optional
        What is counted, in the singular.
    """

    def __init__(self, stream, what="frame"):
        self.stream = Unfailing(stream)
        self.what = what
        columns = (TextColumn(f"{what}s"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = (
            Progress(*columns, console=Console(file=self.stream)) if self.stream.isatty() else None
        )
        self.task = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.task is not None:
            self.bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        if self.bar is not None:
            self._draw(done, total)
        elif done == total or done * 10 // total > (done - 1) * 10 // total:
            print(f"{self.what} {done}/{total}", file=self.stream, flush=True)

    def _draw(self, done, total):
        if self.task is None:
            self.task = self.bar.add_task("", total=total)
            self.bar.start()
        self.bar.update(self.task, completed=done)
