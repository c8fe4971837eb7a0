"""What the log of a run tells of the machine and of where the time went."""

import re
from dataclasses import dataclass, field
from pathlib import Path

STAMP = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ")
RANK = re.compile(r"^ {2}ranks? +\d")
SHARE = re.compile(r"^ {2}(\w+) +(\d+\.\d+) s +\d+\.\d+%$")
HEADING = "where the time went"

MOST_LINES = 64
MOST_BYTES = 1 << 20
"""Lines about ranks that are kept, and bytes at the end of a log that are looked at."""


@dataclass
class Log:
    """What was found in a log.

    Attributes
    ----------
    machine : list of str
        Lines on backend and ranks, of the last part of the run.
    shares : list of (str, float)
        Seconds of each part of the last table of times; empty without one.
    reason : str
        Why there is nothing, in words.
    """

    machine: list[str] = field(default_factory=list)
    shares: list[tuple[str, float]] = field(default_factory=list)
    reason: str = ""


def read_log(path) -> Log:
    """Read the log of a run; one that is missing or foreign gives an empty `Log` with the reason.

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
    return Log(_machine(lines), _shares(lines))


def _end_of(path):
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - MOST_BYTES))
        return file.read(MOST_BYTES).decode("utf-8", "replace")


def _machine(lines):
    starts = [place for place, line in enumerate(lines) if RANK.match(line)]
    if not starts:
        return []
    first = starts[-1]
    while first - 1 in starts:
        first -= 1
    before = [line for line in lines[max(0, first - 1) : first] if line.startswith("backend")]
    ranks = lines[first : starts[-1] + 1]
    more = [f"  … and {len(ranks) - MOST_LINES} more ranks"] if len(ranks) > MOST_LINES else []
    return before + ranks[:MOST_LINES] + more


def _shares(lines):
    places = [place for place, line in enumerate(lines) if line == HEADING]
    found = []
    for line in lines[places[-1] + 1 :] if places else []:
        match = SHARE.match(line)
        if match is None:
            break
        found.append((match[1], float(match[2])))
    return found
