"""Events of a fluid from a file in the format of the course: what is put into the cell at the centre, and when."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid_nbody.errors import FileError, InputError, in_one_message
from hybrid_nbody.files.hdf5 import check_regular_file, reading

NUMBERS = {"source": ("d", "t"), "force": ("x", "y", "z", "t")}
"""What follows each kind of event; t is the step."""

LONGEST_WORD = 60


@dataclass(frozen=True)
class FileEvent:
    """What happens to the cell at the centre at the beginning of a step.

    Attributes
    ----------
    step : int
        Counted from 0.
    density : float or None
        Density that the cell is set to; None for an event of velocity.
    velocity : tuple of float or None
        Velocity (x, y, z) that the cell is set to; None for an event of density.
    """

    step: int
    density: float | None = None
    velocity: tuple[float, float, float] | None = None


def read_events(path, run_steps: int | None = None) -> list[FileEvent]:
    """Read the events of a file.

    Parameters
    ----------
    path : str or Path
        A text file: first the number of steps, then a line an event, ``source d t`` or ``force x y
        z t``; empty lines and what follows a ``#`` are comments.
    run_steps : int, optional
        Steps of the run: an event at or after this step is refused as well.

    Returns
    -------
    list of FileEvent
        In the order of the file, in which events of the same step are to happen.

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


def _events(path, run_steps):
    lines = list(_lines(path))
    if not lines:
        raise InputError(
            f"{path}: an empty list of events; its first line must be the number of steps"
        )
    faults = list(_faults(lines, run_steps))
    if faults:
        raise InputError(in_one_message(faults))
    return [_event(*words) for _, words in lines[1:]]


def _lines(path) -> Iterator[tuple[str, list[str]]]:
    """Yield place and words of the lines that say something."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            where = f"{path}:{number}"
            words = _decoded(where, raw).partition("#")[0].split()
            if words:
                yield where, words


def _decoded(where, raw):
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{where}: not UTF-8 text; save the file as UTF-8") from None
    if "\0" in text:
        raise InputError(f"{where}: not a list of events but a binary file")
    return text


def _faults(lines, run_steps) -> Iterator[str]:
    """Yield what is wrong with each line; where it is the number of steps, those of the run alone bound the events."""
    (where, words), *events = lines
    steps = int(words[0]) if len(words) == 1 and _is_whole(words[0]) else 0
    if steps < 1:
        got = _short(" ".join(words))
        yield f"{where}: the first line must be the number of steps, a whole number from 1 (got '{got}')"
    for where, words in events:
        for text in _faults_of_event(words, steps or math.inf, run_steps):
            yield f"{where}: {text}"


def _faults_of_event(words, steps, run_steps):
    kind = words[0]
    values = words[1:]
    names = NUMBERS.get(kind)
    if names is None:
        known = " or ".join(f"'{' '.join((name, *names))}'" for name, names in NUMBERS.items())
        yield f"unknown kind of event '{_short(kind)}'; must be {known}"
    elif len(values) != len(names):
        yield f"{kind} takes {len(names)} numbers, {' '.join(names)} (got {len(values)})"
    else:
        for name, word in zip(names[:-1], values[:-1], strict=True):
            if not _is_finite(word):
                yield f"{name} must be a finite number (got '{_short(word)}')"
        yield from _faults_of_step(values[-1], steps, run_steps)


def _faults_of_step(word, steps, run_steps):
    if not _is_whole(word):
        yield f"the step t must be a whole number from 0 (got '{_short(word)}')"
    elif int(word) >= steps:
        yield f"step {word} lies outside the {steps} steps of the list, 0 to {steps - 1}"
    elif run_steps is not None and int(word) >= run_steps:
        yield f"step {word} lies past the end of the run, whose steps are 0 to {run_steps - 1}"


def _event(kind, *values):
    *numbers, step = *map(float, values[:-1]), int(values[-1])
    return (
        FileEvent(step, density=numbers[0])
        if kind == "source"
        else FileEvent(step, velocity=tuple(numbers))
    )


def _is_finite(word):
    """Return whether a word is a finite number."""
    try:
        return "_" not in word and math.isfinite(
            float(word)
        )  # Python reads 1_000, other programs do not
    except ValueError:
        return False


def _is_whole(word):
    """Return whether a word is a whole number from 0 that is short enough to be read."""
    return len(word) <= LONGEST_WORD and word.isascii() and word.isdecimal()


def _short(text):
    return text if len(text) <= LONGEST_WORD else text[:LONGEST_WORD] + "…"
