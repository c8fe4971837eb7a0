"""``log.txt`` and the terminal: what the program says, in both."""

import time
from contextlib import suppress
from pathlib import Path

from hybrid_nbody.output.hdf5 import file_errors


class Log:
    """Writes lines on the root; other ranks stay silent.

    Parameters
    ----------
    console : rich.console.Console or None
        Where a person or a batch log reads; None on other ranks.
    """

    def __init__(self, console):
        self.console = console
        self.file = None
        self._early = []

    def open(self, path: Path) -> None:
        """Continue in the file `path`, too; what was said before goes there first."""
        if self.console is not None:
            with file_errors(path, "opening"):
                self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed in close()
            for line in self._early:
                self._to_file(line)

    def say(self, text: str) -> None:
        """Write `text` to the terminal and to the file."""
        if self.console is not None:
            with suppress(
                OSError
            ):  # a lost terminal or a full disk under it must not end a simulation
                self.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)
            self.note(text)

    def note(self, text: str) -> None:
        """Write `text` to the file alone."""
        if self.console is not None:
            stamped = f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {text}"
            if self.file is None:
                self._early.append(stamped)
            else:
                self._to_file(stamped)

    def _to_file(self, line):
        with file_errors(Path(self.file.name), "writing"):
            self.file.write(line + "\n")
            self.file.flush()

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()
            self.file = None
