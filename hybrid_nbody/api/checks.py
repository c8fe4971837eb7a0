"""Checks of the numbers and arrays that a person gives, before anything is made of them."""

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hybrid_nbody.errors import InputError

Rows = NDArray[np.float64]

Named = Callable[[tuple[int, ...]], str]
"""Says in words which number of an array stands at some indices."""


class AttributeInputError(InputError, AttributeError):
    """An attribute that a simulation does not have, as `hasattr` finds, or that cannot be set."""


# ---- Numbers -------------------------------------------------------------------------------------


def whole_number(name: str, value: Any, least: int) -> int:
    """Return a whole number of Python or NumPy that is at least `least`.

    Raises
    ------
    InputError
        If it is anything else, such as 2.0, ``"2"`` or True.
    """
    number = _scalar(value)
    if isinstance(number, bool) or not isinstance(number, numbers.Integral) or number < least:
        raise InputError(f"{name} must be a whole number, at least {least} (got {value!r})")
    return int(number)


def finite_number(name: str, value: Any) -> float:
    """Return a number of Python or NumPy as it is, which must be finite.

    Raises
    ------
    InputError
        If it is not finite, or no number.
    """
    number = _scalar(value)
    if not _is_finite(number):
        raise InputError(f"{name} must be a finite number (got {value!r})")
    return number  # type: ignore[no-any-return]


def positive_number(name: str, value: Any) -> float:
    """Return a number as it is, which must be finite and greater than 0; else `InputError`."""
    number = _scalar(value)
    if not (_is_finite(number) and number > 0):
        raise InputError(f"{name} must be a number greater than 0 (got {value!r})")
    return number  # type: ignore[no-any-return]


def _scalar(value: Any) -> Any:
    """Return a value, taken out of an array without axes."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _is_finite(value: Any) -> bool:
    """Return whether a value is a number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # of a whole number
        return False


# ---- Arrays --------------------------------------------------------------------------------------


def numbers_of(name: str, values: Any) -> Rows:
    """Return a copy of an array of numbers, or of what NumPy makes one of, as float64.

    Raises
    ------
    InputError
        If there is no real number for each of its elements.
    """
    wanted = f"{name}: must be an array of real numbers"
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiubO":
            raise InputError(f"{wanted} (got {array.dtype.name})")
        with np.errstate(over="ignore"):
            return np.array(array, float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{wanted} ({error})") from error


def numbers_like(name: str, values: Any, wanted: tuple[int, ...]) -> Rows:
    """Return a copy of numbers for the rows of this rank; `InputError` for another shape."""
    array = numbers_of(name, values)
    if array.shape != wanted:
        raise InputError(f"{name}: this rank needs an array of shape {wanted} (got {array.shape})")
    return array


def identities_of(name: str, values: Any) -> NDArray[np.int64]:
    """Return the different ones of some whole numbers, in order; `InputError` for anything else."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} must be whole numbers ({error})") from error
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} must be whole numbers, identities of bodies (got {values!r})")
    return np.unique(array.astype(np.int64))


def check_finite(
    name: str, array: NDArray[Any], named: Named, dtype: DTypeLike = np.float64
) -> None:
    """Check that every number is finite, also where it is stored.

    Parameters
    ----------
    name : str
        Of the array.
    array : array
    named : callable
        Says which number is the first that is not.
    dtype : data type, optional
        Of the place where the numbers go.

    Raises
    ------
    InputError
        If one is not.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(array.astype(dtype, copy=False))
    if finite.all():
        return
    place = tuple(np.argwhere(~finite)[0].tolist())
    where = f" in {np.dtype(dtype).name}" if np.isfinite(array[place]) else ""
    raise InputError(
        f"{name}: every number must be finite{where} (got {array[place]:g} {named(place)})"
    )


def check_masses(masses: Rows, named: Named) -> None:
    """Check that no mass is negative; `InputError` names the first that is."""
    negative = np.flatnonzero(masses < 0)
    if len(negative):
        row = int(negative[0])
        raise InputError(f"masses: negative mass (got {masses[row]:g} {named((row,))})")


def in_row(place: tuple[int, ...]) -> str:
    """Say in which row of an array a number stands."""
    return f"in row {place[0]}"


def in_cell(place: tuple[int, ...]) -> str:
    """Say in which cell of a fluid a number stands."""
    return f"in cell (z, y, x) = {place[:3]}"


def of_body(identities: NDArray[np.int64]) -> Named:
    """Return what says of which body a number is, by its row and its identity."""
    return lambda place: f"in row {place[0]}, body {identities[place[0]]}"
