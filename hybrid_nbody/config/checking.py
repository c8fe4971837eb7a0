"""Values checked against the schema, every fault put into words with its location.

The schema decides what is wrong; only the words and the locations are made here, because what
pydantic says of a value knows neither files nor lines and speaks of types and union members.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hybrid_nbody.config.faults import Fault, KeyPath, did_you_mean, error_of, nearest, shown
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.config.values import LIST, ONE
from hybrid_nbody.config.wording import (
    allowed,
    allowed_section,
    choices,
    kinds,
    limits,
    one_of,
    sections,
    takes_list,
)
from hybrid_nbody.config.yaml_text import Tree

NO_TEXT = "the key is not UTF-8 text; write it in plain letters"


class ConfiguredModel(Protocol):
    """The part of a model's contract that reading a configuration needs."""

    @property
    def schema(self) -> type[ModelConfig]:
        """Return the root of its configuration."""


def check(tree: Tree, models: Mapping[str, ConfiguredModel]) -> ModelConfig:
    """Return the configuration that a tree of values describes.

    Parameters
    ----------
    tree : Tree
        A mapping at its top.
    models : mapping of str to ConfiguredModel
        The model for each value of ``model:``.

    Raises
    ------
    ConfigError
        With every fault of the values, and those that were found when they were read.
    """
    broken = [Fault(tree.location(path), path, NO_TEXT) for path in _broken_keys(tree.data)]
    if broken:
        raise error_of([*tree.faults, *broken])
    root = _root(tree, models)
    try:
        config = root.model_validate(tree.data)
    except ValidationError as error:
        tree.faults.extend(_faults(error, root, tree, tuple(models)))
        raise error_of(tree.faults) from None
    if tree.faults:
        raise error_of(tree.faults)
    return config


