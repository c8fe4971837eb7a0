"""Moving the rows of distributed arrays: to the root, from the root, and between owners.

A rank's `index` says which global rows it holds: a slice where they are consecutive, else an int64
array in the order in which the rank holds them. Every global row has exactly one owner.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.waiting import wait

Rows = NDArray[Any]
"""Rows of an array on the host."""

Index = slice | NDArray[np.int64]
"""Global rows: a slice with its start and stop, or their numbers in any order."""

SLAB_BYTES = 4 << 20
"""Most bytes of another rank's rows that the root receives at a time."""

GATHER_TAG = 7
"""Tag of messages to the root."""

REDISTRIBUTE_TAG = 8
"""Tag of messages between owners."""

GATHER = "a gather of rows to the root"
REDISTRIBUTION = "a redistribution of rows"

SCATTERED = -1
"""Stands for the first row of an index that is an array, where ranks compare their indices."""


class DistributedArray(Protocol):
    """The part of a `Field` that is needed to move its rows; see there."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def index(self) -> Index: ...

    @property
    def rows(self) -> int: ...

    @property
    def row_bytes(self) -> int: ...

    @property
    def host(self) -> Callable[[int, int], Rows]: ...


def row_numbers(index: Index) -> NDArray[np.int64]:
    """Return the numbers of the rows of an index, in one piece of memory."""
    if isinstance(index, slice):
        return np.arange(index.start, index.stop, index.step)
    return np.ascontiguousarray(index, np.int64)


def multiples(step: int, index: Index) -> Index:
    """Return which of a rank's rows have global numbers that are multiples of one.

    Parameters
    ----------
    step : int
        That number.
    index : slice or array
        The rank's rows.
    """
    if isinstance(index, slice):
        return slice(-index.start % step, index.stop - index.start, step)
    return np.flatnonzero(index % step == 0)


def slab_rows(row_bytes: int) -> int:
    """Return the number of rows of a slab, at least one."""
    return max(1, SLAB_BYTES // max(row_bytes, 1))


# --- to the root ----------------------------------------------------------------------------------


def slabs(field: DistributedArray, communicator: Communicator) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of a distributed array on the root, in pieces that hold each row once.

    Beyond its own share the root never holds more than one slab of `SLAB_BYTES` (or one row, if
    that is larger): every other rank sends its rows in pieces of that size, and the next piece is
    received when the root asks for it. Where the index of any rank is an array, pieces are windows
    of the global array into which all ranks send: the root holds two slabs then, and every rank
    copies its own share to the host.

    Parameters
    ----------
    field : Field
        The array; every rank calls with its own part.
    communicator : Communicator
        Every rank calls together and runs the iterator to its end.

    Yields
    ------
    start : int
        Global index of the first row; nothing is yielded on ranks other than the root.
    rows : numpy.ndarray
        Consecutive rows, valid until the next piece is asked for.

    Raises
    ------
    ValueError
        On every rank, if a window has fewer or more rows on all ranks than it should.
    """
    first = field.index.start if isinstance(field.index, slice) else SCATTERED
    shares = communicator.gather_integers(first, field.rows)
    if (shares[:, 0] == SCATTERED).any():
        yield from _windows(field, communicator)
    else:
        yield from _consecutive_slabs(field, communicator, shares.tolist())


def _consecutive_slabs(
    field: DistributedArray, communicator: Communicator, shares: list[list[int]]
) -> Iterator[tuple[int, Rows]]:
    """Yield slabs of the ranks' shares (first row, number of rows), one rank after the other."""
    step = slab_rows(field.row_bytes)
    buffer = _buffer(field, communicator)
    for rank, (start, rows) in enumerate(shares):
        for first in range(0, rows, step):
            last = min(first + step, rows)
            own = _read(field, first, last) if communicator.rank == rank else None
            slab = _to_root(own, buffer[: last - first], rank, communicator)
            if slab is not None:
                yield start + first, slab


