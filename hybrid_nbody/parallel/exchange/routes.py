"""Rows that travel from the ranks that own them to others that need them, and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.transport.base import Transport


class Routes:
    """How many rows travel from each rank to each other one.

    Parameters
    ----------
    backend : Backend
        The device of the rows.
    transport : Transport
        Carries the rows.
    rank : int
        This rank.
    table : (S, S) array of int
        How many rows each rank sends to each rank, itself among them.
    """

    def __init__(
        self,
        backend: Backend,
        transport: Transport,
        rank: int,
        table: NDArray[Any],
    ) -> None:
        self.backend = backend
        self.transport = transport
        self.rank = rank
        self.sent: list[int] = table[self.rank].tolist()
        self.received: list[int] = table[:, self.rank].tolist()
        self.table = table

    @classmethod
    def agreed(
        cls,
        backend: Backend,
        transport: Transport,
        communicator: Communicator,
        counts: Sequence[int],
    ) -> "Routes":
        """Return the routes where a rank knows what it sends to each; every rank calls together."""
        table = communicator.gather_integers(*map(int, counts))
        return cls(backend, transport, communicator.rank, table)

    @property
    def share_away(self) -> float:
        """Return the share of the rows of all ranks that travel to another one."""
        total = int(self.table.sum())
        return 1 - int(self.table.trace()) / total if total else 0.0

    def there(self, rows: Array) -> Array:
        """Return the rows that ranks send to this one, in the order of ranks.

        Parameters
        ----------
        rows : (n, …) array
            What this rank sends, in the order of the ranks that receive it.
        """
        return self._carried(rows, self.sent, self.received)

    def back(self, rows: Array) -> Array:
        """Return what became of the rows that this rank sent; parameters as in `there`."""
        return self._carried(rows, self.received, self.sent)

    def _carried(self, rows: Array, sent: list[int], received: list[int]) -> Array:
        """Return the rows received in exchange for those sent."""
        width = rows.dtype.itemsize * int(np.prod(rows.shape[1:], dtype=int))
        result = self.backend.xp.empty((sum(received), width), "u1")
        outgoing = pieces(rows.reshape(-1).view("u1").reshape(len(rows), width), sent)
        incoming = pieces(result, received)
        others = [rank for rank in range(len(sent)) if rank != self.rank]
        messages = self.transport.begin(
            [(rank, outgoing[rank]) for rank in others if sent[rank]],
            [(rank, incoming[rank]) for rank in others if received[rank]],
            "an exchange of rows between all ranks",
        )
        incoming[self.rank][:] = outgoing[self.rank]  # while the others travel
        messages.finish()
        return result.reshape(-1).view(rows.dtype).reshape(-1, *rows.shape[1:])


def pieces(rows: Array, counts: Sequence[int]) -> list[Array]:
    """Return consecutive pieces of rows."""
    ends = np.cumsum(counts).tolist()
    return [rows[end - count : end] for end, count in zip(ends, counts, strict=True)]
