"""Events of a fluid from a file in the format of the course: what is put into the cell at the centre, and when."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid_nbody.analysis.hdf5 import check_regular_file, reading
from hybrid_nbody.errors import FileError, InputError

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
        A text file: first the number of steps, then a line an event, ``source d t`` or ``force x y z t``; empty lines
        and what follows a ``#`` are comments.
    run_steps : int, optional
        Steps of the run: an event at or after this step is refused as well.

    Returns
    -------
    list of FileEvent
        In the order of the file, in which events of the same step are to happen.

    Raises
    ------
    InputError
        The file is missing, unreadable or wrong; the message names the line.
    """
    path = Path(path)
    try:
        with reading(path):
            check_regular_file(path)
            return _events(path, run_steps)
    except FileError as error:
        raise InputError(str(error)) from error


def _events(path, run_steps):
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path}: an empty list of events; its first line must be the number of steps")
    steps = _number_of_steps(*first)
    return [_event(where, words, steps, run_steps) for where, words in lines]


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


def _number_of_steps(where, words):
    if len(words) == 1 and _is_whole(words[0]) and int(words[0]) >= 1:
        return int(words[0])
    raise InputError(
        f"{where}: the first line must be the number of steps, a whole number from 1 (got '{_short(' '.join(words))}')"
    )


def _event(where, words, steps, run_steps):
    kind, values = words[0], words[1:]
    names = _names(where, kind)
    if len(values) != len(names):
        raise InputError(f"{where}: {kind} takes {len(names)} numbers, {' '.join(names)} (got {len(values)})")
    step = _step(where, values[-1], steps, run_steps)
    numbers = tuple(_number(where, name, word) for name, word in zip(names[:-1], values[:-1], strict=True))
    return FileEvent(step, density=numbers[0]) if kind == "source" else FileEvent(step, velocity=numbers)


def _names(where, kind):
    if kind not in NUMBERS:
        known = " or ".join(f"'{' '.join((name, *names))}'" for name, names in NUMBERS.items())
        raise InputError(f"{where}: unknown kind of event '{_short(kind)}'; must be {known}")
    return NUMBERS[kind]


def _step(where, word, steps, run_steps):
    if not _is_whole(word):
        raise InputError(f"{where}: the step t must be a whole number (got '{_short(word)}')")
    if not 0 <= int(word) < steps:
        raise InputError(f"{where}: step {_short(word)} lies outside the {steps} steps of the list, 0 to {steps - 1}")
    if run_steps is not None and int(word) >= run_steps:
        raise InputError(f"{where}: step {word} lies past the end of the run, whose steps are 0 to {run_steps - 1}")
    return int(word)


def _number(where, name, word):
    try:
        value = float(word) if "_" not in word else math.nan  # Python reads 1_000, other programs do not
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {name} must be a finite number (got '{_short(word)}')")
    return value


def _is_whole(word):
    """Return whether a word is a whole number that is short enough to be read."""
    return len(word) <= LONGEST_WORD and word.isascii() and word.removeprefix("-").isdecimal()


def _short(text):
    return text if len(text) <= LONGEST_WORD else text[:LONGEST_WORD] + "…"