def _windows(field: DistributedArray, communicator: Communicator) -> Iterator[tuple[int, Rows]]:
    """Yield windows of consecutive rows, which the root puts together from the ranks' rows."""
    number = field.shape[0]
    edges = np.append(np.arange(0, number, slab_rows(field.row_bytes)), number)
    own = _SortedRows(field)
    counts = communicator.gather_integers(*own.counts(edges))
    if not np.array_equal(counts.sum(axis=0), np.diff(edges)):
        raise ValueError(f"{field.name}: the ranks hold too few or too many rows")
    window = _buffer(field, communicator)
    buffer = _buffer(field, communicator)
    offsets = np.empty(len(buffer), np.int64)
    for k, first in enumerate(edges[:-1].tolist()):
        last = int(edges[k + 1])
        for rank, count in enumerate(counts[:, k].tolist()):
            if count:
                mine = own.between(first, last) if communicator.rank == rank else (None, None)
                rows_of_window = _to_root(mine[0], offsets[:count], rank, communicator)
                rows = _to_root(mine[1], buffer[:count], rank, communicator)
                if communicator.is_root:
                    window[rows_of_window] = rows
        if communicator.is_root:
            yield first, window[: last - first]


class _SortedRows:
    """This rank's rows of a field, copied to the host and found by their global numbers."""

    def __init__(self, field: DistributedArray):
        numbers = row_numbers(field.index)
        self.order = np.argsort(numbers)
        self.numbers = numbers[self.order]
        self.rows = _read(field, 0, field.rows)

    def counts(self, edges: NDArray[np.int64]) -> list[int]:
        """Return the number of rows between each edge and the next."""
        return list(np.diff(np.searchsorted(self.numbers, edges)).tolist())

    def between(self, first: int, last: int) -> tuple[NDArray[np.int64], Rows]:
        """Return the rows held here of those from `first` to `last`, and their offsets."""
        start, stop = np.searchsorted(self.numbers, (first, last))
        return self.numbers[start:stop] - first, self.rows[self.order[start:stop]]

    def among(self, wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], Rows]:
        """Return the positions in `wanted` of the rows that are held here, and these rows."""
        positions = np.flatnonzero(np.isin(wanted, self.numbers))
        found = np.searchsorted(self.numbers, wanted[positions])
        return positions, self.rows[self.order[found]]


def _buffer(field: DistributedArray, communicator: Communicator) -> Rows:
    """Return memory for a slab on the root, and none elsewhere."""
    rows = min(slab_rows(field.row_bytes), field.shape[0]) if communicator.is_root else 0
    return np.empty((rows, *field.shape[1:]), field.dtype)


def _read(field: DistributedArray, first: int, last: int) -> Rows:
    """Return some of this rank's rows, counted from its first, in one piece of memory."""
    return np.ascontiguousarray(field.host(first, last), dtype=field.dtype)


def _to_root(own: Rows | None, buffer: Rows, rank: int, communicator: Communicator) -> Rows | None:
    """Return on the root what `rank` has as its `own`, received into `buffer`; None elsewhere."""
    if communicator.is_root and rank != communicator.rank:
        request = communicator.comm.Irecv(buffer, source=rank, tag=GATHER_TAG)
        wait(request, GATHER, rank)
        return buffer
    if own is not None and not communicator.is_root:
        wait(communicator.comm.Isend(own, dest=0, tag=GATHER_TAG), GATHER, 0)
        return None
    return own


# --- from the root --------------------------------------------------------------------------------


def broadcast_array(
    array: Rows | None, shape: tuple[int, ...], dtype: DTypeLike, communicator: Communicator
) -> Rows:
    """Return the root's `array` of `shape` on every rank; other ranks pass None."""
    result: Rows = np.empty(shape, dtype)
    if communicator.is_root:
        result = np.ascontiguousarray(array, dtype)
    wait(communicator.comm.Ibcast(result), "a broadcast of an array", 0)
    return result


# --- between owners -------------------------------------------------------------------------------


def redistribute(field: DistributedArray, wanted: Index, communicator: Communicator) -> Rows:
    """Return the rows `wanted` of a distributed array, whichever ranks own them.

    Parameters
    ----------
    field : Field
        The array; every rank calls with its own part.
    wanted : slice or (n,) array of int64
        Global rows that this rank asks for; those of two ranks may overlap.
    communicator : Communicator
        Every rank calls together.

    Returns
    -------
    (n, …) array
        In the order of `wanted`.
    """
    part = rows_of_others(field, wanted, communicator)
    if part is None:
        return _redistribute_scattered(field, row_numbers(wanted), communicator)
    if part.has_own:
        part.rows[part.place] = _read(field, part.own.start, part.own.stop)
    return part.rows


