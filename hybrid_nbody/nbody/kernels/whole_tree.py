"""What a tree on one device offers to a rank that owns every body."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.kernels.cube import Cube


class WholeTree(Protocol):
    """Sums over all bodies by a tree of cells on one device, in units of the kernels."""

    def box(self, bodies: Array) -> NDArray[np.float64]:
        """Return the lowest and highest coordinates of one or more bodies, (2, 3), on the host.

        They are not finite if one of the coordinates is not.
        """

    def sums(self, bodies: Array, cube: Cube, potentials: bool) -> Array:
        """Return sums of m d / r^3 at all bodies, (N, 3), or of m / r, (N, 1).

        `bodies` are positions and masses, (N, 4), and the lengths of their last accelerations in a
        fifth column once there are any; `cube` is around them.
        """
