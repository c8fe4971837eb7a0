"""Handing the root's arrays out to the ranks."""

import numpy as np


def scatter_rows(array, shape, dtype, partition, communicator) -> np.ndarray:
    """Return this rank's rows of the root's `array` of `shape`; other ranks pass None."""
    width = int(np.prod(shape[1:], dtype=int))
    counts = [count * width for count in partition.counts]
    rows = np.empty((partition.counts[communicator.rank], *shape[1:]), dtype)
    source = [np.ascontiguousarray(array, dtype), counts] if communicator.is_root else None
    communicator.comm.Scatterv(source, rows)
    return rows


def broadcast_array(array, shape, dtype, communicator) -> np.ndarray:
    """Return the root's `array` of `shape` on every rank; other ranks pass None."""
    result = np.ascontiguousarray(array, dtype) if communicator.is_root else np.empty(shape, dtype)
    communicator.comm.Bcast(result)
    return result