class WantedRows(NamedTuple):
    """The rows that a rank wants of a distributed array, its own not filled in yet.

    Attributes
    ----------
    rows : (n, …) array
        Those of other ranks are there.
    place : slice
        Where its own belong.
    own : slice
        Which of its own these are, counted from its first.
    """

    rows: Rows
    place: slice
    own: slice

    @property
    def has_own(self) -> bool:
        """Return whether any of them is this rank's own."""
        return bool(self.own.stop > self.own.start)


def rows_of_others(
    field: DistributedArray, wanted: Index, communicator: Communicator
) -> WantedRows | None:
    """Return the rows `wanted` but for those of this rank; None if a rank's are not consecutive.

    Parameters and who calls are those of `redistribute`.
    """
    limits = communicator.gather_integers(*_limits(field.index), *_limits(wanted))
    if (limits == SCATTERED).any():
        return None
    owned_by = [slice(*share) for share in limits[:, :2].tolist()]
    wanted_by = [slice(*share) for share in limits[:, 2:].tolist()]
    return _exchange_slices(field, owned_by, wanted_by, communicator)


def _limits(index: Index) -> tuple[int, int]:
    """Return the first row of an index and the one after its last; `SCATTERED` for an array."""
    return (index.start, index.stop) if isinstance(index, slice) else (SCATTERED, SCATTERED)


def _exchange_slices(
    field: DistributedArray,
    owned_by: list[slice],
    wanted_by: list[slice],
    communicator: Communicator,
) -> WantedRows:
    """Return the rows that this rank wants where all ranks own and want consecutive rows."""
    rank = communicator.rank
    owned = owned_by[rank]
    wanted = wanted_by[rank]
    result = np.empty((wanted.stop - wanted.start, *field.shape[1:]), field.dtype)
    incoming = dict(_overlaps(wanted, owned_by))
    outgoing = dict(_overlaps(owned, wanted_by))
    place = incoming.pop(rank, slice(0, 0))
    own = outgoing.pop(rank, slice(0, 0))
    comm = communicator.comm
    requests = [
        (other, comm.Irecv(result[rows], source=other, tag=REDISTRIBUTE_TAG))
        for other, rows in incoming.items()
    ]
    sent = {other: _read(field, rows.start, rows.stop) for other, rows in outgoing.items()}
    requests += [
        (other, comm.Isend(rows, dest=other, tag=REDISTRIBUTE_TAG)) for other, rows in sent.items()
    ]
    for other, request in requests:
        wait(request, REDISTRIBUTION, other)
    return WantedRows(result, place, own)


def _overlaps(rows: slice, others: list[slice]) -> Iterator[tuple[int, slice]]:
    """Yield each rank whose rows overlap `rows`, and the overlap counted from their first."""
    for rank, other in enumerate(others):
        start = max(other.start, rows.start) - rows.start
        stop = min(other.stop, rows.stop) - rows.start
        if start < stop:
            yield rank, slice(start, stop)


def _redistribute_scattered(
    field: DistributedArray, wanted: NDArray[np.int64], communicator: Communicator
) -> Rows:
    """Return the `wanted` rows in any order; each rank in turn broadcasts what it wants."""
    own = _SortedRows(field)
    result = np.empty((len(wanted), *field.shape[1:]), field.dtype)
    lengths = communicator.gather_integers(len(wanted))[:, 0].tolist()
    for receiver, length in enumerate(lengths):
        asked = wanted if receiver == communicator.rank else np.empty(length, np.int64)
        wait(communicator.comm.Ibcast(asked, root=receiver), REDISTRIBUTION, receiver)
        positions, rows = own.among(asked)
        counts = communicator.gather_integers(len(positions))[:, 0].tolist()
        if receiver == communicator.rank:
            result[positions] = rows
            _receive_scattered(result, counts, communicator)
        elif len(positions):
            for part in (positions, rows):
                request = communicator.comm.Isend(part, dest=receiver, tag=REDISTRIBUTE_TAG)
                wait(request, REDISTRIBUTION, receiver)
    return result


def _receive_scattered(result: Rows, counts: list[int], communicator: Communicator) -> None:
    """Receive rows and their positions in `result`, `counts` of them from each other rank."""
    for rank, count in enumerate(counts):
        if count and rank != communicator.rank:
            positions = np.empty(count, np.int64)
            rows = np.empty((count, *result.shape[1:]), result.dtype)
            for part in (positions, rows):
                request = communicator.comm.Irecv(part, source=rank, tag=REDISTRIBUTE_TAG)
                wait(request, REDISTRIBUTION, rank)
            result[positions] = rows
