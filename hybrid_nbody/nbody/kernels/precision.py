"""The three precisions of the pair force, and the chunks in which sources are summed; shared by the twins."""

from dataclasses import dataclass

import numpy as np

CHUNK = 256
"""Most sources in a chunk: stored about one origin, summed in the working type, then added up in float64."""


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
    local : bool
        Whether a chunk's origin is one of its bodies, which are then sorted in space
        (`hybrid_nbody.nbody.ordering`): the rounding of a stored offset is relative to its length. Otherwise the
        origin is that of the coordinates.
    """

    name: str
    stored: type
    working: type
    local: bool


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision("single", np.float32, np.float32, local=True),
        Precision("mixed", np.float64, np.float32, local=False),
        Precision("double", np.float64, np.float64, local=False),
    )
}


def chunk_capacity(number: int) -> int:
    """Return the most chunks that `number` sources can be cut into: full ones, and as many that end early."""
    return 2 * -(-number // CHUNK)
