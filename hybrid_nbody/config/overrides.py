"""Overrides of single keys, ``time.dt=1e-4``, grafted onto the values of a file."""

import re
from typing import Any

from hybrid_nbody.config.faults import Fault, KeyPath, Location, dotted
from hybrid_nbody.config.sections import ALTERNATIVES
from hybrid_nbody.config.yaml_text import MAX_LEVELS, Tree, read

PART = re.compile(r"(?P<key>[^\[\]]+)(?P<places>(?:\[\d{1,9}\])*)")
"""A key and the places in the lists that it holds, ``bodies[0]``."""

PLACE = re.compile(r"\d+")


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
    path = _keys(name.strip())
    if not separator or path is None or len(path) > MAX_LEVELS:
        tree.faults.append(Fault(location, (), "must be KEY=VALUE, such as time.dt=1e-3"))
        return
    value = read(text, lambda line: location, path)
    section = _section(tree, path, location)
    if section is not None:
        _drop_alternative(tree, section, path, value.data)
        _graft(tree, section, path, value)


def key_of(override: str) -> str:
    """Return the key that an override replaces."""
    return override.partition("=")[0].strip()


def _keys(name: str) -> KeyPath | None:
    """Return ``("bodies", 0, "n")`` for ``bodies[0].n``; None for what names no key."""
    path: list[str | int] = []
    for part in name.split("."):
        found = PART.fullmatch(part)
        if found is None:
            return None
        path += [found["key"], *map(int, PLACE.findall(found["places"]))]
    return tuple(path)


def _section(tree: Tree, path: KeyPath, location: Location) -> Any:
    """Return the mapping or list that holds a key, a mapping made where the file has none.

    It is None where another value stands in its place.
    """
    section = tree.data
    for depth, key in enumerate(path[:-1], start=1):
        here = path[:depth]
        if isinstance(section, dict) and section.get(key) is None:
            section[key] = {}
            _forget(tree, here)
            tree.locations[here] = location
        section = section[key]
        if text := _no_place(section, path[depth], here):
            tree.faults.append(Fault(location, path, text))
            return None
    return section


def _no_place(section: Any, key: str | int, path: KeyPath) -> str:
    """Return why the value at a path has no place for a key; empty if it has."""
    name = dotted(path)
    if isinstance(section, list):
        if isinstance(key, int):
            entries = len(section)
            return "" if key < entries else f"{name} has {entries} entries, counted from 0"
        return f"{name} is a list; name one of its entries, such as {name}[0].{key}"
    if isinstance(section, dict):
        return "" if isinstance(key, str) else f"{name} is not a list"
    return f"there are no keys below {name}, which holds one value"


def _drop_alternative(tree: Tree, section: Any, path: KeyPath, value: Any) -> None:
    """Take the key that excludes this one out of the values of the file.

    Where another override gave it, both stay, and the schema finds the fault.
    """
    other = ALTERNATIVES.get(str(path[-1]))
    if value is None or other is None or other not in section:
        return
    beside = (*path[:-1], other)
    if not tree.location(beside).override:
        del section[other]
        _forget(tree, beside)


def _graft(tree: Tree, section: Any, path: KeyPath, value: Tree) -> None:
    """Put a value with its locations and faults where an older one may have stood."""
    _forget(tree, path)
    section[path[-1]] = value.data
    tree.locations.update(value.locations)
    tree.faults.extend(value.faults)
    tree.spoiled.update(value.spoiled)


def _forget(tree: Tree, path: KeyPath) -> None:
    """Forget the locations of a value and any failure to read it."""
    for known in [known for known in tree.locations if known[: len(path)] == path]:
        del tree.locations[known]
    tree.spoiled -= {known for known in tree.spoiled if known[: len(path)] == path}
