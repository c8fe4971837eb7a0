"""Bodies that a function of the user's own makes."""

import runpy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies


def bodies_of_function(path: str, name: str, n: int, seed: int) -> Bodies:
    """Return what a function in a Python file makes, called as ``function(n, seed)``.

    Parameters
    ----------
    path : str
        The file, which is run.
    name : str
        The function in it.
    n : int
        Number of bodies that it has to make.
    seed : int

    Raises
    ------
    InputError
        If there is no such file or function, if it fails, or if it does not return positions and
        velocities, (n, 3), and masses, (n,).
    """
    function = _function(path, name)
    try:
        found = function(n, seed)
        position, velocity, mass = (np.array(values, dtype=np.float64) for values in found)
    except Exception as error:  # of somebody else's code: any
        text = f"function {name}(n={n}, seed={seed}) failed: {type(error).__name__}: {error}"
        advice = "it must return positions (n, 3), velocities (n, 3) and masses (n)"
        raise InputError(f"{path}: {text}; {advice}") from error
    _check_shapes(path, name, n, {"positions": position, "velocities": velocity, "masses": mass})
    return Bodies(position, velocity, mass)


def _function(path: str, name: str) -> Callable[[int, int], Any]:
    """Return a function of a file."""
    try:
        names = runpy.run_path(path)
    except Exception as error:  # of somebody else's code: any
        raise InputError(f"{path}: cannot be run: {type(error).__name__}: {error}") from error
    function = names.get(name)
    if not callable(function):
        own = [key for key, value in names.items() if callable(value) and not key.startswith("_")]
        known = ", ".join(own) or "none"
        raise InputError(f"{path}: has no function {name!r} (bodies.function); it has: {known}")
    found: Callable[[int, int], Any] = function
    return found


def _check_shapes(path: str, name: str, n: int, arrays: dict[str, NDArray[np.float64]]) -> None:
    for what, array in arrays.items():
        shape = (n,) if what == "masses" else (n, 3)
        if array.shape != shape:
            raise InputError(
                f"{path}: function {name} returned {what} of shape {array.shape}; must be {shape}"
            )
        if not np.isfinite(array).all():
            raise InputError(f"{path}: function {name} returned {what} that are not finite")
    if (arrays["masses"] < 0).any():
        raise InputError(f"{path}: function {name} returned negative masses; must be at least 0")
