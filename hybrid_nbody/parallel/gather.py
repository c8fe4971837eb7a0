"""Bringing a distributed array to the root, slab by slab."""

from collections.abc import Callable, Iterator

import numpy as np

from hybrid_nbody.parallel.waiting import wait

SLAB_BYTES = 4 << 20
"""Most bytes of another rank's rows that the root holds at a time."""

TAG = 7


def slabs(field, communicator) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the rows of a distributed array on the root, in global order.

    The root never holds more than one slab of `SLAB_BYTES` (or one row, if that is larger) beyond
    its own share: every other rank sends its rows in pieces of that size, and the next piece is
    received when the root asks for it.

    Parameters
    ----------
    field : Field
        The array; every rank calls with its own part.
    communicator : Communicator
        Every rank calls together and runs the iterator to its end.

    Yields
    ------
    start : int
        Global index of the first row; only the root is given anything.
    rows : numpy.ndarray
        Consecutive rows, valid until the next one is asked for.
    """
    shares = communicator.gather_integers(field.start, field.rows).tolist()
    step = max(1, SLAB_BYTES // max(field.row_bytes, 1))
    room = (
        np.empty((min(step, field.shape[0]), *field.shape[1:]), field.dtype)
        if communicator.is_root
        else None
    )
    for rank, (start, rows) in enumerate(shares):
        for first in range(0, rows, step):
            last = min(first + step, rows)
            slab = _move(field, communicator, rank, first, last, room)
            if communicator.is_root:
                yield start + first, slab


def _move(field, communicator, rank, first, last, room):
    """Return rows first … last - 1 of `rank` on the root; None elsewhere."""
    if communicator.rank == rank:
        slab = np.ascontiguousarray(field.host(first, last), dtype=field.dtype)
        if communicator.is_root:
            return slab
        wait(communicator.comm.Isend(slab, dest=0, tag=TAG))
    elif communicator.is_root:
        slab = room[: last - first]
        wait(communicator.comm.Irecv(slab, source=rank, tag=TAG))
        return slab
    return None


def write_slabs(field, communicator, write: Callable[[int, np.ndarray], None]) -> None:
    """Call ``write(start, rows)`` on the root for every slab of a distributed array."""
    for start, rows in slabs(field, communicator):
        write(start, rows)
