"""Advection on the staggered grid: along paths of second order, and MacCormack's correction.

Beside thin solids paths are followed from cell to cell, so that nothing is read behind them.
"""

from collections.abc import Hashable

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.fluid.staggered.ghosts import Kind
from hybrid_nbody.fluid.staggered.grid import Grid, Vector, common
from hybrid_nbody.fluid.staggered.solids import Solids
from hybrid_nbody.fluid.staggered.windows import BEYOND, FAR, Section, Windows

FIELDS = ("u", "v", "w", "source", "carried")
"""What paths see in any case."""

JUST_BELOW = 1.0 - 2.0**-10
"""What rounding makes larger does not reach 1."""

Seen = tuple[Array, ...]
"""What the paths of each section see of a field."""

WALLS = ("open_x", "open_y", "open_z", "solid")
"""What paths see of thin solids."""


class Advection:
    """Carries fields along a flow.

    Parameters
    ----------
    grid : Grid
    solids : Solids
    """

    def __init__(self, grid: Grid, solids: Solids) -> None:
        self.grid = grid
        self.solids = solids
        self.windows = Windows(grid)
        self.depth = 0
        self.memory: dict[str, tuple[Array, ...]] = {}
        self.sections = self.windows.sections(0)
        self.scale = 0.0
        self.reach: int | None = None
        self.beside: Region | None = None

    @property
    def flow_key(self) -> tuple[Hashable, ...]:
        """Return what `carry` and `correct` do depends on, besides the arrays of the flow.

        It is the same on all ranks: they record together, and together replay what they recorded.
        """
        return self.scale, self.depth, self.reach

    def follow(self, flow: Vector, dt: float) -> None:
        """Let paths follow a flow, whose ghosts are valid, for a time `dt`."""
        self.scale = -dt / self.grid.spacing
        is_thin = bool(self.solids.thin.bounds)
        needed = self.windows.needed or is_thin
        wait = self.grid.largest_speed_ahead(flow) if needed else lambda: 0.0
        self._see(flow)
        cells = wait() * -self.scale
        if self._fit_windows(self.windows.depth(cells)):
            self._see(flow)
        self._limit_to_a_turn(cells)
        self.walls: list[Seen] = []
        self.reach = self.beside = None
        if is_thin:
            self._look_at_walls(cells)

    def _see(self, flow: Vector) -> None:
        """Make windows of a flow, if their depth is known: most likely it suffices again."""
        if self.memory or not self.windows.needed:
            self.flow = [self._window(array, name) for name, array in zip("uvw", flow, strict=True)]

    def _limit_to_a_turn(self, cells: float) -> None:
        """Let no path of some cells at most go round a periodic z axis more than once.

        Windows do not reach farther. Every section sees a window then, never the field itself: see
        `is_thin`.
        """
        turn = self.grid.cells[2]
        if self.grid.periodic[2] and cells >= turn:
            most = JUST_BELOW * turn / -self.scale
            for seen in self.flow[2]:
                planes, rows, columns = seen.shape
                everywhere = (0, planes, 0, rows, 0, columns)
                self.grid.program.run("limit_to", everywhere, seen, most)

    def _look_at_walls(self, cells: float) -> None:
        """See thin solids, and where paths of some cells can meet them."""
        solids = self.solids
        arrays = zip(WALLS, (*solids.openings, solids.of_cells), strict=True)
        self.walls = [self._window(array, name) for name, array in arrays]
        self.reach = int(min(cells, max(self.grid.cells))) + BEYOND
        self.beside = solids.thin.region(self.grid, self.reach)

    def _fit_windows(self, depth: int) -> bool:
        """Make windows of a depth, or deeper ones than before; return whether they are new."""
        if not self.windows.needed:
            return False
        names = FIELDS + WALLS if self.solids.thin.bounds else FIELDS
        fits = depth <= self.depth and len(names) <= len(self.memory)
        if not fits:
            self.depth = max(depth, self.depth)
            self.memory = {name: self.windows.empty(self.depth) for name in names}
            self.sections = self.windows.sections(self.depth)
        return not fits

    def carry(self, field: Array, kind: Kind, region: Region, out: Array) -> None:
        """Set `out` to what comes to its elements in a step, to first order.

        Parameters
        ----------
        field : array
            Its ghosts are valid.
        kind : Kind
        region : tuple of int
            The elements of `out`.
        out : array
        """
        source = self._window(field, "source")
        self._run("advect", region, [source, *self.flow], out, kind)

    def correct(
        self, field: Array, kind: Kind, carried: Array, region: Region, out: Array, slack: float
    ) -> None:
        """Set `out` to what `carry` made of a field, with MacCormack's correction.

        Parameters
        ----------
        field, carried : array
            The field and what it became; the ghosts of both are valid.
        kind : Kind
        region : tuple of int
        out : array
        slack : float
            How far results may be beyond the elements that they come from, over their range.
        """
        source = self._window(field, "source")
        forward = self._window(carried, "carried")
        self._run("correct", region, [source, forward, *self.flow], out, kind, slack)

    def _run(
        self, name: str, region: Region, seen: list[Seen], out: Array, kind: Kind, *more: float
    ) -> None:
        """Call a function for the elements of a region, section by section."""
        for number, section in enumerate(self.sections):
            part = section.part_of(region)
            if part is None:
                continue
            arrays = (*(windows[number] for windows in seen), out)
            given = self._geometry(kind, section, len(arrays[0]))
            self.grid.program.run(name, part, *arrays, *given, *more)
            beside = common(part, self.beside)
            if beside is not None:
                walls = (*(windows[number] for windows in self.walls), int(kind.axis is not None))
                self.grid.program.run(f"{name}_beside", beside, *arrays, *walls, *given, *more)

    def _geometry(self, kind: Kind, section: Section, planes: int) -> tuple[float, ...]:
        """Return how far paths go, where a field is staggered and where its axes end."""
        grid = self.grid
        bottom, top = self._ends(-section.origin)
        last = min(planes - 1, top)
        z, y, x = (float(kind.axis == axis) for axis in (2, 1, 0))
        wraps = (int(grid.periodic[0]), int(grid.periodic[1]), 0)
        return self.scale, z, y, x, *wraps, bottom, top, last, -section.origin

    def _ends(self, shift: int) -> tuple[int, int]:
        """Return the planes, in windows, of the lowest and the highest faces of the box.

        Where z is periodic there are none: they are beyond all windows.
        """
        bottom = 1 - self.grid.first + shift
        top = bottom + self.grid.cells[2]
        if self.grid.periodic[2]:
            return -FAR, FAR
        return bottom, top

    def _window(self, array: Array, name: str) -> Seen:
        return self.windows.of(array, self.depth, self.memory.get(name, ()))
