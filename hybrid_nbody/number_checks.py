"""Checks of the numbers that a person gives in Python."""

import math
import numbers
from typing import Any

import numpy as np

from hybrid_nbody.errors import InputError


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
    return number


def positive_number(name: str, value: Any) -> float:
    """Return a number as it is, which must be finite and greater than 0; else `InputError`."""
    number = _scalar(value)
    if not (_is_finite(number) and number > 0):
        raise InputError(f"{name} must be a number greater than 0 (got {value!r})")
    return number


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
