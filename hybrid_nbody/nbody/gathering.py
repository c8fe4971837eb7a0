"""Rows of the bodies of all ranks, gathered for the root by the devices."""

from functools import cached_property

import numpy as np

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.downloads import Download, OnHost
from hybrid_nbody.nbody.forces.base import BodyExchange

NOTHING = np.empty((0, 3))


class Gathering:
    """Gathers vectors of all bodies on the device of the root; collective.

    Parameters
    ----------
    backend : Backend
        This rank's device.
    exchange : BodyExchange
        Carries the rows.
    """

    def __init__(self, backend: Backend, exchange: BodyExchange) -> None:
        self.backend = backend
        self.exchange = exchange

    @property
    def is_fast(self) -> bool:
        """Return whether rows travel between devices of one host, without the hosts of the ranks.

        Between hosts the next steps would wait for them.
        """
        return not self.exchange.alone and self.exchange.transport.peers is not None

    @cached_property
    def _rows(self) -> Array:
        """Return memory for a vector of each body, (N, 3)."""
        return self.backend.zeros((self.exchange.partition.total, 3), "f8")

    def begin(self, array: Array) -> Download:
        """Begin a copy of all ranks' rows of an array, of which others than the root get none.

        Parameters
        ----------
        array : (n, 3) array of float64
            Those of this rank.
        """
        if len(array):
            self.backend.copy(array, self._rows[self.exchange.own])
        self.exchange.collect(self._rows)
        is_root = self.exchange.rank == 0
        return self.backend.start_download(self._rows) if is_root else OnHost(NOTHING)
