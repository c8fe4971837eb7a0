"""Sharing what is written among the ranks: each writes about as many rows, whatever it owns."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.downloads import Download, OnHost
from hybrid_nbody.errors import FileError
from hybrid_nbody.files.parts import share_of
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import WantedRows, redistribute, rows_of_others, slabs
from hybrid_nbody.simulation.model import Field

SHARED_BYTES = 32 << 20
"""Bytes from which every rank writes a share; less than that the root writes alone."""

POLL_SECONDS = 0.005
"""Seconds between two looks at whether other ranks have written their files."""


def is_shared(fields: Iterable[Field], communicator: Communicator) -> bool:
    """Return whether all ranks write some fields, rather than the root alone."""
    total = sum(field.total_bytes for field in fields)
    return communicator.size > 1 and total >= SHARED_BYTES


def own_share(field: Field, communicator: Communicator) -> Download:
    """Begin a copy of the rows of a field that this rank writes; collective.

    Those that it owns come from its device later, if the field offers that.
    """
    wanted = own_rows(field, communicator)
    start = field.start
    part = rows_of_others(field, wanted, communicator) if start else None
    if not start or part is None:
        return OnHost(redistribute(field, wanted, communicator))
    return Share(part, start() if part.has_own else None)


def own_rows(field: Field, communicator: Communicator) -> slice:
    """Return the global rows of a field that this rank writes."""
    return share_of(field.shape[0], communicator.rank, communicator.size)


class Share(Download):
    """The rows that a rank writes, of which its own are on their way from its device.

    Parameters
    ----------
    part : WantedRows
        Those of other ranks are there.
    copy : Download or None
        Of all rows that this rank owns; None if it writes none of them.
    """

    def __init__(self, part: WantedRows, copy: Download | None) -> None:
        self.nbytes = part.rows.nbytes
        self._part = part
        self._copy = copy
        self._rows = part.rows

    def rows(self) -> NDArray[Any]:
        """See `Download`; the copy is dropped once it is on the host."""
        if self._copy is not None:
            self._rows = self._with_own(self._copy.rows()[self._part.own])
            self._copy = None
        return self._rows

    def _with_own(self, own: NDArray[Any]) -> NDArray[Any]:
        """Return the rows with those that this rank owns."""
        part = self._part
        if len(own) == len(part.rows):
            return own
        part.rows[part.place] = own
        return part.rows


def all_on_root(field: Field, communicator: Communicator) -> Download:
    """Begin a copy of all rows of a field on the root, and of none elsewhere; collective."""
    if communicator.size == 1 and isinstance(field.index, slice) and field.start:
        return field.start()
    shape = field.shape if communicator.is_root else (0, *field.shape[1:])
    whole = np.empty(shape, field.dtype)
    for start, rows in slabs(field, communicator):
        whole[start : start + len(rows)] = rows
    return OnHost(whole)


def begin_on_root(field: Field, communicator: Communicator) -> Callable[[], Download]:
    """Begin a copy of this rank's rows; return what does the rest of `all_on_root`.

    Both are collective; devices go on between them.
    """
    if communicator.size == 1:
        copy = all_on_root(field, communicator)
        return lambda: copy
    if field.gather:
        gathered = field.gather()
        return lambda: gathered
    return partial(all_on_root, held(field), communicator)


def held(field: Field) -> Field:
    """Return a field as it is now: begin a copy of this rank's rows, or make one."""
    copy = field.start() if field.start else OnHost(field.host(0, field.rows))
    rows = cache(copy.rows)
    return replace(field, host=lambda first, last: rows()[first:last])


class OtherRanks:
    """Waits, in a thread without MPI, until the other ranks have put their files in place."""

    def __init__(self) -> None:
        self._given_up = threading.Event()

    def wait_for(self, paths: Sequence[Path]) -> None:
        """Return once there are all of some files.

        Raises
        ------
        FileError
            The run has given up: a rank has failed.
        """
        while not all(path.exists() for path in paths):
            if self._given_up.wait(POLL_SECONDS):
                raise FileError(f"{paths[0]}: a rank has failed before it wrote its share")

    def give_up(self) -> None:
        """Let all that wait fail from now on."""
        self._given_up.set()
