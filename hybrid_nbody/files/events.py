"""Events of a fluid from a file in the format of the course."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid_nbody.errors import FileError, InputError, in_one_message
from hybrid_nbody.files.hdf5 import check_regular_file, reading

NUMBERS = {"source": ("d", "t"), "force": ("x", "y", "z", "t")}
"""The numbers after the name of each event; t is the step."""

LONGEST_WORD = 60

Line = tuple[str, list[str]]
"""The location of a line, and its words."""


@dataclass(frozen=True)
class FileEvent:
    """A change of the cell at the centre at the beginning of a step.

    Attributes
    ----------
    step : int
        Counted from 0.
    density : float or None
        New density of the cell; None for an event of velocity.
    velocity : tuple of float or None
        New velocity (x, y, z) of the cell; None for an event of density.
    """

    step: int
    density: float | None = None
    velocity: tuple[float, float, float] | None = None


def read_events(path: str | Path, run_steps: int | None = None) -> list[FileEvent]:
    """Read the events of a file.

    Parameters
    ----------
    path : str or Path
        A text file: first the number of steps, then a line for each event, ``source d t`` or
        ``force x y z t``. Empty lines and text after a ``#`` are ignored.
    run_steps : int, optional
        Steps of the run: an event at or after this step is refused as well.

    Returns
    -------
    list of FileEvent
        In the order of the file, which is the order of events of the same step.

    Raises
    ------
    InputError
        The file is missing, unreadable or wrong; the message names the line of each fault.
    """
    path = Path(path)
    try:
        with reading(path):
            check_regular_file(path)
            return _events(path, run_steps)
    except FileError as error:
        raise InputError(str(error)) from error


def _events(path: Path, run_steps: int | None) -> list[FileEvent]:
    lines = list(_lines(path))
    if not lines:
        raise InputError(
            f"{path}: an empty list of events; its first line must be the number of steps"
        )
    faults = list(_faults(lines, run_steps))
    if faults:
        raise InputError(in_one_message(faults))
    return [_event(*words) for _, words in lines[1:]]


def _lines(path: Path) -> Iterator[Line]:
    """Yield location and words of the lines that are not empty."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            where = f"{path}:{number}"
            words = _decoded(where, raw).partition("#")[0].split()
            if words:
                yield where, words


def _decoded(where: str, raw: bytes) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{where}: not UTF-8 text; save the file as UTF-8") from None
    if "\0" in text:
        raise InputError(f"{where}: not a list of events but a binary file")
    return text


def _faults(lines: list[Line], run_steps: int | None) -> Iterator[str]:
    """Yield the faults of each line; a wrong number of steps does not bound the events."""
    (where, words), *events = lines
    steps = int(words[0]) if len(words) == 1 and _is_whole(words[0]) else 0
    if steps < 1:
        got = _short(" ".join(words))
        wanted = "the number of steps, a whole number from 1"
        yield f"{where}: the first line must be {wanted} (got '{got}')"
    for where, words in events:
        for text in _faults_of_event(words, steps or math.inf, run_steps):
            yield f"{where}: {text}"


def _faults_of_event(words: list[str], steps: float, run_steps: int | None) -> Iterator[str]:
    event = words[0]
    values = words[1:]
    names = NUMBERS.get(event)
    if names is None:
        known = " or ".join(f"'{' '.join((name, *names))}'" for name, names in NUMBERS.items())
        yield f"unknown event '{_short(event)}'; must be {known}"
    elif len(values) != len(names):
        yield f"{event} takes {len(names)} numbers, {' '.join(names)} (got {len(values)})"
    else:
        for name, word in zip(names[:-1], values[:-1], strict=True):
            if not _is_finite(word):
                yield f"{name} must be a finite number (got '{_short(word)}')"
        yield from _faults_of_step(values[-1], steps, run_steps)


def _faults_of_step(word: str, steps: float, run_steps: int | None) -> Iterator[str]:
    if not _is_whole(word):
        yield f"the step t must be a whole number from 0 (got '{_short(word)}')"
    elif int(word) >= steps:
        yield f"step {word} lies outside the {steps} steps of the list, 0 to {steps - 1}"
    elif run_steps is not None and int(word) >= run_steps:
        yield f"step {word} lies past the end of the run, whose steps are 0 to {run_steps - 1}"


def _event(name: str, *values: str) -> FileEvent:
    step = int(values[-1])
    if name == "source":
        return FileEvent(step, density=float(values[0]))
    x, y, z = map(float, values[:-1])
    return FileEvent(step, velocity=(x, y, z))


def _is_finite(word: str) -> bool:
    """Return whether a word is a finite number; 1_000 is one for Python alone."""
    if "_" in word:
        return False
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def _is_whole(word: str) -> bool:
    """Return whether a word is a whole number from 0 that is short enough to be converted."""
    return len(word) <= LONGEST_WORD and word.isascii() and word.isdecimal()


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_WORD else text[:LONGEST_WORD] + "…"
