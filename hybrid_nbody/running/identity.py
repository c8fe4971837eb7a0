"""What tells runs of equal configurations apart: a digest of some of the state they begin with.

A file of bodies may have been replaced between two runs of one configuration.
"""

import hashlib

import numpy as np

from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import multiples, row_numbers
from hybrid_nbody.simulation.model import SAVED_ROLES, Field, Model, fields_of

MOST_ROWS = 64
MOST_BYTES = 1 << 16
"""Rows of a field that are looked at, and about how many bytes of it."""


def start_of(model: Model, communicator: Communicator) -> str:
    """Return a digest of some rows of a state, the same on any number of ranks; collective.

    Parameters
    ----------
    model : Model
        At its first step.
    communicator : Communicator
        Its ranks.
    """
    own = sum(_number_of(field) for field in fields_of(model, *SAVED_ROLES))
    total = sum(communicator.gather(own))
    return f"{total % (1 << 64):016x}"


def _number_of(field: Field) -> int:
    """Return the sum of the digests of this rank's chosen rows, in whatever order they are."""
    most = max(1, min(MOST_ROWS, MOST_BYTES // max(field.row_bytes, 1)))
    step = max(1, -(-field.shape[0] // most))
    mine = row_numbers(multiples(step, field.index))
    places = field.global_rows(mine)
    return sum(
        _digest(field, int(row), int(place)) for row, place in zip(mine, places, strict=True)
    )


def _digest(field: Field, row: int, place: int) -> int:
    """Return the digest of a row as a number."""
    digest = hashlib.sha256(f"{field.name} {place} ".encode())
    digest.update(np.ascontiguousarray(field.host(row, row + 1)).tobytes())
    return int.from_bytes(digest.digest()[:8], "little")
