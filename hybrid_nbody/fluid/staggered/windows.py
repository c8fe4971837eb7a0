"""Planes of other ranks that paths reach: windows of a field, deeper than its halo.

Only the planes near the ends of a slab have paths that leave it. They see windows of these ends;
all others see the field itself. A slab too thin for that has one window of all its planes.
"""

from dataclasses import dataclass

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.fluid.staggered.grid import Grid, common
from hybrid_nbody.parallel.exchange.halo import HaloExchange, Window
from hybrid_nbody.parallel.partition import Partition

BEYOND = 2
"""Planes that interpolation reads beyond the end of a path, on a staggered field. With fewer, paths
would be near the end of a window that are not near one of the box (`cells.advection.room`), and
ranks would round them differently."""

FAR = 1 << 20
"""Planes from any window to an end that an axis does not have."""


def is_thin(planes: int, depth: int) -> bool:
    """Return whether a slab has one window: those of its ends would hold more planes."""
    return planes < 4 * depth - 2


def planes_in_windows(planes: int, depth: int) -> int:
    """Return the planes of all windows of a slab that has other planes at both ends."""
    return planes + 2 * depth if is_thin(planes, depth) else 2 * (3 * depth - 1)


@dataclass(frozen=True)
class Section:
    """Planes of a slab whose paths see the same planes of fields.

    Attributes
    ----------
    start, stop : int
        The planes, counted as in an array of the grid.
    origin : int
        The first plane that they see, which is the first one of a window.
    planes : int
        How many they see; 0: those of the field itself.
    """

    start: int
    stop: int
    origin: int = 0
    planes: int = 0

    def part_of(self, region: Region) -> Region | None:
        """Return the elements of a region in these planes; None if there are none."""
        return common(region, (self.start, self.stop, *region[2:]))


class Windows:
    """Makes windows of fields.

    Where z is not periodic, the outermost planes of the box have ghosts beyond them, which travel
    with them.

    Parameters
    ----------
    grid : Grid

    Attributes
    ----------
    needed : bool
        Whether fields alone do not do: there are other ranks, or z is periodic. In the latter case
        paths must not be wrapped, which would round them in another way than on several ranks.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.halo = grid.halo
        self.below, self.above = (int(end) for end in grid.ends)
        self.needed = grid.periodic[2] or not grid.halo.alone
        if isinstance(grid.halo, HaloExchange) and not grid.periodic[2]:
            self.halo = self._with_ghosts(grid.halo)

    def _with_ghosts(self, halo: HaloExchange) -> HaloExchange:
        """Return an exchange of planes in which ghosts beyond the box belong to the outer ranks."""
        offsets = [offset + 1 for offset in halo.partition.offsets]
        offsets[0] = 0
        offsets[-1] += 1
        partition = Partition(tuple(offsets))
        return HaloExchange(halo.transport, partition, halo.communicator, False)

    def depth(self, cells: float) -> int:
        """Return the planes that a window has beyond each end, for paths of some cells."""
        most = self.grid.cells[2]
        return BEYOND + (int(cells) + 1 if cells < most else most)

    def sections(self, depth: int) -> tuple[Section, ...]:
        """Return the sections of the slab, from below."""
        planes = self.grid.planes
        if not self.needed:
            return (Section(0, planes + 2),)
        if is_thin(planes, depth):
            own = planes + self.below + self.above
            return (Section(0, planes + 2, 1 - self.below - depth, own + 2 * depth),)
        start = 0 if self.below else depth
        stop = planes + 2 if self.above else planes + 2 - depth
        low = Section(0, start, 1 - depth, 3 * depth - 1)
        high = Section(stop, planes + 2, planes + 2 - 2 * depth, 3 * depth - 1)
        found = (low, Section(start, stop), high)
        return tuple(section for section in found if section.start < section.stop)

    def empty(self, depth: int) -> tuple[Array, ...]:
        """Return an array for the window of each section; it has no planes where there is none."""
        _, rows, columns = self.grid.shape
        zeros = self.grid.backend.zeros
        shapes = [(section.planes, rows, columns) for section in self.sections(depth)]
        return tuple(zeros(shape, self.grid.dtype) for shape in shapes)

    def of(self, array: Array, depth: int, memory: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return what the paths of each section see of a field.

        Parameters
        ----------
        array : array
            Its ghosts are valid.
        depth : int
        memory : tuple of array
            Of `empty`.
        """
        if not self.needed:
            return (array,)
        sections = self.sections(depth)
        ends = [
            Window(section.origin + self.below - 1, window)
            for section, window in zip(sections, memory, strict=True)
            if section.planes
        ]
        own = array[1 - self.below : len(array) - 1 + self.above]
        self.halo.windows(own, depth, ends)
        pairs = zip(sections, memory, strict=True)
        return tuple(window if section.planes else array for section, window in pairs)
