"""Reading the log of a run: its machine, and where the time went."""

import re
from dataclasses import dataclass, field
from pathlib import Path

STAMP = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ")
RANK = re.compile(r"^ {2}ranks? +\d")
SHARE = re.compile(r"^ {2}(\w+) +(\d+\.\d+) s +\d+\.\d+%$")
HEADING = "where the time went"
WARNING = "warning: "
ERROR = "error: "

MOST_LINES = 64
"""Lines about ranks that are kept, at most."""

MOST_BYTES = 1 << 20
"""Bytes at the end of a log that are read, at most."""


@dataclass
class Log:
    """The facts found in a log.

    Attributes
    ----------
    machine : list of str
        Lines on backend and ranks, from the last start of the run.
    shares : list of (str, float)
        Seconds of each part of the last table of times; empty without one.
    warnings : list of str
        What the run warned of, each once, without the word.
    error : str
        The error that ended the run; empty without one.
    reason : str
        Why nothing was found, in words.
    """

    machine: list[str] = field(default_factory=list)
    shares: list[tuple[str, float]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: str = ""
    reason: str = ""


def read_log(path: str | Path) -> Log:
    """Read the log of a run; a missing or foreign file gives an empty `Log` with the reason.

    Parameters
    ----------
    path : str or Path
        ``log.txt`` of a run's directory.
    """
    try:
        text = _end_of(Path(path))
    except OSError as error:
        return Log(reason=f"{path}: {error.strerror or error}")
    lines = [STAMP.sub("", line) for line in text.splitlines()]
    return Log(_machine(lines), _shares(lines), _warnings(lines), _error(lines))


def _end_of(path: Path) -> str:
    """Return the last `MOST_BYTES` of a file as text."""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - MOST_BYTES))
        return file.read(MOST_BYTES).decode("utf-8", "replace")


def _warnings(lines: list[str]) -> list[str]:
    """Return the texts of all warnings, each once."""
    found = (line.removeprefix(WARNING) for line in lines if line.startswith(WARNING))
    return list(dict.fromkeys(found))


def _error(lines: list[str]) -> str:
    """Return the last error."""
    found = [line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)]
    return found[-1] if found else ""


def _machine(lines: list[str]) -> list[str]:
    """Return the last block of lines about ranks, with the line on the backend before it."""
    numbers = [number for number, line in enumerate(lines) if RANK.match(line)]
    if not numbers:
        return []
    first = numbers[-1]
    while first - 1 in numbers:
        first -= 1
    before = [line for line in lines[max(0, first - 1) : first] if line.startswith("backend")]
    ranks = lines[first : numbers[-1] + 1]
    more = [f"  … and {len(ranks) - MOST_LINES} more ranks"] if len(ranks) > MOST_LINES else []
    return before + ranks[:MOST_LINES] + more


def _shares(lines: list[str]) -> list[tuple[str, float]]:
    """Return the rows of the last table of times."""
    headings = [number for number, line in enumerate(lines) if line == HEADING]
    if not headings:
        return []
    found = []
    for line in lines[headings[-1] + 1 :]:
        match = SHARE.match(line)
        if match is None:
            break
        found.append((match[1], float(match[2])))
    return found
