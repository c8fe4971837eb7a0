"""YAML text to plain values, each with the location where it was written.

PyYAML alone would take duplicate keys silently, read ``1e-3`` as text, ``off`` as false and ``010``
as 8, and follow aliases that expand a few lines to gigabytes. Here numbers are read as people write
them, only ``true`` and ``false`` are booleans, and duplicate keys, tags and aliases are faults.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

from hybrid_nbody.config.faults import Fault, KeyPath, Location, shortened, shown

MAX_LEVELS = 20
"""Levels of nested mappings and lists."""

MAX_DIGITS = 300
"""Of a whole number: Python refuses to convert a few thousand, and no key wants more than 20."""

KEPT_TEXTS = 16
"""Texts whose structure is kept for the next time that they are read."""

LocationOf = Callable[[int], Location]
"""Gives the location of a line, counted from 1."""

_ALIAS = "an alias"
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_WORDS = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "false": False,
}


@dataclass
class Tree:
    """Values as they were written, nested dicts, lists and scalars, with the location of each.

    `faults` are those found on the way. A value in `spoiled` could not be read: it has been
    reported, and its content means nothing.
    """

    data: Any = None
    locations: dict[KeyPath, Location] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    spoiled: set[KeyPath] = field(default_factory=set)

    def location(self, path: KeyPath) -> Location:
        """Return where a value, or else the nearest thing around it, was written."""
        while path and path not in self.locations:
            path = path[:-1]
        return self.locations[path]


def read(text: str, location_of: LocationOf, prefix: KeyPath = ()) -> Tree:
    """Read one YAML document.

    Parameters
    ----------
    text : str
        The document.
    location_of : callable
        Gives the location of a line, counted from 1.
    prefix : tuple
        The key under which the document will be put.

    Returns
    -------
    Tree
        The values. Of text that is no YAML, holds control characters or several documents, or is
        nested too deeply, it has only the fault.
    """
    tree = Tree()
    try:
        node = _compose(text)
    except _Unreadable as error:
        tree.locations[prefix] = location_of(error.line)
        tree.faults.append(Fault(location_of(error.line), prefix, str(error)))
        tree.spoiled.add(prefix)
        return tree
    tree.locations[prefix] = location_of(_line(node) if node else 1)
    if node is not None:
        tree.data = _Builder(tree, location_of).value(node, prefix)
    return tree


class _Unreadable(Exception):
    """A document of which nothing can be used."""

    def __init__(self, line: int, text: str):
        super().__init__(text)
        self.line = line


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


class _Composer(yaml.SafeLoader):
    """Keeps on each node the tag that was written (None: no tag), and does not follow aliases."""

    yaml_implicit_resolvers = {}
    level = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            marks: Any = (event.start_mark, event.end_mark)
            return yaml.ScalarNode(_ALIAS, event.anchor, *marks)
        return self._compose_within_limits(event, parent, index)

    def _compose_within_limits(
        self, event: Any, parent: yaml.Node | None, index: int
    ) -> yaml.Node | None:
        if self.level >= MAX_LEVELS:
            raise yaml.MarkedYAMLError(
                problem=f"nested deeper than {MAX_LEVELS} levels", problem_mark=event.start_mark
            )
        self.level += 1
        node = super().compose_node(parent, index)
        self.level -= 1
        if node is not None:
            node.tag = event.tag
        return node


@lru_cache(maxsize=KEPT_TEXTS)
def _compose(text: str) -> yaml.Node | None:
    """Return the root node of the only document, or None of an empty text; nobody changes it.

    A sweep reads the same file for each of its members.
    """
    _refuse_control_characters(text)
    composer = _Composer(text)
    try:
        return composer.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise _Unreadable(line, f"cannot be read as YAML: {_problem(error)}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # the last two are of chr(), to which PyYAML passes "\UFFFFFFFF"
        raise _Unreadable(composer.line + 1, f"cannot be read as YAML: {error}") from None
    finally:
        composer.dispose()


def _refuse_control_characters(text: str) -> None:
    """Refuse what no text file holds; PyYAML would say so in its own words."""
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        character = f"U+{ord(found.group()):04X}"
        raise _Unreadable(line, f"holds the control character {character}; only text is allowed")


def _problem(error: yaml.MarkedYAMLError) -> str:
    """Return what PyYAML found, and where the thing began that it was reading."""
    problem = error.problem or ""
    if problem == "but found another document":
        return "a second document begins here; only one is allowed"
    found = problem.removeprefix("found character ")
    character, cannot_start, _ = found.partition(" that cannot start")
    if cannot_start and character == r"'\t'":
        return "a value cannot begin with a tab; indent with spaces"
    if cannot_start:
        return f"a value cannot begin with {character}; put the text in quotes"
    if error.context and error.context_mark:
        begins = f"{error.context} that begins in line {error.context_mark.line + 1}"
        return f"{problem} ({begins})"
    return problem


class _Builder:
    """Fills a tree with the values of nodes."""

    def __init__(self, tree: Tree, location_of: LocationOf):
        self.tree = tree
        self._location_of = location_of

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        """Return the value of a node.

        The locations of what it holds, and its faults, are entered in the tree.
        """
        if node.tag is not None:
            return self._refuse_tag(node, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._entry(entry, (*path, index)) for index, entry in enumerate(node.value)]
        return node.value if node.style else _plain(node.value)

    def _refuse_tag(self, node: yaml.Node, path: KeyPath) -> None:
        """Refuse ``!tag`` and ``*alias``; of many aliases only the first is worth a line."""
        text = f"tags such as {shown(node.tag)} are not allowed; write the plain value"
        if node.tag == _ALIAS:
            text = f"aliases such as *{shortened(node.value)} are not allowed; write the value out"
        self.tree.spoiled.add(path)
        if node.tag != _ALIAS or not any(
            fault.text.startswith("aliases") for fault in self.tree.faults
        ):
            self._refuse(node, path, text)

    def _entry(self, node: yaml.Node, path: KeyPath) -> Any:
        self.tree.locations[path] = self._location(node)
        return self.value(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        first_lines: dict[str, int] = {}
        result = {}
        for key_node, value_node in node.value:
            key = self._new_key(key_node, path, first_lines)
            if key is not None:
                self.tree.locations[(*path, key)] = self._location(key_node)
                result[key] = self.value(value_node, (*path, key))
        return result

    def _new_key(self, node: yaml.Node, path: KeyPath, first_lines: dict[str, int]) -> str | None:
        """Return the key of an entry, or None of one that is refused."""
        if not isinstance(node, yaml.ScalarNode) or node.tag is not None:
            self._refuse(node, path, "a key must be a plain word")
            return None
        key = node.value
        if key in first_lines:
            text = f"duplicate key, first given in line {first_lines[key]}; keep one of them"
            self._refuse(node, (*path, key), text)
            return None
        first_lines[key] = _line(node)
        return key

    def _refuse(self, node: yaml.Node, path: KeyPath, text: str) -> None:
        self.tree.faults.append(Fault(self._location(node), path, text))

    def _location(self, node: yaml.Node) -> Location:
        return self._location_of(_line(node))


def _plain(text: str) -> Any:
    """Return the value of a scalar without quotes: null, a boolean, a decimal number, or text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= MAX_DIGITS else text
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


class _Dumper(yaml.SafeDumper):
    """Quotes whatever this reader, or a common YAML reader, would not take for text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(rf"(?:{_INTEGER.pattern})$"), None
)
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(rf"(?:{_FLOAT.pattern})$"), None
)


def write(data: Any) -> str:
    """Return plain values as YAML that `read` reads back to the same values."""
    return yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=120,
        default_flow_style=None,
    )


def write_in_one_line(value: Any) -> str:
    """Return a plain value as it may stand behind a key."""
    text = yaml.dump(
        [value],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=1e9,
        default_flow_style=True,
    )
    return text.strip()[1:-1]
