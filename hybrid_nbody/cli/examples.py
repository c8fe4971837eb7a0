"""The example inputs: list them, or write one into the current folder."""

import difflib
import itertools
import re
import shutil
from pathlib import Path

from hybrid_nbody.errors import FileError, InputError

FOLDER = Path(__file__).resolve().parents[1] / "examples"
"""In a checkout a link to ``input/``; in an installation the copies that the wheel brings."""


def names() -> list[str]:
    """Return the names of the examples, without ``.yaml``."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def table() -> str:
    """Return a line for each example: its name, and what it shows."""
    found = names()
    width = max(map(len, found))
    lines = [f"{name:<{width}}  {_summary(name)}" for name in found]
    return "\n".join([*lines, "", "write one here: hybrid-nbody examples NAME"])


def write(name: str, folder: Path, overwrite: bool) -> list[Path]:
    """Write an example, and the files that it reads, into a folder; return their paths.

    Parameters
    ----------
    name : str
        With or without ``.yaml``.
    folder : Path
        An existing folder.
    overwrite : bool
        Whether files of these names may be replaced.

    Raises
    ------
    InputError
        If there is no such example, or a file of that name stands there already.
    FileError
        If a file cannot be written.
    """
    sources = [_source(name), *_companions(name)]
    targets = [folder / source.name for source in sources]
    present = [str(target) for target in targets if target.exists()]
    if present and not overwrite:
        raise InputError(f"{present[0]}: exists already; choose another folder, or --overwrite")
    try:
        for source, target in zip(sources, targets, strict=True):
            shutil.copyfile(source, target)
    except OSError as error:
        raise FileError(f"{folder}: {error.strerror or error}") from error
    return targets


def _source(name: str) -> Path:
    """Return the file of an example."""
    stem = name.removesuffix(".yaml")
    if stem not in names():
        near = difflib.get_close_matches(stem, names(), 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InputError(f"{name}: no such example.{hint} There are: {', '.join(names())}")
    return FOLDER / f"{stem}.yaml"


def _companions(name: str) -> list[Path]:
    """Return the files that an example names, such as a table of bodies."""
    text = _source(name).read_text()
    return [
        path for path in sorted(FOLDER.iterdir()) if path.suffix != ".yaml" and path.name in text
    ]


def _summary(name: str) -> str:
    """Return the first sentence of the comment at the head of an example."""
    lines = _source(name).read_text().splitlines()
    comment = itertools.takewhile(lambda line: line.startswith("#"), lines)
    text = " ".join(line.lstrip("# ") for line in comment)
    return re.split(r"(?<=[\w)])[.,;] ", text, maxsplit=1)[0]
