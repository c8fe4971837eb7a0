"""Functions of a script or a notebook, written into its configuration as their source."""

import inspect
import math
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hybrid_nbody.errors import InputError


def with_sources(value: Any) -> Any:
    """Return a value of a configuration with the source of each ``function`` that is one."""
    if isinstance(value, list | tuple):
        return [with_sources(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    found = {key: with_sources(entry) for key, entry in value.items()}
    function = value.get("function")
    if callable(function):
        found |= {"function": function.__name__, "source": source_of(function)}
    return found


def source_of(function: Callable[..., Any]) -> str:
    """Return the text of a function, with the numbers that it uses from around it.

    Raises
    ------
    InputError
        If it is not made by def, or its text cannot be had.
    """
    try:
        text = textwrap.dedent(inspect.getsource(function))
        around = inspect.getclosurevars(function)
    except (OSError, TypeError) as error:
        raise InputError(f"function: the source of {function!r} cannot be read: {error}") from error
    if not text.startswith("def "):
        raise InputError(f"function: {function!r} must be made by def, without decorators")
    used = {**around.globals, **around.nonlocals}
    numbers = [f"{name} = {_text_of(value)}" for name, value in used.items() if _is_number(value)]
    return "\n".join(["import math", *numbers, "", text])


def _is_number(value: Any) -> bool:
    numbers = int | float | np.integer | np.floating
    return isinstance(value, numbers) and not isinstance(value, bool)


def _text_of(value: Any) -> str:
    """Return a number as Python writes it, whatever its type."""
    number = value.item() if isinstance(value, np.generic) else value
    return repr(number) if math.isfinite(number) else f"float('{number}')"
