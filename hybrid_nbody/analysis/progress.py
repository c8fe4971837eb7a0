"""Telling how far a movie is: a bar on a terminal, a line at every tenth elsewhere."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class FrameProgress:
    """Shows the number of frames done; use it in a ``with`` statement.

    Parameters
    ----------
    stream : file
        Where a person or a batch log reads.
    """

    def __init__(self, stream):
        self.stream = stream
        columns = (TextColumn("frames"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(file=stream)) if stream.isatty() else None
        self.task = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.task is not None:
            self.bar.stop()

    def update(self, done: int, total: int) -> None:
        """Show that `done` of `total` frames are done."""
        if self.bar is not None:
            self._draw(done, total)
        elif done == total or done * 10 // total > (done - 1) * 10 // total:
            print(f"frame {done}/{total}", file=self.stream, flush=True)

    def _draw(self, done, total):
        if self.task is None:
            self.task = self.bar.add_task("", total=total)
            self.bar.start()
        self.bar.update(self.task, completed=done)
