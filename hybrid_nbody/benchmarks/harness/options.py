"""Options of benchmarks: how each is declared, and how its text is read before anything starts."""

import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hybrid_nbody.errors import InputError

SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
BYTES_PER_SECOND = {"": 1.0, "B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "Gbit/s": 1.25e8}
SHARE = {"": 1.0, "%": 0.01}
"""Units that may follow a number, and the factor of each."""


class Option(NamedTuple):
    """An option of a benchmark: a flag, its value unless it is a switch, help and a default."""

    flag: str
    help: str
    default: str | None = None
    choices: tuple[str, ...] | None = None

    def add(self, parser: ArgumentParser) -> None:
        flag, _, metavar = self.flag.partition(" ")
        text = self.help if self.default is None else f"{self.help} (default: {self.default})"
        words: dict[str, Any] = {"help": text.replace("%", "%%"), "default": self.default}
        if self.choices or metavar:
            words |= {"choices": self.choices, "metavar": metavar or None}
            parser.add_argument(flag, **words)
        else:
            parser.add_argument(flag, action="store_true", help=self.help)


SIZES = Option("--sizes N,N,…", "numbers of bodies (default: what suits the machine)")
REPEATS = Option("--repeats R", "timings of each row", "10")
BACKEND = Option(
    "--backend", "what to measure (auto: all there is)", "auto", ("auto", "cpu", "gpu")
)
THREADS = Option("--threads T", "CPU threads (default: all cores)")
OVERWRITE = Option("--overwrite", "replace earlier results in that directory")


class Benchmark(NamedTuple):
    """A benchmark; `keys` are the columns that tell its rows apart.

    `entry` names what carries it out, given the arguments and, with `mpi`, a communicator, and
    returns the exit code; ``draw`` in place of ``run`` draws the rows.
    """

    name: str
    entry: str
    summary: str
    options: tuple[Option, ...]
    keys: tuple[str, ...]
    mpi: bool = False
    aliases: tuple[str, ...] = ()

    def add_arguments(self, parser: ArgumentParser, path: Callable) -> None:
        """Add all options and those of the output; `path` reads the name of a directory."""
        for option in (*self.options, OVERWRITE):
            option.add(parser)
        folder = Path("output") / f"bench-{self.name}"
        where = f"where results go (default: {folder})"
        parser.add_argument("--output", type=path, metavar="DIR", default=folder, help=where)
        parser.set_defaults(mpi=self.mpi, entry=self.entry)


def numbers(option: str, text: str, least: int = 1, most: float = math.inf) -> list[int]:
    """Return the whole numbers of a list such as ``1024,4096``, each once, in the order given."""
    return list_of(int, option, text, least, most)


def list_of(kind: Callable, option: str, text: str, least: float, most: float) -> list[Any]:
    """Return the numbers of a list, each once, in the order given; `kind` is int or float."""
    bounds = f"at least {least}" + (f" and at most {most}" if most < math.inf else "")
    try:
        found = [kind(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(least <= value <= most for value in found):
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(f"{option}: must be {what} separated by commas, {bounds} (got '{text}')")
    return list(dict.fromkeys(found))


def sizes(arguments: Namespace, default: Sequence[int] = ()) -> Sequence[int]:
    """Return the numbers of bodies that ``--sizes`` asks for, or `default` if it was not given."""
    return default if arguments.sizes is None else numbers("--sizes", arguments.sizes, least=2)


def number(option: str, text: str, least: int = 1) -> int:
    """Return a whole number."""
    if not text.isdecimal() or int(text) < least:
        raise InputError(f"{option}: must be a whole number, at least {least} (got '{text}')")
    return int(text)


def words(option: str, text: str, allowed: Sequence[str]) -> list[str]:
    """Return the words of a list such as ``A,C``, each once, in the order given."""
    found = text.split(",")
    if not set(found) <= set(allowed):
        raise InputError(
            f"{option}: allowed are {', '.join(allowed)}, separated by commas (got '{text}')"
        )
    return list(dict.fromkeys(found))


def check_used(arguments: Namespace, chooser: str, users: Mapping[str, Sequence[str]]) -> None:
    """Raise `InputError` if an option was given that is of no use to what was chosen.

    `chooser` is the option that chooses, and `users` has the words of it that others are for.
    """
    chosen = getattr(arguments, chooser)
    for name, words in users.items():
        if getattr(arguments, name) is not None and not set(words) & set(chosen.split(",")):
            *others, last = words
            alone = f"{', '.join(others)} and {last}" if others else last
            raise InputError(f"--{name}: is for {alone} alone (got --{chooser} {chosen})")


def quantity(option: str, text: str, units: dict[str, float]) -> float:
    """Return a number greater than 0 in the unit that follows it, such as ``2us``."""
    found = re.fullmatch(r"([0-9.]+(?:[eE][-+]?\d+)?) ?([^0-9]*)", text.strip())
    try:
        value = float(found[1]) * units[found[2]] if found else 0.0
        if 0 < value < math.inf:
            return value
    except (KeyError, ValueError):
        pass
    allowed = ", ".join(filter(None, units))
    raise InputError(
        f"{option}: must be a number greater than 0, alone or with one of {allowed} (got '{text}')"
    )
