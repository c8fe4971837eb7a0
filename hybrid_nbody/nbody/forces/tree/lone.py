"""A tree over the bodies of a rank that owns all of them, on its device."""

import numpy as np

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.kernels.cube import cube_around
from hybrid_nbody.nbody.kernels.whole_tree import WholeTree
from hybrid_nbody.nbody.step_timer import Timer


class LoneTree:
    """Sums over the bodies of one rank.

    Parameters
    ----------
    tree : WholeTree
        The tree on the device.
    backend : Backend
        The device.
    """

    def __init__(self, tree: WholeTree, backend: Backend) -> None:
        self.tree = tree
        self.backend = backend

    def sums(self, bodies: Array, potentials: bool, timer: Timer) -> Array:
        """Return the sums at all bodies; see `DistributedTree.sums`."""
        lowest, highest = self.tree.box(bodies)
        if not np.isfinite(highest - lowest).all():  # the guard names the body
            return self.backend.xp.full((len(bodies), 1 if potentials else 3), np.nan)
        sums = self.tree.sums(bodies, cube_around(lowest, highest), potentials)
        timer.record("force")
        return sums
