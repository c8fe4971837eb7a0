"""Descriptions of what a key accepts, for messages and documentation alike."""

import types
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hybrid_nbody.config.values import Allowed, InputFileMark, Registered

_NOUNS = {int: "whole number", float: "number"}
_LIMITS = {"gt": "greater than", "ge": "at least", "lt": "less than", "le": "at most"}


def allowed(field: FieldInfo) -> str:
    """Return what a key accepts, such as ``a whole number, at least 1`` or ``one of cpu, gpu``."""
    annotation, notes, may_be_null = _unwrapped(field.annotation, field.metadata)
    own_words = "".join(note.text for note in notes if isinstance(note, Allowed))
    words = (
        own_words
        or allowed_section(annotation)
        or one_of(choices(annotation, notes))
        or _allowed_number(annotation, notes)
    )
    return f"{words}, or null" if may_be_null else words


def type_name(field: FieldInfo) -> str:
    """Return the type of value that a key takes, such as ``whole number`` or ``choice``."""
    annotation, notes, _ = _unwrapped(field.annotation, field.metadata)
    own_words = "".join(note.type for note in notes if isinstance(note, Allowed))
    if own_words:
        return own_words
    if sections(annotation):
        return "section"
    return "choice" if choices(annotation, notes) else _NOUNS[annotation]


def is_input_file(field: FieldInfo) -> bool:
    """Return whether a key names a file to be read."""
    _, notes, _ = _unwrapped(field.annotation, field.metadata)
    return any(isinstance(note, InputFileMark) for note in notes)


def limits(bounds: dict[str, Any]) -> str:
    """Return bounds such as ``{"ge": 0, "lt": 1}`` in words, ``at least 0 and less than 1``.

    Other keys are ignored.
    """
    return " and ".join(
        f"{words} {_figure(bounds[name])}" for name, words in _LIMITS.items() if name in bounds
    )


def choices(annotation: Any, notes: Iterable[Any] = ()) -> tuple[str, ...]:
    """Return the words among which a key chooses; empty if it takes no words.

    Parameters
    ----------
    annotation : type
        Of the key.
    notes : iterable, optional
        What stands beside the type in ``Annotated``, such as `Registered`.
    """
    for note in notes:
        if isinstance(note, Registered):
            return tuple(note.table)
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(word for part in _parts(annotation) for word in choices(part))


def one_of(words: tuple[str, ...]) -> str:
    """Return words as a choice among them: ``one of auto, cpu, gpu``, or the only word."""
    return f"one of {', '.join(words)}" if len(words) > 1 else "".join(words)


def sections(annotation: Any) -> tuple[type[BaseModel], ...]:
    """Return the sections that may stand at a key: none, one, or one for each ``kind``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return tuple(section for part in _parts(annotation) for section in sections(part))


def kinds(annotation: Any) -> dict[str, type[BaseModel]]:
    """Return the sections that may stand at a key by the value of their key ``kind``.

    The mapping is empty if there is no choice.
    """
    known = sections(annotation)
    return (
        {choices(section.model_fields["kind"].annotation)[0]: section for section in known}
        if len(known) > 1
        else {}
    )


def takes_list(annotation: Any) -> bool:
    """Return whether a key takes either one section or a list of them."""
    return any(get_origin(part) is tuple for part in _whole_parts(annotation))


def allowed_section(annotation: Any) -> str:
    """Return what a section, or an entry of a list of sections, holds; empty for other values."""
    if kinds(annotation):
        several = ", or a list of such mappings" if takes_list(annotation) else ""
        return f"a mapping with the key kind and the keys of that kind{several}"
    return "".join(
        f"a mapping of the keys {', '.join(section.model_fields)}"
        for section in sections(annotation)
    )


def _whole_parts(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union, each without what stands beside it in ``Annotated``."""
    if get_origin(annotation) is Annotated:
        yield from _whole_parts(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from _whole_parts(part)
    else:
        yield annotation


def _parts(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type within ``Annotated`` or of a list's entries."""
    if get_origin(annotation) in (Annotated, tuple):
        return get_args(annotation)[:1]
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()


def _unwrapped(annotation: Any, notes: Any = ()) -> tuple[Any, tuple[Any, ...], bool]:
    """Return the type that counts, all notes on it, and whether null may stand in its place."""
    parts = _parts(annotation)
    if get_origin(annotation) is Annotated:
        return _unwrapped(parts[0], (*notes, *annotation.__metadata__))
    if types.NoneType in parts:
        inner, notes, _ = _unwrapped(
            next(part for part in parts if part is not types.NoneType), notes
        )
        return inner, notes, True
    return annotation, tuple(notes), False


def _allowed_number(annotation: Any, notes: tuple[Any, ...]) -> str:
    bounds = {
        name: getattr(note, name) for note in notes for name in _LIMITS if hasattr(note, name)
    }
    return ", ".join(part for part in (f"a {_NOUNS[annotation]}", limits(bounds)) if part)


def _figure(value: float) -> str:
    """Return a limit as people write it: 0, 0.5, 1e9."""
    text = f"{value:.16g}"
    zeros = len(text) - len(text.rstrip("0"))
    return f"{text[:-zeros]}e{zeros}" if zeros >= 6 else text
