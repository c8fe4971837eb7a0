"""What a person asks for on the command line of a benchmark, checked before anything is measured or written."""

import math
import re

from hybrid_nbody.errors import InputError

SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
BYTES_PER_SECOND = {"": 1.0, "B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "Gbit/s": 1.25e8}
"""What a number may be followed by, and what it is multiplied by then."""


def numbers(option: str, text: str, least: int = 1, most: int | None = None) -> list[int]:
    """Return the whole numbers of a list such as ``1024,4096``, each once, in the order given.

    Raises
    ------
    InputError
        If it is no such list, or a number is out of bounds.
    """
    bounds = f"at least {least}" + (f" and at most {most}" if most is not None else "")
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or any(number < least or (most is not None and number > most) for number in found):
        raise InputError(
            f"{option}: must be whole numbers separated by commas, {bounds} (got '{text}')"
        )
    return list(dict.fromkeys(found))


def sizes(arguments, default: list[int] | None = None) -> list[int] | None:
    """Return the numbers of bodies that ``--sizes`` asks for, or `default` if it was not given.

    Raises
    ------
    InputError
        If it is no list of numbers from 2 on.
    """
    return default if arguments.sizes is None else numbers("--sizes", arguments.sizes, least=2)


def number(option: str, text: str, least: int = 1) -> int:
    """Return a whole number.

    Raises
    ------
    InputError
        If it is none, or too small.
    """
    if not text.isdecimal() or int(text) < least:
        raise InputError(f"{option}: must be a whole number, at least {least} (got '{text}')")
    return int(text)


def words(option: str, text: str, allowed) -> list[str]:
    """Return the words of a list such as ``A,C``, each once, in the order given.

    Raises
    ------
    InputError
        If one is not allowed.
    """
    found = text.split(",")
    unknown = [word for word in found if word not in allowed]
    if unknown:
        raise InputError(
            f"{option}: allowed are {', '.join(allowed)}, separated by commas (got '{text}')"
        )
    return list(dict.fromkeys(found))


def quantity(option: str, text: str, units: dict[str, float]) -> float:
    """Return a number greater than 0 in the unit that follows it, such as ``2us``.

    Parameters
    ----------
    units : dict
        The number by which one in each unit is multiplied; ``""`` is for none.

    Raises
    ------
    InputError
        If it is none.
    """
    found = re.fullmatch(r"([0-9.]+(?:[eE][-+]?\d+)?) ?([^0-9]*)", text.strip())
    try:
        value = float(found[1]) * units[found[2]]
        if 0 < value < math.inf:
            return value
    except (TypeError, KeyError, ValueError):
        pass
    allowed = ", ".join(filter(None, units))
    raise InputError(
        f"{option}: must be a number greater than 0, alone or with one of {allowed} (got '{text}')"
    )
