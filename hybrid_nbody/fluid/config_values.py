"""The types of values in a fluid's configuration: cells, steps, regions, names of fields."""

import re
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, BeforeValidator

from hybrid_nbody.config.values import Allowed, InOneMessage, Line, Number, SomeOnce, WholeNumber

FEWEST_CELLS = 3
MOST_CELLS = 4096

SCALAR_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
TAKEN = (
    *("density", "velocity", "pressure", "top", "u", "v", "w", "u_before", "v_before", "w_before"),
    *("speed", "vorticity", "divergence", "solid", "step", "time", "x", "y", "z"),
    *("inflow", "profile"),
)
"""Names that a scalar must not have: those of other fields in files, of what is beside them, and of
what else an inflow says."""


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


def _free_name(name: str) -> str:
    """Refuse a name that files or formulas could not use, or that another field has."""
    if not SCALAR_NAME.fullmatch(name) or name in TAKEN:
        raise ValueError()
    return name


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
Vector = Annotated[
    tuple[Number, Number, Number],
    InOneMessage,
    Allowed("list", "a list of three numbers, along x, y and z"),
]
Coordinate = Annotated[Number, Ge(-1e6), Le(1e6)]
BoundedVector = Annotated[
    tuple[Coordinate, Coordinate, Coordinate],
    InOneMessage,
    Allowed("list", "a list of three numbers from -1e6 to 1e6, along x, y and z"),
]
BoundedPositive = Annotated[Number, Gt(0), Le(1e6)]
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
ScalarName = Annotated[
    str,
    AfterValidator(_free_name),
    InOneMessage,
    Allowed("text", f"a word of letters, digits and underscores other than {', '.join(TAKEN)}"),
]
FieldNames = Annotated[
    tuple[Line, ...],
    SomeOnce,
    InOneMessage,
    Allowed("list", "a list of different names of fields, such as density and velocity"),
]
Planes = Annotated[
    tuple[Count, ...],
    SomeOnce,
    InOneMessage,
    Allowed("list", "a list of different whole numbers from 0"),
]
