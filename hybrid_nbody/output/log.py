"""The log of a run: what the program says, on the terminal and in ``log.txt``."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rich.console import Console

from hybrid_nbody.errors import FileError, HybridNBodyError, name_of_interrupt
from hybrid_nbody.files.atomic import file_errors


class Log:
    """Writes lines on the root; other ranks stay silent.

    A file that cannot be written does not end the run: that is said once, and again by `close`.

    Parameters
    ----------
    console : rich.console.Console or None
        The terminal or batch log; None on ranks other than the root.
    """

    def __init__(self, console: Console | None):
        self.console = console
        self.file: IO[str] | None = None
        self._failure: FileError | None = None
        self._early: list[str] = []

    def open(self, path: Path) -> None:
        """Append to the file `path` from now on, beginning with what was said before."""
        if self.console is None:
            return
        with file_errors(path, "opening"):
            self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed in close()
        for line in self._early:
            self._write(self.file, line)
        self._early.clear()

    def say(self, text: str) -> None:
        """Write `text` to the terminal and to the file."""
        self._show(text)
        self.note(text)

    def _show(self, text: str) -> None:
        if self.console is None:
            return
        with suppress(OSError):  # a closed terminal or a full disk must not end a simulation
            self.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Write `text` to the file alone."""
        if self.console is None:
            return
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {text}"
        if self.file is None:
            self._early.append(line)
        else:
            self._write(self.file, line)

    def _write(self, file: IO[str], line: str) -> None:
        """Write a line, unless one before it could not be written."""
        if self._failure:
            return
        try:
            with file_errors(Path(file.name), "writing"):
                file.write(line + "\n")
                file.flush()
        except FileError as error:
            self._failure = error
            self._show(f"warning: {error}; no more lines are written there")

    @contextmanager
    def noting_errors(self) -> Iterator[None]:
        """Note an error that ends the block in an open file, and close it; raise the error again.

        Where it cannot be written, the error itself counts.
        """
        try:
            yield
        except BaseException as error:
            if self.file is not None:
                self.note(f"error: {_in_words(error)}")
            with suppress(FileError):
                self.close()
            raise

    def close(self) -> None:
        """Close the file.

        Raises
        ------
        FileError
            A line could not be written.
        """
        file = self.file
        self.file = None
        if file is None:
            return
        try:
            with file_errors(Path(file.name), "writing"):
                file.close()  # what could not be written is tried again
        except FileError as error:
            self._failure = self._failure or error
        if self._failure:
            raise self._failure


def _in_words(error: BaseException) -> str:
    """Return what the log says of an error."""
    if isinstance(error, HybridNBodyError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return f"stopped at once by {name_of_interrupt(error)}"
    return f"{type(error).__name__}: {error}"