def _broken_keys(data: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of keys that are not valid text (bytes in an override that are not UTF-8)."""
    if isinstance(data, dict):
        for key, value in data.items():
            inner = (*path, key)
            if any("\ud800" <= char <= "\udfff" for char in str(key)):
                yield inner
            else:
                yield from _broken_keys(value, inner)


def _root(tree: Tree, models: Mapping[str, ConfiguredModel]) -> type[ModelConfig]:
    """Return the root that a configuration is checked against.

    It is that of the named model, or of a likely one, so that its keys are checked as well.
    """
    name = tree.data.get("model")
    known = tuple(models)
    near = nearest(name, known) if isinstance(name, str) else _likely(tree.data, models)
    if near is None:
        fault = Fault(tree.location(("model",)), ("model",), _wrong(name, one_of(known), known))
        raise error_of([*tree.faults, fault])
    return models[near].schema


def _likely(data: Mapping[str, Any], models: Mapping[str, ConfiguredModel]) -> str | None:
    """Return the model that shares most keys with the data."""
    return max(models, key=lambda name: len(models[name].schema.model_fields.keys() & data.keys()))


def _faults(
    error: ValidationError, root: type[ModelConfig], tree: Tree, models: tuple[str, ...]
) -> list[Fault]:
    """Return the faults that pydantic found, less those of values that could not be read."""
    faults = []
    for finding in error.errors(include_url=False):
        path = _path(finding, root)
        if finding["type"] == "extra_forbidden" or not _is_spoiled(path, tree):
            if path == ("model",):
                text = _wrong_word(tree.data, "model", models)
            else:
                text = _text(finding, path, root, tree.data)
            faults.append(Fault(tree.location(path), path, text))
    return faults


def _is_spoiled(path: KeyPath, tree: Tree) -> bool:
    """Return whether a value could not be read, which is a fault already.

    It cannot be read either where what holds it, or something within, could not be read.
    """
    return any(spoiled[: len(path)] == path[: len(spoiled)] for spoiled in tree.spoiled)


def _path(finding: ErrorDetails, root: type[ModelConfig]) -> KeyPath:
    """Return the keys as the file has them: without the kind that pydantic puts after a section."""
    path = _written(finding["loc"], root)
    if finding["type"].startswith("union_tag"):
        return (*path, "kind")
    return path[:-1] if _is_short_list(finding) else path


def _written(path: KeyPath, section: type[BaseModel]) -> KeyPath:
    """Return a path in a section without the kinds of sections on the way."""
    field = section.model_fields.get(str(path[0])) if path else None
    if field is None:
        return path
    if kinds(field.annotation):
        return (path[0], *_without_tags(path[1:], field.annotation))
    for inner in sections(field.annotation):
        return (path[0], *_written(path[1:], inner))
    return path


def _without_tags(path: KeyPath, annotation: Any) -> KeyPath:
    """Return a path without the form of a section, one or a list of them, and without its kind."""
    rest = list(path)
    if takes_list(annotation) and rest[:1] in ([ONE], [LIST]):
        del rest[0]
    place = rest[:1] if rest and isinstance(rest[0], int) else []
    rest = rest[len(place) :]
    if rest and rest[0] in kinds(annotation):
        del rest[0]
    return (*place, *rest)


def _is_short_list(finding: ErrorDetails) -> bool:
    """Return whether a list lacks an entry, which pydantic reports at the missing entry."""
    return finding["type"] == "missing" and isinstance(finding["loc"][-1], int)


def _text(
    finding: ErrorDetails, path: KeyPath, root: type[ModelConfig], data: dict[str, Any]
) -> str:
    """Return what is wrong and what is allowed."""
    fault = finding["type"]
    value = finding["input"]
    context = finding.get("ctx", {})
    if fault.startswith("union_tag"):
        return _wrong_word(value, "kind", _kinds_at(root, path[:-1], data))
    if fault == "extra_forbidden":
        return _unknown_key(str(path[-1]), tuple(_section(root, path[:-1], data).model_fields))
    if limits(context):
        return _wrong(value, limits(context))
    if fault == "value_error" and str(context["error"]):
        return f"{context['error']}{'' if isinstance(value, dict) else f' (got {shown(value)})'}"
    if isinstance(path[-1], int):
        return _wrong(value, _allowed_entry(fault, _field(root, path[:-1], data)))
    field = _field(root, path, data)
    is_missing = fault == "missing" and not _is_short_list(finding)
    return _missing(field) if is_missing else _wrong_value(value, field)


def _kinds_at(root: type[ModelConfig], path: KeyPath, data: Any) -> tuple[str, ...]:
    """Return the kinds among which the section or the entry of a list at a path chooses."""
    keys = path[:-1] if isinstance(path[-1], int) else path
    return tuple(kinds(_field(root, keys, data).annotation))


def _field(root: type[ModelConfig], path: KeyPath, data: Any) -> FieldInfo:
    """Return the schema of the key at a path."""
    return _section(root, path[:-1], data).model_fields[str(path[-1])]


def _section(root: type[ModelConfig], path: KeyPath, data: Any) -> type[BaseModel]:
    """Return the schema of the section at a path.

    Where a kind decides, it is that of the kind that was given.
    """
    section: type[BaseModel] = root
    annotation: Any = None
    for key in path:
        data = data[key]
        if isinstance(key, str):  # a number is an entry of a list: all have the same schema
            annotation = section.model_fields[key].annotation
        known = kinds(annotation)
        if not known:
            section = sections(annotation)[0]
        elif isinstance(data, dict):
            section = known[data["kind"]]
    return section


def _allowed_entry(fault: str, field: FieldInfo) -> str:
    """Return what an entry of a list must be."""
    number = "finite" if fault == "finite_number" else "a number"
    return allowed_section(field.annotation) or number


def _unknown_key(key: str, known: tuple[str, ...]) -> str:
    return f"unknown key{did_you_mean(key, known) or ';'} allowed: {', '.join(known)}"


def _missing(field: FieldInfo) -> str:
    return f"is missing; must be {allowed(field)}"


def _wrong_value(value: Any, field: FieldInfo) -> str:
    return _wrong(value, allowed(field), choices(field.annotation, field.metadata))


def _wrong_word(data: dict[str, Any], key: str, known: tuple[str, ...]) -> str:
    """Return what is wrong with the word that decides which keys there are."""
    if key not in data:
        return f"is missing; must be {one_of(known)}"
    return _wrong(data[key], one_of(known), known)


def _wrong(value: Any, what_is_allowed: str, words: tuple[str, ...] = ()) -> str:
    return f"must be {what_is_allowed}{did_you_mean(value, words)} (got {shown(value)})"
