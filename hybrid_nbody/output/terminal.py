"""The console of a run: a terminal, even from behind ``mpirun``, or a batch log."""

import os
import sys
from pathlib import Path

from rich.console import Console

LAUNCHERS = ("mpirun", "mpiexec", "hydra", "prte", "orte")


def launcher_output() -> str | None:
    """Return the destination of the launcher's standard output, or None without a launcher.

    A rank's own standard output does not tell: MPICH's ``mpirun`` collects it through a pipe
    although a person may be looking, Open MPI's through a terminal of its own although it may end
    in a file. Linux only; None elsewhere.
    """
    output = None
    process = os.getppid()
    while process > 1:
        try:
            if Path(f"/proc/{process}/comm").read_text().startswith(LAUNCHERS):
                output = os.readlink(f"/proc/{process}/fd/1")
            process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            break
    return output


class RunConsole(Console):
    """A console that outlives its reader, so that the run and its ``log.txt`` continue."""

    def on_broken_pipe(self) -> None:
        """Stop writing; rich would end the program."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_console() -> Console:
    """Return a console on standard output that knows whether it is a terminal, and how wide."""
    output = launcher_output()
    if output is None and sys.stdout.isatty():
        return RunConsole()
    if output is not None and output.startswith(("/dev/pts/", "/dev/tty")):
        return RunConsole(force_terminal=True, width=_width(output))
    return RunConsole(width=120, force_terminal=False, no_color=True, highlight=False)


def _width(terminal: str) -> int:
    """Return the columns of a terminal."""
    try:
        with open(terminal) as device:
            return os.get_terminal_size(device.fileno()).columns
    except OSError:
        return 80
