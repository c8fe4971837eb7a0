"""Tells quantities that are rounding alone, such as the momentum of bodies at rest as a whole."""

from collections.abc import Mapping, Sequence

import numpy as np

from hybrid_nbody.analysis.compare_series import Series
from hybrid_nbody.files.run import Run

ROUNDING = 1e-7
"""Largest value that is rounding, in natural units: of single precision, in which forces are."""


def natural_units(run: Run, fields: Sequence[Series]) -> dict[str, float]:
    """Return what lengths, times and masses of a run are like, as far as that is known.

    Parameters
    ----------
    run : Run
    fields : sequence of Series
        Of its frames.
    """
    scales = {one.units: one.scale for one in fields if one.scale > 0}
    length = scales.get("length", 0.0)
    speed = scales.get("length / time", 0.0)
    mass = float(run.mass.sum()) if run.number_of_bodies else 0.0
    time = length / speed if speed else 0.0
    found = {"length": length, "time": time, "mass": mass}
    return {name: size for name, size in found.items() if size > 0}


def natural_size(units: str, known: Mapping[str, float]) -> float | None:
    """Return the size of a quantity of some units, such as ``mass length^2 / time``.

    Returns
    -------
    float or None
        None where a unit is not known, as of numbers without units.
    """
    over, _, under = units.partition("/")
    words = [(word, 1) for word in over.split()] + [(word, -1) for word in under.split()]
    size = 1.0
    for word, sign in words:
        name, _, power = word.partition("^")
        if name not in known or not (power or "1").isdecimal():
            return None
        size *= known[name] ** (sign * int(power or 1))
    return size if words else None


def is_rounding(one: Series, known: Mapping[str, float]) -> bool:
    """Return whether a quantity is zero in both runs but for rounding."""
    size = natural_size(one.units, known)
    if size is None or not np.isfinite(one.largest).all():
        return False
    return bool(max(one.scale, one.largest.max(initial=0.0)) <= ROUNDING * size)
