"""The activity map: the bodies in each cell of the unit square, written with the frames."""

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.kernels import make_counter
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.simulation.model import Field, Role


class ActivityMap:
    """The map of all ranks' bodies; each rank owns some of its rows.

    A cell holds D / N times the number of bodies in it, where N counts all bodies and D the cells
    along a side of the square.

    Parameters
    ----------
    backend : Backend
        This rank's device.
    communicator : Communicator
        All ranks.
    cells : int
        Cells along each side, D.
    number : int
        Bodies of all ranks, N.
    """

    def __init__(
        self, backend: Backend, communicator: Communicator, cells: int, number: int
    ) -> None:
        self.communicator = communicator
        self.cells = cells
        self.number = number
        self.counter = make_counter(backend, cells)
        self.own = Partition.equal(cells, communicator.size).share(communicator.rank)
        self.counts = np.zeros((cells, cells), np.int32)

    def update(self, position: Array) -> None:
        """Count the bodies of all ranks anew.

        Parameters
        ----------
        position : (n, 3) array of float64
            Of this rank's bodies, on its device; all ranks call together.
        """
        counts = self.counter.count(position)
        self.counts = self.communicator.sum(counts) if self.communicator.size > 1 else counts

    def field(self) -> Field:
        """Return the map as frames show it."""
        scale = f"{self.cells} / {self.number}"
        description = f"bodies in each cell (y, x) of the unit square, times {scale}"
        return Field(
            name="activity/map",
            shape=(self.cells, self.cells),
            dtype=np.dtype("f8"),
            units="1",
            description=description,
            index=self.own,
            host=self._rows,
            role=Role.SHOWN,
        )

    def _rows(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return rows start … stop - 1 of this rank."""
        return self.counts[self.own][start:stop].astype("f8") * self.cells / self.number
