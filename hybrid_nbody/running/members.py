"""The members of a sweep: one run for each combination of values, in a directory of its own."""

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from hybrid_nbody.config import loader
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.checkpoint import checkpoint_path, checkpoints
from hybrid_nbody.output import directory
from hybrid_nbody.output.directory import DIRECTORY
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.start import resolved

FAILED = "failed.txt"
"""Name of the file in the directory of a member that says why it failed."""

CLAIM = ".claim"
"""Name of the file in the directory of a member that its worker has locked."""

OPENING = "([{"
CLOSING = ")]}"

LONGEST_NAME = 120
"""Characters of the name of a directory."""

MOST_MEMBERS = 100_000


class MemberState(Enum):
    """How far a member is."""

    NEW = "not begun"
    BEGUN = "not finished"
    FINISHED = "finished"
    STOPPED = "stopped"
    """By a condition of its configuration."""


@dataclass(frozen=True)
class Member:
    """A run of a sweep.

    Attributes
    ----------
    values : mapping of str to str
        The values of the keys that differ between members.
    settings : tuple of str
        ``key=value`` of all keys that are set.
    folder : Path
        Its directory, named by its values.
    """

    values: Mapping[str, str]
    settings: tuple[str, ...]
    folder: Path

    @property
    def name(self) -> str:
        """Return the name of its directory."""
        return self.folder.name

    @property
    def reason(self) -> str:
        """Return why it failed when it was last tried; empty if it did not."""
        return _text_of(self.folder / FAILED)

    @property
    def ended(self) -> str:
        """Return how it ended, as its worker has written it; empty if it has not."""
        return _text_of(self.folder / CLAIM)

    def configuration(self, file: str | Path) -> ModelConfig:
        """Return its configuration; raises `InputError` with every fault."""
        return resolved(file, [*self.settings, f"{DIRECTORY}={self.folder}"])


def _text_of(path: Path) -> str:
    """Return the text of a file; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def axes_of(overrides: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each key that ``--set KEY=VALUE,VALUE,...`` gives.

    Parameters
    ----------
    overrides : sequence of str
        Commas within brackets and quotes are parts of a value.

    Raises
    ------
    InputError
        A value is missing, a key is given twice, or none has several values.
    """
    axes: dict[str, list[str]] = {}
    for override in overrides:
        key, mark, text = override.partition("=")
        key = key.strip()
        values = list(_split(text))
        if not mark or not key or not all(values):
            raise InputError(
                f"--set {override}: must be KEY=VALUE,VALUE, such as time.dt=1e-3,5e-4"
            )
        if key in axes:
            raise InputError(f"--set {override}: {key} is given twice; put all its values in one")
        if key == DIRECTORY:
            raise InputError(f"--set {override}: name the directory of a sweep with --output DIR")
        axes[key] = values
    if not any(len(values) > 1 for values in axes.values()):
        raise InputError("sweep: give several values of a key, such as --set time.dt=1e-3,5e-4")
    return axes


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a text between commas that are outside of brackets and quotes."""
    depth = 0
    quote = ""
    part = ""
    for letter in text:
        if letter == "," and not depth and not quote:
            yield part.strip()
            part = ""
            continue
        part += letter
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in OPENING) - (letter in CLOSING)
    yield part.strip()


def members_of(axes: Mapping[str, Sequence[str]], folder: Path) -> list[Member]:
    """Return a member for each combination of values, the last key changing fastest.

    Raises
    ------
    InputError
        There are too many, or two would have the same name.
    """
    number = 1
    for values in axes.values():
        number *= len(values)
    if number > MOST_MEMBERS:
        raise InputError(f"sweep: {number} runs; at most {MOST_MEMBERS} at a time")
    short = _short_names([key for key, values in axes.items() if len(values) > 1])
    members = [
        _member(dict(zip(axes, values, strict=True)), short, folder)
        for values in itertools.product(*axes.values())
    ]
    if len({member.folder for member in members}) < number:
        raise InputError("sweep: two runs have the same values; give each value once")
    return members


def _short_names(keys: Sequence[str]) -> dict[str, str]:
    """Return the last part of each key, or all of it where another ends in the same."""
    ends = [key.rpartition(".")[2] for key in keys]
    return {key: end if ends.count(end) == 1 else key for key, end in zip(keys, ends, strict=True)}


def _member(values: Mapping[str, str], short: Mapping[str, str], folder: Path) -> Member:
    settings = tuple(f"{key}={value}" for key, value in values.items())
    varied = {key: values[key] for key in short}
    name = ",".join(f"{short[key]}={value}" for key, value in varied.items())
    return Member(varied, settings, folder / _as_file_name(name))


def _as_file_name(name: str) -> str:
    """Return a name of letters that do in a shell; a digest ends a long one."""
    safe = re.sub(r"[^\w.,=+-]+", "_", name)
    if len(safe) <= LONGEST_NAME:
        return safe
    return f"{safe[:LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


# --- how far they are -----------------------------------------------------------------------------


def state_of(member: Member, config: ModelConfig) -> MemberState:
    """Return how far a member is.

    Raises
    ------
    InputError
        Its directory holds a run of another configuration.
    """
    folder = member.folder
    if not directory.files_of_a_run(folder) or not (folder / directory.CONFIG).exists():
        return MemberState.NEW
    _check_is_the_same(folder, config)
    if checkpoint_path(folder, config.time.total_steps).exists():
        return MemberState.FINISHED
    if member.ended.startswith(MemberState.STOPPED.value):
        return MemberState.STOPPED
    return MemberState.BEGUN if checkpoints(folder) else MemberState.NEW


def _check_is_the_same(folder: Path, config: ModelConfig) -> None:
    """Check that the run in a directory is of a configuration, on whatever devices."""
    stored = loader.load(folder / directory.CONFIG, models=MODELS)
    before = loader.dotted_values(stored)
    now = loader.dotted_values(config)
    other = [key for key in (*now, *before) if before.get(key) != now.get(key)]
    other = [key for key in other if not key.startswith("compute.")]
    if other:
        key = other[0]
        raise InputError(
            f"{folder} holds a run of another configuration ({key}: {before.get(key)} there, "
            f"{now.get(key)} now); give --overwrite, or another --output"
        )
