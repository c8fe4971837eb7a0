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
    shares = communicator.gather_integers(owned.start, owned.stop, wanted.start, wanted.stop).tolist()
    result = np.empty((wanted.stop - wanted.start, *field.shape[1:]), field.dtype)
    requests, kept = [], []
    for rank, (start, stop, _, _) in enumerate(shares):
        theirs = _common(slice(start, stop), wanted, wanted.start)
        if rank != communicator.rank and theirs.start < theirs.stop:
            requests.append(communicator.comm.Irecv(result[theirs], source=rank, tag=TAG))
    for rank, (_, _, start, stop) in enumerate(shares):
        mine = _common(owned, slice(start, stop), owned.start)
        if mine.start < mine.stop:
            rows = np.ascontiguousarray(field.host(mine.start, mine.stop), dtype=field.dtype)
            if rank == communicator.rank:
                result[_common(owned, wanted, wanted.start)] = rows
            else:
                kept.append(rows)  # until it is sent
                requests.append(communicator.comm.Isend(rows, dest=rank, tag=TAG))
    for request in requests:
        wait(request)
    return result


def _common(first: slice, second: slice, origin: int) -> slice:
    """Return the rows of both slices, counted from `origin`."""
    return slice(max(first.start, second.start) - origin, min(first.stop, second.stop) - origin)
