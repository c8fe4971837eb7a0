"""From a YAML file to a checked configuration, and back to text that is stored with a run's output.

All faults of a file are reported at once, each as ``FILE:LINE: dotted.key: what is wrong and what
is allowed``.
"""

import os.path
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hybrid_nbody.config import overrides as override_keys
from hybrid_nbody.config.checking import check
from hybrid_nbody.config.faults import ConfigError, Fault, Place, did_you_mean, raise_all, shown
from hybrid_nbody.config.sections import NOT_GIVEN, Section
from hybrid_nbody.config.yaml_text import Tree, read, write
from hybrid_nbody.files.names import UTF_16

__all__ = ["ConfigError", "dump", "load", "loads"]

MOST_BYTES = 200_000

FILES = (("bodies", "path"), ("sources", "file"))
"""Keys that name a file to be read."""


def load(
    path: str | os.PathLike, overrides: Sequence[str] = (), *, models: Mapping[str, type[Section]]
) -> Section:
    """Read a configuration file.

    Parameters
    ----------
    path : str or path-like
        The YAML file. A relative ``bodies.path`` or ``sources.file`` within starts at the folder of
        this file.
    models : mapping of str to type
        The root of a configuration for each value of ``model:``.
    overrides : sequence of str, optional
        ``dotted.key=YAML value``, each taking the place of a key of the file; the name of a file
        given so starts at the current folder.

    Returns
    -------
    Section
        The checked configuration, with defaults filled in.

    Raises
    ------
    ConfigError
        If the file cannot be read or anything in it is wrong; one line a fault.
    """
    name = os.fspath(path)
    tree = _tree(_text(name), name, models, overrides)
    config = check(tree, models)
    for key in FILES:
        config = _anchored(config, key, "" if tree.place(key).override else os.path.dirname(name))
    return config


def loads(
    text: str,
    source_name: str,
    overrides: Sequence[str] = (),
    *,
    models: Mapping[str, type[Section]],
) -> Section:
    """Read a configuration from text, such as a checkpoint holds.

    Parameters
    ----------
    text : str
        YAML. The name of a file within is taken as it is.
    source_name : str
        What messages name in the place of a file.
    models : mapping of str to type
        As for `load`.
    overrides : sequence of str, optional
        As for `load`.

    Raises
    ------
    ConfigError
        If anything is wrong; one line a fault.
    """
    return check(_tree(text, source_name, models, overrides), models)


def dump(config: Section) -> str:
    """Return a configuration as YAML, every default spelt out; `load` reads an equal configuration from it."""
    return write(plain_values(config))


def plain_values(value: Any) -> Any:
    """Return sections as mappings and tuples as lists, as a file would hold them.

    Of ``end`` and ``steps`` (and the like) the one that is not given is left out; any other null
    means something.
    """
    if isinstance(value, Section):
        given = {key: item for key, item in value if item is not None or key not in NOT_GIVEN}
        return {key: plain_values(item) for key, item in given.items()}
    return [plain_values(item) for item in value] if isinstance(value, tuple) else value


def _tree(
    text: str, name: str, models: Mapping[str, type[Section]], overrides: Sequence[str]
) -> Tree:
    """Return the values of a document with the overrides in their places."""
    tree = read(text, lambda line: Place.in_file(name, line))
    if not isinstance(tree.data, dict):
        raise_all(tree.faults or [_not_a_mapping(tree, models)])
    for number, override in enumerate(overrides, start=1):
        override_keys.apply(tree, number, override)
    return tree


def _not_a_mapping(tree: Tree, models: Mapping[str, type[Section]]) -> Fault:
    what = "is empty" if tree.data is None else f"is no mapping at its top (got {shown(tree.data)})"
    keys = ", ".join(dict.fromkeys(key for model in models.values() for key in model.model_fields))
    return Fault(tree.place(()), (), f"{what}; must be a mapping of the keys {keys}")


def _anchored(config: Section, key: tuple[str, str], folder: str) -> Section:
    """Make a relative file name absolute: the stored configuration means the same file wherever it is read."""
    section = getattr(config, key[0], None)
    path = getattr(section, key[1], None)
    if path is None:
        return config
    anchored = section.model_copy(update={key[1]: os.path.abspath(os.path.join(folder, path))})
    return config.model_copy(update={key[0]: anchored})


def _text(name: str) -> str:
    """Return the text of a file; a byte order mark, as some editors write it, does no harm."""
    content = _content(name)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{content[error.start]:02x} at offset {error.start}"
        text = f"is not UTF-8 text ({byte}); save the file as UTF-8"
        if b"\0" in content and not content.startswith(UTF_16):
            line = 1
            text = "is no text; a configuration is YAML"
        raise_all([Fault(Place.in_file(name, line), (), text)])


def _content(name: str) -> bytes:
    """Return the bytes of a file of a reasonable size."""
    try:
        with open(name, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise_all([_whole_file(name, _why_unreadable(name, error))])
    if len(content) > MOST_BYTES:
        raise_all(
            [
                _whole_file(
                    name, f"is larger than {MOST_BYTES} bytes; a configuration is a short YAML file"
                )
            ]
        )
    return content


def _whole_file(name: str, text: str) -> Fault:
    return Fault(Place.in_file(name or "''", 0), (), text)


def _why_unreadable(name: str, error: Exception) -> str:
    """Return why a file could not be read, and the file that was probably meant."""
    if isinstance(error, FileNotFoundError):
        return f"no such file{_similar_file(name)}"
    if isinstance(error, IsADirectoryError):
        inside = sorted(Path(name).glob("*.y*ml"))
        return (
            f"is a directory, not a file{f'; did you mean {str(inside[0])!r}?' if inside else ''}"
        )
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied; check the rights of the file and its folders"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def _similar_file(name: str) -> str:
    """Return a hint at a file of a similar name in the same folder."""
    folder, base = os.path.split(name)
    try:
        names = [entry.name for entry in os.scandir(folder or ".") if entry.is_file()]
    except OSError:
        return ""
    return did_you_mean(name, [os.path.join(folder, near) for near in names])
