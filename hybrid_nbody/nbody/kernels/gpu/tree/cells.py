"""From bodies to the cells of a tree on one GPU."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.nbody.kernels.expansions import MANY, Expansion, limits_of, width_of_cells
from hybrid_nbody.nbody.kernels.gpu.tree.curve import Curve
from hybrid_nbody.nbody.kernels.gpu.tree.launches import THREADS, Launches
from hybrid_nbody.nbody.kernels.gpu.tree.memory import LEVELS
from hybrid_nbody.nbody.kernels.share import Share

SCANNERS = 1024
"""Threads that add up what blocks have counted."""


class Starts(NamedTuple):
    """The cells that start at the bodies of this rank.

    Attributes
    ----------
    above : (N,) array of int8
        The level of the last cell that holds a body and the one before it.
    leaf : (N,) array of uint8
        The level of each body's leaf.
    before : (L, B) array of int32
        How many cells of a level start at bodies before each block of `THREADS` of them.
    """

    above: Array
    leaf: Array
    before: Array


class PartLevels(NamedTuple):
    """The parts of a rank on its device.

    Attributes
    ----------
    number : int
    ends : (R,) array of int32
        Where they end, counted from this rank's first body.
    levels : (R,) array of uint8
    """

    number: np.int32
    ends: Array
    levels: Array


class CellMaker:
    """Makes the cells of a tree.

    Parameters
    ----------
    backend : GpuBackend
    launches : Launches
    expansion : Expansion
    eps2 : float
        The softening length squared, in units of the kernels.
    mass : float
        Of all bodies.
    """

    def __init__(
        self,
        backend: GpuBackend,
        launches: Launches,
        expansion: Expansion,
        eps2: float,
        mass: float,
    ) -> None:
        self.backend = backend
        self.launches = launches
        self.memory = launches.memory
        self.expansion = expansion
        self.eps2 = eps2
        self.mass = mass

    def set_limits(self, number: int, known: bool) -> None:
        """Set when expansions of all bodies are accurate enough, and how wide cells may be."""
        limits = limits_of(self.expansion, known, number)
        width = 0.0
        if number > MANY:
            width = width_of_cells(self.expansion, limits.error, self.mass)
        self.memory.set_limits(self.eps2, limits, width)

    def starts_memory(self, number: int) -> Starts:
        """Return memory for the cells that start at a number of bodies."""
        xp = self.backend.xp
        blocks = -(-number // THREADS)
        return Starts(
            xp.empty(number, "i1"), xp.empty(number, "u1"), xp.empty((LEVELS + 1, blocks), "i4")
        )

    def parts_of(self, share: Share) -> PartLevels:
        """Return the parts of a share on the device."""
        ends = self.backend.upload(share.part_ends.astype(np.int32))
        levels = self.backend.upload(share.part_levels.astype(np.uint8))
        return PartLevels(np.int32(len(share.part_ends)), ends, levels)

    def find_starts(
        self, bodies: Array, curve: Curve, parts: PartLevels, shared: int, starts: Starts
    ) -> None:
        """Find the cells that start at bodies, and report how many do so on each level."""
        number, columns = bodies.shape
        argument = self.memory.argument
        rows = (curve.keys, bodies, np.int32(columns), curve.order)
        divided = (*parts, np.int32(shared))
        arguments = (argument, np.int32(number), *rows, *divided, *starts)
        self.launches.on_bodies("find_levels", number, *arguments)
        blocks = np.int32(starts.before.shape[1])
        threads = len(starts.before) * SCANNERS
        module = self.launches.modules["cells"]
        module.launch("scan_levels", threads, SCANNERS, argument, blocks, starts.before)

    def number_cells(self) -> None:
        """Number the cells of a rank that has all bodies."""
        self.launches.modules["cells"].launch("number_cells", 1, 1, self.memory.argument)

    def make(self, number: int, starts: Starts) -> None:
        """Fill the cells that start at a number of bodies of this rank."""
        self.launches.on_bodies("make_cells", number, self.memory.argument, *starts)

    def sort_bodies(self, bodies: Array, curve: Curve) -> None:
        """Put the bodies of this rank in their order along the curve."""
        number, columns = bodies.shape
        order = (np.int32(columns), bodies, curve.order)
        self.launches.on_bodies("sort_bodies", number, self.memory.argument, *order)

    def child_bounds(
        self, curve: Curve, first: NDArray[np.int32], last: NDArray[np.int32], level: int
    ) -> NDArray[np.int32]:
        """Return where the octants of C cells of a level begin, and where they end, (C, 9)."""
        number = len(first)
        bounds = self.backend.xp.empty((number, 9), "i4")
        cells = self.backend.upload(np.stack([first, last]))
        arguments = (curve.keys, cells[0], cells[1], np.int32(level), bounds)
        size = np.int32(number)
        self.launches.on_bodies("find_child_bounds", number, size, *arguments, module="sharing")
        found: NDArray[np.int32] = self.backend.download(bounds)
        return found
