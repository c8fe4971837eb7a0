"""The outcome of an action that one rank tries, to be told to all."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from hybrid_nbody.errors import HybridNBodyError, told_to_others


class Tried(NamedTuple):
    """The outcome of an action that one rank runs for all; empty on the others.

    Attributes
    ----------
    result : object
        What it returned.
    error : HybridNBodyError or None
        What all are told of the exception that it raised.
    foreign : Exception or None
        The exception itself, if it is of another type than `HybridNBodyError`.
    """

    result: Any = None
    error: HybridNBodyError | None = None
    foreign: Exception | None = None

    @classmethod
    def of(cls, action: Callable[[], object]) -> Self:
        """Run an action and return its outcome."""
        try:
            return cls(action())
        except HybridNBodyError as error:
            return cls(error=error)
        except Exception as error:
            return cls(error=told_to_others(error), foreign=error)


def error_of(action: Callable[[], object]) -> HybridNBodyError | None:
    """Return the error of an action, if it fails."""
    try:
        action()
    except HybridNBodyError as error:
        return error
    return None
