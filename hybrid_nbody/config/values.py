"""The types of values in a configuration: numbers, whole numbers, durations, lines of text.

A validator raises ``ValueError()`` without words: the message is then made from what is allowed for
the key, the same words that the documentation prints (see ``wording.py``).
"""

import math
import os.path
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge, Gt, MinLen
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BeforeValidator,
    GetCoreSchemaHandler,
    Strict,
    TypeAdapter,
    ValidationError,
    WrapValidator,
)
from pydantic_core import core_schema


@dataclass(frozen=True)
class Allowed:
    """Says in words what a key accepts, where its type alone does not tell.

    Attributes
    ----------
    type : str
        The type of value.
    text : str
        The full rule.
    """

    type: str
    text: str


@dataclass(frozen=True)
class Registered:
    """Says that a key chooses among the names of a table, which may grow after the schema is made.

    Attributes
    ----------
    table : mapping of str
    """

    table: Mapping[str, Any]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Check that the name is in the table."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, name: str) -> str:
        if name not in self.table:
            raise ValueError()
        return name


Number = Annotated[float, Strict(), AllowInfNan(False)]
"""A finite number; ``true`` and ``"1"`` are none."""

Positive = Annotated[Number, Gt(0)]
NonNegative = Annotated[Number, Ge(0)]


def _whole(value: Any) -> Any:
    """Read 1e3 as the whole number that it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = Annotated[int, Strict(), BeforeValidator(_whole)]
"""A whole number, which may be written as 1000, 1000.0 or 1e3."""

AtLeastOne = Annotated[WholeNumber, Ge(1)]

Switch = Annotated[bool, Strict(), Allowed("true or false", "true or false")]

_DURATION = re.compile("".join(rf"(?:(\d+(?:\.\d+)?){unit})?" for unit in "dhms"))
_SECONDS = (86400.0, 3600.0, 60.0, 1.0)


def _some_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse an empty list, and what is listed twice."""
    if not values or len(set(values)) < len(values):
        raise ValueError()
    return values


SomeOnce = AfterValidator(_some_once)
"""For a list of some different values."""


def _seconds(value: Any) -> Any:
    """Turn ``2h30m`` into 9000.0; a bare number counts seconds."""
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    parts = _DURATION.fullmatch(value)
    if not value or parts is None:
        raise ValueError()
    return sum(
        float(part or 0) * seconds for part, seconds in zip(parts.groups(), _SECONDS, strict=True)
    )


def _in_one_message(value: Any, handler: Callable[[Any], Any]) -> Any:
    """Report a value that fits no member of a union once, and not once a member."""
    try:
        return handler(value)
    except ValidationError:
        raise ValueError() from None


InOneMessage = WrapValidator(_in_one_message)

Duration = Annotated[
    float,
    Strict(),
    AllowInfNan(False),
    Gt(0),
    BeforeValidator(_seconds),
    InOneMessage,
    Allowed("duration", "a duration greater than 0 such as 2h30m, 90s, 1d or 3600 (seconds)"),
]
"""A length of wall-clock time, in seconds once it is read."""

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def _one_line(value: str) -> str:
    """Refuse line breaks and control characters, which no title or file name needs."""
    if _UNPRINTABLE.search(value):
        raise ValueError()
    return value


def _file_name(value: str) -> str:
    """Refuse an empty name and read ``~`` as the home folder, as a shell does."""
    if not value.strip():
        raise ValueError()
    return os.path.expanduser(value)


Line = Annotated[
    str,
    AfterValidator(_one_line),
    Allowed("text", "one line of text, in quotes if it looks like a number"),
]
Text = Annotated[str, MinLen(1), Allowed("text", "a text of any number of lines, not empty")]
FileName = Annotated[
    str,
    AfterValidator(_one_line),
    AfterValidator(_file_name),
    Allowed("text", "the name of a file or folder, in one line"),
]


class InputFileMark:
    """Marks a key that names a file to be read.

    A relative name starts at the folder of the YAML file.
    """


InputFile = Annotated[FileName, InputFileMark()]
"""The name of a file to be read; the stored configuration names it by its whole path."""


ONE = "one"
LIST = "list"


def form(value: Any) -> str:
    """Return the form of a key that takes one section or a list of them, as pydantic tags it."""
    return LIST if isinstance(value, list | tuple) else ONE


def _some_weight(values: tuple[float, ...]) -> tuple[float, ...]:
    """Refuse weights that share nothing out."""
    if not 0 < sum(values) < math.inf:
        raise ValueError("the sum of the weights must be finite and greater than 0")
    return values


Weights = Annotated[tuple[NonNegative, ...], AfterValidator(_some_weight)]
_WEIGHTS = TypeAdapter(Weights)


def _weights_by_entry(value: Any) -> Any:
    """Check a list entry by entry, so that a fault names the entry and not the whole list."""
    return _WEIGHTS.validate_python(value) if isinstance(value, list | tuple) else value


WeightsByEntry = BeforeValidator(_weights_by_entry)
