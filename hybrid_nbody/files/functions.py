"""Functions of the user's own, in files of Python."""

import linecache
import runpy
import zlib
from collections.abc import Callable
from typing import Any

from hybrid_nbody.errors import InputError

Function = Callable[..., Any]


class BadFunctionError(InputError):
    """What is wrong with a function, or with what it returns."""


def raised_by(error: BaseException) -> str:
    """Return in one line what a function raised."""
    return f"raised {type(error).__name__}: {' '.join(str(error).split())}"


def load_function(path: str, name: str) -> Function:
    """Return a function of a file, which is run; nothing is written beside it.

    Parameters
    ----------
    path : str
    name : str

    Raises
    ------
    OSError
        If the file cannot be read.
    BadFunctionError
        If running it fails, or it has no such function; the message lacks the path.
    """
    with open(path, "rb"):
        pass
    try:
        names = runpy.run_path(path)
    except (Exception, SystemExit) as error:  # of somebody else's code: any
        raise BadFunctionError(raised_by(error)) from error
    return _function_of(names, name)


def function_of_text(text: str, name: str) -> Function:
    """Return a function of a text of Python, which is run; `inspect` finds its source there.

    Parameters
    ----------
    text : str
    name : str

    Raises
    ------
    BadFunctionError
        If running it fails, or it has no such function.
    """
    file = f"<source {zlib.crc32(text.encode()):08x}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": file}
    try:
        exec(compile(text, file, "exec"), names)
    except (Exception, SystemExit) as error:  # of somebody else's code: any
        raise BadFunctionError(raised_by(error)) from error
    return _function_of(names, name)


def _function_of(names: dict[str, Any], name: str) -> Function:
    """Return one of the names that a program has set, which must be a function."""
    function = names.get(name)
    if not callable(function):
        raise BadFunctionError(f"has no function {name}; it has: {_defined_in(names) or 'none'}")
    found: Function = function
    return found


def _defined_in(names: dict[str, Any]) -> str:
    """Return the functions that a file defines, in a list for a message."""
    here = names["__name__"]
    own = [key for key, value in names.items() if callable(value) and value.__module__ == here]
    return ", ".join(own)
