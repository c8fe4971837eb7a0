"""What to set where the energy error is too large: smaller steps, by the integrator's order."""

import math

from hybrid_nbody.nbody.integrators.registry import INTEGRATORS

TRUSTED = 1e-3
"""Relative energy error above which orbits are not to be trusted."""

MARGIN = 0.5
"""Share of it that smaller steps aim at."""

SHORTEST = 0.01
"""Least factor by which steps are advised to be shorter: larger errors tell little."""

LEAST_ACCURACY = 1e-3
"""Least ``time.accuracy`` advised: below, forces of any precision but double are too rough."""


def better_steps(integrator: str, dt: float, accuracy: float, error: float) -> str:
    """Return what to set so that a relative energy error falls below `TRUSTED`.

    Parameters
    ----------
    integrator : str
        The value of ``time.integrator``.
    dt, accuracy : float
        Of the same section.
    error : float
        Any sign; NaN and infinity too.

    Returns
    -------
    str
        Such as ``time.dt: 0.0004``.
    """
    kind = INTEGRATORS.get(integrator)
    if kind is None or not kind.order or not math.isfinite(error):
        return "a smaller time.dt"
    excess = max(abs(error) / (MARGIN * TRUSTED), 1.0)
    factor = max(excess ** (-1 / kind.order), SHORTEST)
    if kind.adaptive:
        return f"time.accuracy: {max(rounded_down(factor * accuracy), LEAST_ACCURACY):g}"
    return f"time.dt: {rounded_down(factor * dt):g}"


def advice_on_error(integrator: str, dt: float, accuracy: float, error: float) -> str:
    """Return what a person is told of a relative energy error that is too large.

    Parameters are those of `better_steps`.
    """
    kind = INTEGRATORS.get(integrator)
    adaptive = "" if kind and kind.adaptive else " or time.integrator: hermite4"
    order = f" (by the order of {integrator})" if kind and kind.order else ""
    better = better_steps(integrator, dt, accuracy, error)
    return f"do not trust its orbits; take {better}{order}, or a larger gravity.softening{adaptive}"


def rounded_down(value: float) -> float:
    """Return a positive number rounded down to one digit; another one as it is."""
    if not 0 < value < math.inf:
        return value
    power = math.floor(math.log10(value))
    return float(f"{math.floor(value / 10.0**power + 1e-9)}e{power}")
