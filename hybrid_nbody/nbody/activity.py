"""The activity map: how many bodies are in each cell of the unit square, written with the frames."""

import numpy as np

from hybrid_nbody.nbody.kernels import make_counter
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.simulation.model import Field, Role


class ActivityMap:
    """The map of all ranks' bodies, each rank the owner of some of its rows.

    A cell holds D / N times the number of bodies in it, of N bodies in all and D cells along a side
    of the square.

    Parameters
    ----------
    backend : Backend
        This rank's device, which counts.
    communicator : Communicator
        All ranks.
    cells : int
        Cells along each side, D.
    number : int
        Bodies of all ranks, N.
    """

    def __init__(self, backend, communicator, cells: int, number: int):
        self.communicator = communicator
        self.cells = cells
        self.number = number
        self.counter = make_counter(backend, cells)
        self.own = Partition.equal(cells, communicator.size).share(communicator.rank)
        self.counts = np.zeros((cells, cells), np.int32)

    def update(self, position) -> None:
        """Count anew; all ranks call together, each with the positions of its own bodies on its device."""
        counts = self.counter.count(position)
        self.counts = self.communicator.sum(counts) if self.communicator.size > 1 else counts

    def field(self) -> Field:
        """Return the map as frames show it."""
        return Field(
            name="activity/map",
            shape=(self.cells, self.cells),
            dtype=np.dtype("f8"),
            units="1",
            description=f"bodies in each cell (y, x) of the unit square, times {self.cells} / {self.number}",
            index=self.own,
            host=self._rows,
            role=Role.SHOWN,
        )

    def _rows(self, start, stop):
        """Return some of this rank's rows."""
        return self.counts[self.own][start:stop].astype("f8") * self.cells / self.number
