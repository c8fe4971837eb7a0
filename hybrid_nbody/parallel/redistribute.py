"""Moving the rows of a distributed array to ranks that own other ones."""

import numpy as np

from hybrid_nbody.parallel.waiting import wait

TAG = 8


def moved_rows(field, wanted: slice, communicator) -> np.ndarray:
    """Return the rows `wanted` of a distributed array, whoever owns them; every rank says which it wants.

    Parameters
    ----------
    field : Field
        The array; every rank calls with its own part.
    wanted : slice
        Global rows; those of two ranks may overlap.
    communicator : Communicator
        Every rank calls together.
    """
    owned = slice(field.start, field.start + field.rows)
    shares = communicator.gather_integers(
        owned.start, owned.stop, wanted.start, wanted.stop
    ).tolist()
    result = np.empty((wanted.stop - wanted.start, *field.shape[1:]), field.dtype)
    incoming = {
        rank: result[rows] for rank, rows in _common(wanted, [share[:2] for share in shares])
    }
    outgoing = {
        rank: _rows(field, rows) for rank, rows in _common(owned, [share[2:] for share in shares])
    }
    if communicator.rank in incoming:
        incoming.pop(communicator.rank)[:] = outgoing.pop(communicator.rank)
    requests = [
        communicator.comm.Irecv(rows, source=rank, tag=TAG) for rank, rows in incoming.items()
    ]
    requests += [
        communicator.comm.Isend(rows, dest=rank, tag=TAG) for rank, rows in outgoing.items()
    ]
    for request in requests:
        wait(request)
    return result


def _common(mine: slice, theirs):
    """Yield each rank with those of its rows (start, stop) that are among `mine`, counted from there; no empty ones."""
    for rank, (start, stop) in enumerate(theirs):
        rows = slice(max(start, mine.start) - mine.start, min(stop, mine.stop) - mine.start)
        if rows.start < rows.stop:
            yield rank, rows


def _rows(field, rows):
    """Return rows of this rank's part of a field, in one piece of memory."""
    return np.ascontiguousarray(field.host(rows.start, rows.stop), dtype=field.dtype)
