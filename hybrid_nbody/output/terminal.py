"""Where the text of a run goes: the terminal, even from behind ``mpirun``, or a batch log."""

import os
import sys
from pathlib import Path

from rich.console import Console

LAUNCHERS = ("mpirun", "mpiexec", "hydra", "prte", "orte", "srun")


def terminal_of_launcher() -> str | None:
    """Return the terminal that shows this process's output through its launcher; None if there is none.

    ``mpirun`` collects its ranks' output through pipes, so a rank does not see the terminal that it ends up on. The launcher's
    own standard output tells (Linux; None elsewhere).
    """
    process = os.getppid()
    while process > 1:
        try:
            name = Path(f"/proc/{process}/comm").read_text()
            if not name.startswith(LAUNCHERS):
                return None
            output = os.readlink(f"/proc/{process}/fd/1")
            if output.startswith(("/dev/pts/", "/dev/tty")):
                return output
            process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            return None
    return None


def open_console() -> Console:
    """Return a console on standard output, which knows whether a person is looking and how wide their screen is."""
    if sys.stdout.isatty():
        return Console()
    terminal = terminal_of_launcher()
    if terminal is None:
        return Console(width=120, force_terminal=False, no_color=True, highlight=False)
    return Console(force_terminal=True, width=_width(terminal))


def _width(terminal: str) -> int:
    try:
        with open(terminal) as device:
            return os.get_terminal_size(device.fileno()).columns
    except OSError:
        return 80
