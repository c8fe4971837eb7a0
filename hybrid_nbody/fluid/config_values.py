"""The types of values in a fluid's configuration: cells, boundaries, steps, regions."""

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, BeforeValidator

from hybrid_nbody.config.values import Allowed, InOneMessage, Number, SomeOnce, WholeNumber

FEWEST_CELLS = 3
MOST_CELLS = 4096

BOUNDARIES = ("free-slip", "no-slip", "periodic")
Boundary = Literal["free-slip", "no-slip", "periodic"]
FieldName = Literal["density", "velocity"]


def _for_each_axis(value: Any) -> Any:
    """Take a single value for all three axes."""
    return value if isinstance(value, list | tuple) else (value,) * 3


def _ascending(values: tuple[int, int]) -> tuple[int, int]:
    """Refuse a last step that comes before the first."""
    if values[0] > values[1]:
        raise ValueError()
    return values


def _not_empty(values: tuple[int, int]) -> tuple[int, int]:
    """Refuse a half-open range without cells."""
    if values[0] >= values[1]:
        raise ValueError()
    return values


Count = Annotated[WholeNumber, Ge(0)]
Cells = Annotated[WholeNumber, Ge(FEWEST_CELLS), Le(MOST_CELLS)]
Grid3 = Annotated[
    tuple[Cells, Cells, Cells],
    BeforeValidator(_for_each_axis),
    InOneMessage,
    Allowed(
        "whole number or list",
        (
            f"a whole number, at least {FEWEST_CELLS} and at most {MOST_CELLS}, or a list of "
            "three of them"
        ),
    ),
]
Boundaries = Annotated[
    tuple[Boundary, Boundary, Boundary],
    BeforeValidator(_for_each_axis),
    InOneMessage,
    Allowed(
        "choice or list",
        f"one of {', '.join(BOUNDARIES)}, or a list of three of them, for the axes x, y and z",
    ),
]
Vector = Annotated[
    tuple[Number, Number, Number],
    InOneMessage,
    Allowed("list", "a list of three numbers, along x, y and z"),
]
Omega = Annotated[
    Literal["auto"] | Annotated[Number, Gt(0), Lt(2)],
    InOneMessage,
    Allowed("choice or number", "auto or a number greater than 0 and less than 2"),
]
Steps = Annotated[
    tuple[Count, Count],
    AfterValidator(_ascending),
    InOneMessage,
    Allowed(
        "list",
        (
            "a list of the first and the last step, whole numbers from 0, the last not before "
            "the first"
        ),
    ),
]
Cell = Annotated[
    tuple[Count, Count, Count],
    InOneMessage,
    Allowed("list", "a list of three whole numbers i, j, k, counted from 0"),
]
Range = Annotated[tuple[Count, Count], AfterValidator(_not_empty)]
Box = Annotated[
    tuple[Range, Range, Range],
    InOneMessage,
    Allowed(
        "list", "a list of three ranges [first, end] of cells, along x, y and z, end not included"
    ),
]
FieldNames = Annotated[
    tuple[FieldName, ...],
    SomeOnce,
    InOneMessage,
    Allowed("list", "a list of density and velocity, or of one of them"),
]
Planes = Annotated[
    tuple[Count, ...],
    SomeOnce,
    InOneMessage,
    Allowed("list", "a list of different whole numbers from 0"),
]
