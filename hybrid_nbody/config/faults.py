"""Faults of a configuration: their locations, their words, and the exception with all of them."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybrid_nbody.errors import InputError, in_one_message

KeyPath = tuple[str | int, ...]

MAX_VALUE_LENGTH = 60
"""Characters of a value that a message shows."""


class ConfigError(InputError):
    """Every fault of a configuration, a line each.

    ``FILE:LINE: dotted.key: what is wrong and what is allowed``
    """


@dataclass(frozen=True, order=True)
class Location:
    """Location of a value: a line of the file, or an override of the command line.

    Overrides come after all lines.
    """

    override: int
    line: int
    label: str = field(compare=False)

    @classmethod
    def in_file(cls, name: str, line: int) -> "Location":
        """Return the location of a line, counted from 1; 0 is the file as a whole."""
        return cls(0, line, f"{printable(name)}:{line}" if line else printable(name))

    @classmethod
    def in_override(cls, number: int, text: str) -> "Location":
        """Return the location of the given override of the command line, counted from 1."""
        return cls(number, 0, f"--set {shortened(printable(text))}")


@dataclass(frozen=True)
class Fault:
    """One fault: its location, the key it concerns (empty: the whole), and the words."""

    location: Location
    path: KeyPath
    text: str

    def __str__(self) -> str:
        return ": ".join(
            part for part in (self.location.label, dotted(self.path), self.text) if part
        )


def error_of(faults: Iterable[Fault]) -> ConfigError:
    """Return one error with all faults in the order of their locations, each once."""
    ordered = sorted(faults, key=lambda fault: fault.location)
    return ConfigError(in_one_message(list(dict.fromkeys(map(str, ordered)))))


def dotted(path: KeyPath) -> str:
    """Return ``compute.balance[1]`` for ``("compute", "balance", 1)``."""
    parts = (
        f"[{key}]" if isinstance(key, int) else f".{shortened(printable(key))}" for key in path
    )
    return "".join(parts).removeprefix(".")


def shown(value: Any) -> str:
    """Return a value in the words of YAML, short and in one line."""
    words = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    return shortened(repr(value))


def printable(text: str) -> str:
    """Return text in which line breaks, control and broken characters are written as escapes."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def shortened(text: str) -> str:
    """Return text cut to a length that fits a message."""
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 1] + "…"


def nearest(word: Any, known: Sequence[str]) -> str | None:
    """Return the known word that was probably meant, whatever its case, or None."""
    if not isinstance(word, str) or len(word) > MAX_VALUE_LENGTH:
        return None
    originals = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), originals, n=1)
    return originals[close[0]] if close else None


def did_you_mean(word: Any, known: Sequence[str]) -> str:
    """Return ``; did you mean 'softening'?``, or nothing if no known word is near."""
    name = nearest(word, known)
    return f"; did you mean '{name}'?" if name else ""
