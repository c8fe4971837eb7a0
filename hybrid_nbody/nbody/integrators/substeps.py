"""The lengths of the substeps of Hermite's scheme, for the host and for compiled code."""

FIRST_SUBSTEP = 0.1
"""The first substep is this fraction of ``sqrt(accuracy) |a| / |jerk|``: higher derivatives are not
known yet."""

SMALLEST_SUBSTEP = 2.0**-48
"""Fraction of a step below which a substep is lost in the rounding of time."""

CANCELLATION = 1 / 8
"""Error of any acceleration, relative to one that does not limit the substep: what rounding leaves
of larger accelerations that cancel."""

MAX_RETRIES = 1
"""A substep is retried with the length that the criterion then asks for, if that is less than half
of its own."""


def next_substep(wanted: float, left: float) -> float:
    """Return the length of the next substep: the last two share what is `left` of the step.

    It is rounded to a difference of times, so that what is left after it is exact.
    """
    if wanted >= left:
        return left
    h = left / 2 if 2 * wanted > left else wanted
    return left - (left - h)
