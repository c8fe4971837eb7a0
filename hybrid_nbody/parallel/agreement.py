"""Ranks that find out whether all of them make the same call, before they make it."""

import atexit
import time
from typing import Any

import numpy as np

from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.waiting import LostRankError, wait

NAME_BYTES = 64
"""Of the name of a call, at most."""

LEAVING = 1
"""Tag of the message of a rank whose program ends."""

GRACE_SECONDS = 1.0
"""How long a call may take to complete after a rank has left."""


class Agreement:
    """Lets ranks fail with a message where one makes a call that others do not.

    Without it a call of all ranks would wait for ever for one that has ended its program, or that
    makes another call.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Of several ranks; all of them call together.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm.Dup()
        self._left: float | None = None  # when a rank was first seen to have left
        self._parting: list[Any] = []
        atexit.register(self._leave)

    def on(self, call: str) -> None:
        """Return if all ranks make a call of this name.

        Raises
        ------
        InputError
            On every rank, if some make another call.
        LostRankError
            On this rank, if another one has ended its program.
        """
        own = np.zeros(NAME_BYTES, np.uint8)
        name = call.encode()[:NAME_BYTES]
        own[: len(name)] = np.frombuffer(name, np.uint8)
        names = np.empty((self.comm.size, NAME_BYTES), np.uint8)
        request = self.comm.Iallgather(own, names)
        wait(request, f"the call of {call}", look=lambda: self._look(call))
        different = np.flatnonzero((names != names[0]).any(axis=1))
        if len(different):
            other = int(different[0])
            raise InputError(
                f"rank 0 calls {_text(names[0])} while rank {other} calls {_text(names[other])}: "
                "all ranks together make each call"
            ).on_all_ranks()

    def _look(self, call: str) -> None:
        """Find out whether a rank has left, for which this one would wait in vain."""
        from mpi4py import MPI

        status = MPI.Status()
        if not self.comm.Iprobe(source=MPI.ANY_SOURCE, tag=LEAVING, status=status):
            return
        now = time.monotonic()
        self._left = self._left or now
        if now - self._left > GRACE_SECONDS:
            raise LostRankError(
                f"rank {self.comm.rank} calls {call}, but rank {status.source} has ended its "
                "program: all ranks together make each call"
            )

    def _leave(self) -> None:
        """Tell the other ranks that the program of this one ends, unless it has ended MPI."""
        from mpi4py import MPI

        if MPI.Is_finalized():
            return
        others = [rank for rank in range(self.comm.size) if rank != self.comm.rank]
        self._parting = [self.comm.Isend(b"", dest=rank, tag=LEAVING) for rank in others]


def _text(name: Any) -> str:
    """Return the name of a call."""
    return bytes(name).rstrip(b"\0").decode(errors="replace")
