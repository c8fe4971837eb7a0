"""The words of the command line: put in order, and explained where they are not understood."""

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hybrid_nbody.cli.arguments import NAMES
from hybrid_nbody.errors import InputError

TYPE_CHECKING = False  # that of `typing`, whose import would delay every command
if TYPE_CHECKING:
    from typing import Any, NoReturn

PROGRAM = "hybrid-nbody"

WRONG_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")
"""What argparse says of it."""

HELP = ("-h", "--help", "--version")

FLAGS = ("--overwrite",)
"""Options that no value follows."""

SET = "--set"

FROM = "--from"
"""What a run has in the place of a file."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are those of the program.

    Attributes
    ----------
    options : list of str
        The names of its options.
    """

    def __init__(self, *arguments: "Any", **settings: "Any") -> None:
        self.options: list[str] = []
        super().__init__(*arguments, **settings)

    def add_argument(self, *names: "Any", **settings: "Any") -> argparse.Action:
        """See the base class."""
        self.options += [name for name in names if name.startswith("--")]
        return super().add_argument(*names, **settings)

    def error(self, message: str) -> "NoReturn":
        """Raise `InputError`."""
        command = self.prog.removeprefix(PROGRAM).strip()
        where = f"{command}: " if command else ""
        meant = _meant(message) or f"; see {self.prog} --help"
        raise InputError(f"{where}{message}{meant}")


def _meant(message: str) -> str:
    """Return what may have been meant in place of a wrong choice; empty if that is not known."""
    found = WRONG_CHOICE.search(message)
    near = nearest(found[1], re.findall(r"[\w-]+", found[2])) if found else ""
    return f"; did you mean '{near}'?" if near else ""


def in_order(words: Sequence[str]) -> list[str]:
    """Return the words with a command first: ``run`` before a file, also after its options.

    Parameters
    ----------
    words : sequence of str
        As typed.

    Raises
    ------
    InputError
        Naming the nearest command, where the first word is neither a command nor a file; or how
        ``--set`` is written, where it is what should be behind a ``=``.
    """
    place = _place_of_command(words)
    if place is None:
        starts_a_run = any(word.partition("=")[0] == FROM for word in words)
        return ["run", *words] if starts_a_run and words[0] not in HELP else list(words)
    first = words[place]
    others = [*words[:place], *words[place + 1 :]]
    if first == "help" and not os.path.exists(first):
        return in_order([*others[:1], "--help"])
    if first in NAMES:
        return [first, *others]
    if not os.path.exists(first):
        check_overrides(words)
        _check_is_a_file_name(first)
    return ["run", *words]


def _place_of_command(words: Sequence[str]) -> int | None:
    """Return the place of the first word that is neither an option nor the value of one."""
    is_value = False
    for place, word in enumerate(words):
        if word in HELP:
            return None
        if not is_value and not word.startswith("-"):
            return place
        is_value = not is_value and "=" not in word and word not in FLAGS
    return None


def _check_is_a_file_name(word: str) -> None:
    """Refuse what looks like a command rather than like a file."""
    near = nearest(word, NAMES)
    if near:
        raise InputError(f"{word}: no such command; did you mean '{near}'?")
    if word and not {".", "/"} & set(word):
        raise InputError(
            f"{word}: neither a command nor a file; {PROGRAM} --help lists the commands"
        )


def nearest(word: str, allowed: Sequence[str] | frozenset[str]) -> str:
    """Return the allowed word that is most like another one; empty if none is."""
    import difflib

    return next(iter(difflib.get_close_matches(word, sorted(allowed), 1)), "")


def check_overrides(words: Sequence[str]) -> None:
    """Refuse ``--set KEY VALUE``, whose value would be taken for something else.

    Raises
    ------
    InputError
        Saying how it is written.
    """
    for place, (option, key) in enumerate(pairwise(words)):
        if option != SET or "=" in key.rstrip("="):
            continue
        after = [word.lstrip("=") for word in words[place + 2 :] if word != "="]
        value = after[0] if after and _is_value(after[0]) else ""
        if value and key != "=":
            name = key.rstrip("=")
            raise InputError(f"{SET} {name} {value}: must be one word, {SET} {name}={value}")


def _is_value(word: str) -> bool:
    """Return whether a word may be the value of a key, rather than an option or a file."""
    return not word.startswith("--") and not os.path.exists(word)


def explained(extra: Sequence[str], command: str, options: Sequence[str]) -> str:
    """Return what is wrong with words that a command does not take.

    Parameters
    ----------
    extra : sequence of str
        These words.
    command : str
        Its name.
    options : sequence of str
        What it takes.
    """
    found = "; ".join(_explanations(extra, options))
    return found if found.endswith("?") else f"{found}; see {PROGRAM} {command} --help"


def _explanations(extra: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    unknown = [word for word in extra if word.startswith("-")]
    for word in unknown:
        near = nearest(word.partition("=")[0], options)
        yield f"{word}: no such option{f'; did you mean {near}?' if near else ''}"
    for word in [] if unknown else extra:  # what follows an unknown option may be its value
        is_key = SET in options and "=" in word
        yield f"{word}: write {SET} {word}" if is_key else f"{word}: one word too many"
