"""One rank where no MPI library can be loaded: what MPI would do for a process by itself."""

from types import SimpleNamespace
from typing import Any, Self, TypeVar

import numpy as np

T = TypeVar("T")

CONSTANTS = SimpleNamespace(IN_PLACE=None, COMM_TYPE_SHARED=None, MAX=None, MIN=None, SUM=None)
"""In the place of the module ``mpi4py.MPI``: of one value the greatest, the least and the sum are
the same.
"""


class Done:
    """A request that is complete."""

    def Test(self) -> bool:
        """Return that it is."""
        return True


DONE = Done()


class OneRank:
    """Stands in for a communicator of mpi4py with one rank.

    It has what `Communicator` and the transports call; a rank sends itself no messages.
    """

    rank = 0
    size = 1

    def Split(self, color: int = 0, key: int = 0) -> Self:
        """Return the ranks of a group: this one."""
        return self

    def Split_type(self, kind: Any, key: int = 0) -> Self:
        """Return the ranks that share memory: this one."""
        return self

    def bcast(self, value: T) -> T:
        """Return the value of the only rank."""
        return value

    def allgather(self, value: T) -> list[T]:
        """Return the values of all ranks."""
        return [value]

    def Ibarrier(self) -> Done:
        """Wait for no one."""
        return DONE

    def Ibcast(self, buffer: Any, root: int = 0) -> Done:
        """Leave what the only rank has."""
        return DONE

    def Iallgather(self, own: Any, received: Any) -> Done:
        """Receive what the only rank sends."""
        return _received(own, received)

    def Iallgatherv(self, own: Any, received: Any) -> Done:
        """Receive what the only rank sends."""
        return _received(own, received[0])

    def Iallreduce(self, own: Any, received: Any, op: Any = None) -> Done:
        """Receive what the only rank sends."""
        return _received(own, received)

    def Ireduce_scatter(self, own: Any, received: Any, counts: Any, op: Any = None) -> Done:
        """Receive what the only rank sends."""
        return _received(own, received)


def _received(own: Any, received: Any) -> Done:
    """Copy what is sent, unless it is where it is received (``IN_PLACE``)."""
    if own is not CONSTANTS.IN_PLACE:
        received.reshape(-1)[:] = np.reshape(own, -1)
    return DONE
