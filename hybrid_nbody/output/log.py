"""The log of a run: what the program says, on the terminal and in ``log.txt``."""

import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from rich.console import Console

from hybrid_nbody.files.atomic import file_errors


class Log:
    """Writes lines on the root; other ranks stay silent.

    Parameters
    ----------
    console : rich.console.Console or None
        The terminal or batch log; None on ranks other than the root.
    """

    def __init__(self, console: Console | None):
        self.console = console
        self.file: IO[str] | None = None
        self._early: list[str] = []

    def open(self, path: Path) -> None:
        """Append to the file `path` from now on, beginning with what was said before."""
        if self.console is None:
            return
        with file_errors(path, "opening"):
            self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed in close()
        for line in self._early:
            self._write(self.file, line)

    def say(self, text: str) -> None:
        """Write `text` to the terminal and to the file."""
        if self.console is None:
            return
        with suppress(OSError):  # a closed terminal or a full disk must not end a simulation
            self.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)
        self.note(text)

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
        with file_errors(Path(file.name), "writing"):
            file.write(line + "\n")
            file.flush()

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()
            self.file = None
