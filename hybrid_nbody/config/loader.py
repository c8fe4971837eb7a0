"""From a YAML file to a checked configuration, and back to text that is stored with a run's output.

All faults of a file are reported at once, each as ``FILE:LINE: dotted.key: what is wrong and what
is allowed``.
"""

import os.path
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hybrid_nbody.config import overrides as override_keys
from hybrid_nbody.config.checking import ConfiguredModel, check
from hybrid_nbody.config.faults import (
    ConfigError,
    Fault,
    KeyPath,
    Location,
    error_of,
    nearest,
    shown,
)
from hybrid_nbody.config.own_functions import spelled_out
from hybrid_nbody.config.sections import ModelConfig, Section, exclusive_keys
from hybrid_nbody.config.wording import is_input_file
from hybrid_nbody.config.yaml_text import Tree, read, write
from hybrid_nbody.files.names import UTF_16

__all__ = ["ConfigError", "dump", "load", "loads"]

MAX_BYTES = 200_000


def load(
    path: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    *,
    models: Mapping[str, ConfiguredModel],
) -> ModelConfig:
    """Read a configuration file.

    Parameters
    ----------
    path : str or path-like
        The YAML file. A relative name of an input file within starts at the folder of this file.
    models : mapping of str to ConfiguredModel
        The model for each value of ``model:``.
    overrides : sequence of str, optional
        ``dotted.key=YAML value``, each taking the place of a key of the file; the name of a file
        given so starts at the current folder.

    Returns
    -------
    ModelConfig
        The checked configuration, with defaults filled in.

    Raises
    ------
    ConfigError
        If the file cannot be read or anything in it is wrong; one line a fault.
    """
    name = os.fspath(path)
    folder = os.path.dirname(name)
    tree = _tree(_text(name), name, models, overrides)
    tree.data = spelled_out(tree.data, folder)
    config = check(tree, models)
    anchored: ModelConfig = _anchored(config, tree, folder)
    return anchored


def loads(
    text: str,
    source_name: str,
    overrides: Sequence[str] = (),
    *,
    models: Mapping[str, ConfiguredModel],
) -> ModelConfig:
    """Read a configuration from text, such as a checkpoint holds.

    Parameters
    ----------
    text : str
        YAML. The name of a file within is taken as it is.
    source_name : str
        What messages name in the place of a file.
    models : mapping of str to ConfiguredModel
        As for `load`.
    overrides : sequence of str, optional
        As for `load`.

    Raises
    ------
    ConfigError
        If anything is wrong; one line a fault.
    """
    tree = _tree(text, source_name, models, overrides)
    tree.data = spelled_out(tree.data, "")
    return check(tree, models)


def unchecked(
    path: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    *,
    models: Mapping[str, ConfiguredModel],
) -> dict[str, Any]:
    """Return the values that a configuration file gives, with the overrides, as they stand there.

    Parameters as of `load`.

    Raises
    ------
    ConfigError
        If the file cannot be read.
    """
    name = os.fspath(path)
    values: dict[str, Any] = _tree(_text(name), name, models, overrides).data
    return values


def dump(config: Section) -> str:
    """Return a configuration as YAML, with every default; `load` reads an equal one from it."""
    return write(plain_values(config))


def plain_values(value: Any) -> Any:
    """Return sections as mappings and tuples as lists, as a file would hold them.

    Of ``end`` and ``steps`` (and the like) the one that is not given is left out; any other null
    means something.
    """
    if isinstance(value, Section):
        optional = exclusive_keys(type(value))
        given = {key: item for key, item in value if item is not None or key not in optional}
        return {key: plain_values(item) for key, item in given.items()}
    return [plain_values(item) for item in value] if isinstance(value, tuple) else value


def dotted_values(config: Section) -> dict[str, Any]:
    """Return the plain values of a configuration by their keys, such as ``time.dt``."""
    return dict(_dotted(plain_values(config)))


def _dotted(values: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of nested mappings."""
    if not isinstance(values, dict):
        yield path, values
        return
    for key, value in values.items():
        yield from _dotted(value, f"{path}.{key}" if path else key)


def _tree(
    text: str, name: str, models: Mapping[str, ConfiguredModel], overrides: Sequence[str]
) -> Tree:
    """Return the values of a document with the overrides in their places."""
    tree = read(text, lambda line: Location.in_file(name, line))
    if not isinstance(tree.data, dict):
        raise error_of(tree.faults or [_not_a_mapping(tree, models)])
    for number, override in enumerate(overrides, start=1):
        override_keys.apply(tree, number, override)
    return tree


def _not_a_mapping(tree: Tree, models: Mapping[str, ConfiguredModel]) -> Fault:
    what = "is empty"
    if tree.data is not None:
        what = f"is not a mapping at its top (got {shown(tree.data)})"
    roots = [model.schema for model in models.values()]
    keys = ", ".join(dict.fromkeys(key for root in roots for key in root.model_fields))
    return Fault(tree.location(()), (), f"{what}; must be a mapping of the keys {keys}")


def _anchored(section: Any, tree: Tree, folder: str, path: KeyPath = ()) -> Any:
    """Return a section whose input files have absolute names.

    The stored configuration then means the same files wherever it is read. A name given with
    ``--set`` starts at the current folder.
    """
    fields = type(section).model_fields
    changes: dict[str, Any] = {}
    for key, value in section:
        inner_path = (*path, key)
        if isinstance(value, Section):
            inner = _anchored(value, tree, folder, inner_path)
            changes |= {key: inner} if inner is not value else {}
        elif isinstance(value, tuple) and all(isinstance(entry, Section) for entry in value):
            changes[key] = tuple(
                _anchored(entry, tree, folder, (*inner_path, place))
                for place, entry in enumerate(value)
            )
        elif key in fields and value is not None and is_input_file(fields[key]):
            start = "" if tree.location(inner_path).override else folder
            changes[key] = os.path.abspath(os.path.join(start, value))
    return section.model_copy(update=changes) if changes else section


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
            text = "is not text; a configuration is YAML"
        raise error_of([Fault(Location.in_file(name, line), (), text)]) from None


def _content(name: str) -> bytes:
    """Return the bytes of a file of a reasonable size."""
    try:
        with open(name, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise error_of([_whole_file(name, _why_unreadable(name, error))]) from None
    if len(content) > MAX_BYTES:
        text = f"is larger than {MAX_BYTES} bytes; a configuration is a short YAML file"
        raise error_of([_whole_file(name, text)])
    return content


def _whole_file(name: str, text: str) -> Fault:
    return Fault(Location.in_file(name or "''", 0), (), text)


def _why_unreadable(name: str, error: Exception) -> str:
    """Return why a file could not be read, and the file that was probably meant."""
    if isinstance(error, FileNotFoundError):
        return f"no such file{_similar_file(name)}"
    if isinstance(error, IsADirectoryError):
        inside = sorted(Path(name).glob("*.y*ml"))
        hint = f"; did you mean {str(inside[0])!r}?" if inside else ""
        return f"is a directory, not a file{hint}"
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied; check the rights of the file and its folders"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def _similar_file(name: str) -> str:
    """Return a hint at a YAML file of a similar name, whatever its ending, in the same folder."""
    path = Path(name)
    try:
        found = {near.stem: near for near in path.parent.glob("*.y*ml")}
    except OSError:
        return ""
    stem = nearest(path.stem, sorted(found))
    return f"; did you mean '{found[stem]}'?" if stem else ""
