"""Checks of the arrays that a person gives, before anything is made of them."""

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
