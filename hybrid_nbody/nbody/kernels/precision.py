"""The three precisions of the pair force, and the chunks in which sources are summed; shared by the twins."""

from dataclasses import dataclass

import numpy as np

CHUNK = 256
"""Sources in a chunk: stored about one local origin, summed in the working type, then added up in float64."""


@dataclass(frozen=True)
class Precision:
    """How a pair force is computed.

    Attributes
    ----------
    name : str
        As in ``gravity.precision``.
    stored : type
        Type in which a source's offset from the origin of its chunk is kept.
    working : type
        Type in which an interaction is computed.
    sorted : bool
        Whether sources are sorted along a space-filling curve, so that a chunk's origin is near its bodies: the rounding of
        a stored offset is relative to its length.
    """

    name: str
    stored: type
    working: type
    sorted: bool


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision("single", np.float32, np.float32, sorted=True),
        Precision("mixed", np.float64, np.float32, sorted=False),
        Precision("double", np.float64, np.float64, sorted=False),
    )
}


def chunk_count(number: int) -> int:
    """Return the number of chunks that `number` sources fill; the last may be partly filled."""
    return -(-number // CHUNK)
