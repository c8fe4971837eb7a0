"""Sharing what is written among the ranks: each writes about as many rows, whatever it owns."""

from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from hybrid_nbody.files.parts import share_of
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import redistribute
from hybrid_nbody.simulation.model import Field

SHARED_BYTES = 32 << 20
"""Bytes from which every rank writes a share; less than that the root writes alone."""


def is_shared(fields: Iterable[Field], communicator: Communicator) -> bool:
    """Return whether all ranks write some fields, rather than the root alone."""
    total = sum(field.total_bytes for field in fields)
    return communicator.size > 1 and total >= SHARED_BYTES


def own_share(field: Field, communicator: Communicator) -> NDArray[Any]:
    """Return the rows of a field that this rank writes; collective."""
    rows = share_of(field.shape[0], communicator.rank, communicator.size)
    return redistribute(field, rows, communicator)
