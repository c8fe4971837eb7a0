"""Bodies that a function of the user's own makes."""

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.functions import BadFunctionError, Function, load_function
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


def _function(path: str, name: str) -> Function:
    """Return a function of a file."""
    try:
        return load_function(path, name)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except BadFunctionError as error:
        raise InputError(f"{path}: {error} (bodies.function)") from error


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
