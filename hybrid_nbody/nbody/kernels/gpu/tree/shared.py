"""A tree over all bodies that each GPU of one host has whole, for its share of the sums.

GPUs share the rows of bodies and the sums in each other's memory. All of them sort the bodies and
make the cells: with few bodies that takes less time than messages between the ranks.
"""

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.kernels.gpu.peer_rows import PeerRows
from hybrid_nbody.nbody.kernels.gpu.tree.launches import LANES
from hybrid_nbody.nbody.kernels.gpu.tree.memory import LEVELS, SHARE
from hybrid_nbody.nbody.kernels.gpu.tree.passes import Counts, number_of
from hybrid_nbody.nbody.kernels.gpu.tree.whole import (
    BodyMemory,
    TreeOfAllBodies,
    WholeTree,
    with_headroom,
)

COLUMNS = 5
"""Numbers of a body: its position, mass and last acceleration."""

ACCELERATION = 4
"""The column of the last acceleration."""

UNKNOWN = 1.0
"""A last acceleration that there is not yet."""


class SharedTree(TreeOfAllBodies):
    """Sums over all bodies on several GPUs; see `hybrid_nbody.nbody.kernels.device_tree.TreeShare`.

    Parameters
    ----------
    whole : WholeTree
        What makes the cells, and adds the sums.
    peers : PeerRows
        The rows of all ranks' bodies.
    number : int
        Of all bodies.
    pairs_of_a_source : float
        How many pairs of bodies a source of an expansion takes as long as.

    Attributes
    ----------
    most_taken : (L,) array of int64
        Cells of each level whose sources are found that there is memory for.
    """

    def __init__(
        self, whole: WholeTree, peers: PeerRows, number: int, pairs_of_a_source: float
    ) -> None:
        super().__init__(whole.backend, whole.curves, whole.maker, whole.passes)
        self.launches = self.passes.launches
        self.peers = peers
        self.pairs_of_a_source = pairs_of_a_source
        self.most_taken: Counts = np.zeros(LEVELS + 1, np.int64)
        self.rows = self.backend.xp.empty((number, COLUMNS), "f8")  # which other ranks fill, too
        self.cuts = self.backend.zeros(peers.ranks + 1, "i4")
        self.bounds = self.backend.zeros(peers.ranks + 1, "i4")
        self._known = False

    # ---- A force ---------------------------------------------------------------------------------

    def cut(self, cuts: NDArray[np.int64]) -> None:
        """Let the shares of ranks begin at other bodies along the curve."""
        self.cuts[:] = self.backend.upload(cuts.astype(np.int32))

    def collect(self, bodies: Array) -> None:
        """Share the rows of bodies with the other ranks."""
        self._known = bodies.shape[1] == COLUMNS
        self._set_own(self.rows[self.peers.own], bodies)
        self.peers.push(self.rows)

    def _set_own(self, own: Array, bodies: Array) -> None:
        """Fill this rank's rows; before the first force there are no last accelerations."""
        if not self._known:
            own[:, :ACCELERATION] = bodies
            own[:, ACCELERATION] = UNKNOWN
        elif len(own):
            self.backend.copy(bodies, own)

    def add_up(self, potentials: bool) -> None:
        """Sum the forces on the bodies of this rank's share."""
        self._sum(self.rows, self._provide(self.rows, self._known), potentials)

    def gather(self, potentials: bool) -> Array:
        """Return the sums at this rank's bodies, in their order, until the next call."""
        assert self._arrays, "`add_up` comes first"
        result = self._arrays.result(potentials)
        places = self._arrays.curve.places
        sums = self.peers.addresses(self.memory.arrays["sums"])
        self.passes.find_places(self._arrays.curve.curve.order, places)
        self.peers.wait()
        sizes = (np.int64(result.size), np.int32(result.shape[1]))
        where = (np.int32(self.peers.own.start), *sizes, places, self.bounds, sums)
        given = (self.memory.argument, *where, result)
        self.launches.on_bodies("gather_sums", result.size, *given, module="sharing")
        return result

    def work(self, pieces: int) -> NDArray[np.float64]:
        """Return the work for the bodies of this rank's share in each piece of the curve."""
        xp = self.backend.xp
        bodies = -(-len(self.rows) // pieces)
        work = xp.zeros(bodies * pieces, "f8")
        given = (np.float64(self.pairs_of_a_source), work)
        self.launches.on_own_cells("sharing", "count_work", number_of(self.taken), *given)
        counted: NDArray[np.float64] = self.backend.download(work.reshape(pieces, -1).sum(axis=1))
        return counted

    # ---- This rank's share -----------------------------------------------------------------------

    @property
    def taken(self) -> Counts:
        """Return how many cells of each level hold bodies of this rank's share, or more."""
        return self.most_taken

    def _number_of_results(self, number: int) -> int:
        """Return the number of this rank's bodies."""
        return int(self.peers.own.stop) - int(self.peers.own.start)

    def _take_share(self) -> None:
        """Find the cells of this rank's share."""
        numbers = (np.int32(self.peers.rank), np.int32(self.peers.ranks))
        arguments = (self.memory.argument, *numbers, self.cuts, self.bounds)
        self.launches.modules["sharing"].launch("take_share", LANES, LANES, *arguments)

    def _bring_back(self, arrays: BodyMemory, potentials: bool) -> None:
        """Leave them where they are: `gather` waits for those of all ranks."""

    def _fits(self) -> bool:
        """Return whether there was memory for all cells and lists; provide it if not."""
        if not super()._fits():
            return False
        found = self._report[SHARE:]
        if (found <= self.most_taken).all():
            return True
        self.most_taken = np.maximum(self.most_taken, with_headroom(found))
        self.memory.numbers["most_taken"] = self.most_taken
        self._fit_cells()
        return False
