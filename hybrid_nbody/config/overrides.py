"""Overrides of single keys, ``time.dt=1e-4``, grafted onto the values of a file."""

from collections.abc import Sequence
from typing import Any

from hybrid_nbody.config.faults import Fault, KeyPath, Location, dotted
from hybrid_nbody.config.sections import ALTERNATIVES
from hybrid_nbody.config.yaml_text import MAX_LEVELS, Tree, read


def apply(tree: Tree, number: int, override: str) -> None:
    """Replace a value of a tree by that of an override.

    A section that is missing or null is made. Of two keys that exclude each other, such as
    ``time.end`` and ``time.steps``, the one of the override replaces that of the file.

    Parameters
    ----------
    tree : Tree
        A mapping at its top; changed in place. Faults of the override are added to those of the
        tree.
    number : int
        Which override of the command line this is, counted from 1.
    override : str
        ``dotted.key=YAML value``.
    """
    location = Location.in_override(number, override)
    name, separator, text = override.partition("=")
    path = name.strip().split(".")
    if not separator or not all(path) or len(path) > MAX_LEVELS:
        tree.faults.append(Fault(location, (), "must be KEY=VALUE, such as time.dt=1e-3"))
        return
    value = read(text, lambda line: location, tuple(path))
    section = _section(tree, path, location)
    if section is not None:
        _drop_alternative(tree, section, path, value.data)
        _graft(tree, section, path, value)


def _section(tree: Tree, path: Sequence[str], location: Location) -> dict[str, Any] | None:
    """Return the mapping that holds a key, made where the file has none.

    It is None where another value stands in its place.
    """
    section: dict[str, Any] = tree.data
    for depth, key in enumerate(path[:-1], start=1):
        here = tuple(path[:depth])
        if section.get(key) is None:
            section[key] = {}
            _forget(tree, here)
            tree.locations[here] = location
        inner = section[key]
        if not isinstance(inner, dict):
            text = f"there are no keys below {dotted(here)}, which holds one value"
            tree.faults.append(Fault(location, tuple(path), text))
            return None
        section = inner
    return section


def _drop_alternative(tree: Tree, section: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Take the key that excludes this one out of the values of the file.

    Where another override gave it, both stay, and the schema finds the fault.
    """
    other = ALTERNATIVES.get(path[-1])
    if value is None or other is None or other not in section:
        return
    beside = (*path[:-1], other)
    if not tree.location(beside).override:
        del section[other]
        _forget(tree, beside)


def _graft(tree: Tree, section: dict[str, Any], path: Sequence[str], value: Tree) -> None:
    """Put a value with its locations and faults where an older one may have stood."""
    _forget(tree, tuple(path))
    section[path[-1]] = value.data
    tree.locations.update(value.locations)
    tree.faults.extend(value.faults)
    tree.spoiled.update(value.spoiled)


def _forget(tree: Tree, path: KeyPath) -> None:
    """Drop the locations of a value, and that it could not be read."""
    for known in [known for known in tree.locations if known[: len(path)] == path]:
        del tree.locations[known]
    tree.spoiled -= {known for known in tree.spoiled if known[: len(path)] == path}
