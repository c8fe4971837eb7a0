"""Implicit viscosity and diffusion.

They are solved by Chebyshev's iteration; where the viscosity is so large that it converges slowly,
by conjugate gradients. With red-black iterations in a box without obstacles and outlets, they are
solved by those of the collocated grid.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region, Total
from hybrid_nbody.fluid.staggered.boxes import Box, Relaxer, is_plain
from hybrid_nbody.fluid.staggered.chebyshev import Spectrum
from hybrid_nbody.fluid.staggered.ghosts import Ghosts, Kind
from hybrid_nbody.fluid.staggered.grid import unit_of
from hybrid_nbody.fluid.staggered.memory import Memory
from hybrid_nbody.fluid.staggered.pressure import Accuracy
from hybrid_nbody.fluid.staggered.repeats import Repeats
from hybrid_nbody.fluid.staggered.solids import Solids
from hybrid_nbody.fluid.stencil import Stencil, diffusion

ROW_BOUND = 12.0
"""Gershgorin's bound of the eigenvalues of minus the Laplacian: six neighbours count twice."""

ROW_BOUND_IN_WALLS = 24.0
"""The same if all six are walls a quarter of a cell away; nearer ones count as much."""

LARGEST_CONDITION = 40.0
"""Condition number up to which Chebyshev's iteration is taken, and conjugate gradients beyond."""

MORE = 2
"""Iterations between two looks at a residual that is larger than expected."""

AHEAD_CELLS = 1 << 21
"""Cells from which on an iteration takes a GPU longer than it takes its host to launch one."""


@dataclass(frozen=True)
class Equation:
    """The equation ``(1 - ratio * Laplacian) x = field``, whose solution replaces the field.

    Attributes
    ----------
    field : array
    kind : Kind
    region : tuple of int
        The elements that change.
    ratio : float
        Viscosity times time over the square of the edge of a cell.
    """

    field: Array
    kind: Kind
    region: Region
    ratio: float


class Diffusion:
    """Spreads momentum and scalars.

    Parameters
    ----------
    repeats : Repeats
    ghosts : Ghosts
    solids : Solids
    accuracy : Accuracy
        Its tolerance is of the largest residual over the largest right-hand side.
    memory : Memory
    """

    def __init__(
        self, repeats: Repeats, ghosts: Ghosts, solids: Solids, accuracy: Accuracy, memory: Memory
    ) -> None:
        grid = ghosts.grid
        self.grid = grid
        self.repeats = repeats
        self.ghosts = ghosts
        self.solids = solids
        self.accuracy = accuracy
        self.memory = memory
        self.in_boxes = accuracy.method == "red-black" and is_plain(grid, solids.masked)
        self.relaxer = cache(self._relaxer)
        self.row_bound = cache(self._row_bound)

    def _relaxer(self, axis: int | None) -> Relaxer:
        """Return what relaxes the elements of a kind of field."""
        return Relaxer(Box(self.grid, axis, self.memory.colours, self.memory.lent))

    def prepare(self, axis: int | None) -> None:
        """Begin to compile what spreads a component of the velocity, or scalars."""
        if self._is_relaxed(axis):
            self.relaxer(axis).prepare()

    def _is_relaxed(self, axis: int | None) -> bool:
        """Return whether the kernels of the collocated grid spread a kind of field."""
        return self.in_boxes and self.relaxer(axis).box.has_elements

    def spread(self, field: Array, kind: Kind, region: Region, ratio: float) -> None:
        """Replace a field by the solution of ``(1 - ratio * Laplacian) x = field``.

        The parameters are those of an `Equation`. The ghosts of the field are valid in the end.
        """
        self._fill(field, kind)
        if self._is_relaxed(kind.axis):
            self._relax(field, kind, ratio)
        else:
            self._solve(Equation(field, kind, region, ratio))
        self._fill(field, kind)

    def _fill(self, field: Array, kind: Kind) -> None:
        """Fill the ghosts of a field."""
        self.repeats.do(lambda: self.ghosts.fill(field, kind), (field,), "fill", kind)

    def _limit(self, field: Array) -> float:
        """Return the largest residual that may be left."""
        tolerance = self.accuracy.tolerance
        return tolerance and tolerance * self.grid.largest("largest", self.grid.region, field)

    def _relax(self, field: Array, kind: Kind, ratio: float) -> None:
        """Add what red-black iterations make of the change of a step without them."""
        relaxer = self.relaxer(kind.axis)
        box = relaxer.box
        equation = diffusion(ratio, box.ghosts(kind))
        limit = self._limit(field)
        x, b = box.spread(field, ratio)
        is_zero = self.accuracy.tolerance and not limit
        if is_zero and self._is_at_rest(box, (x, b), equation):
            return
        relaxer.improve(x, b, equation, limit, self.accuracy.iterations)
        box.add(x, field)

    def _is_at_rest(self, box: Box, system: tuple[Array, Array], equation: Stencil) -> bool:
        """Return whether diffusion changes nothing."""
        x, b = system
        box.clear(x)
        return box.largest_residual(x, b, equation) == 0.0

    def _solve(self, equation: Equation) -> None:
        """Solve an equation by the method that suits its condition number."""
        self.r, self.direction, self.image = self.memory.own
        self._repeat(lambda: self._residual(equation), equation, "residual")
        wait = self.grid.largest_ahead(
            ("largest", self.grid.region, equation.field),
            ("largest", equation.region, self.r),
        )
        spectrum = self._spectrum(equation)
        if spectrum.condition <= LARGEST_CONDITION:
            self._chebyshev(equation, spectrum, wait)
        else:
            largest, found = wait()
            self._conjugate(equation, found, self.accuracy.tolerance * largest)

    def _repeat(self, action: Callable[[], None], equation: Equation, *others: Hashable) -> None:
        """Do what follows from an equation; see `Repeats`."""
        key = (equation.kind, equation.region, equation.ratio, *others)
        self.repeats.do(action, (equation.field,), *key)

    def _residual(self, equation: Equation) -> None:
        """Set the residual of the field itself as a first guess: the change of a step without."""
        self.grid.clear(self.r)
        name = "add_diffusion" if equation.kind.axis is None else "add_viscosity"
        self.run(name, (equation.field, self.r), equation.kind, equation.region, equation.ratio)

    def run(
        self, name: str, fields: tuple[Array, Array], kind: Kind, region: Region, ratio: float
    ) -> None:
        """Call a function of a field and one that it changes, which wants to know of walls."""
        field, out = fields
        solids = self.solids
        walls: tuple[Array, ...] = solids.openings
        if kind.axis is not None:
            walls = (solids.openings[kind.axis], solids.reach[kind.axis])
        for part, masked in solids.parts_of(region):
            self.grid.program.run(name, part, field, ratio, masked, *walls, out)

    def _apply(self, equation: Equation) -> None:
        """Set the image of the direction."""
        self.ghosts.fill(self.direction, equation.kind, homogeneous=True)
        name = "diffusive" if equation.kind.axis is None else "viscous"
        self.run(name, (self.direction, self.image), equation.kind, equation.region, equation.ratio)

    # --- Chebyshev's iteration --------------------------------------------------------------------

    def _spectrum(self, equation: Equation) -> Spectrum:
        """Return the range of the eigenvalues."""
        axis = equation.kind.axis
        bound = ROW_BOUND if axis is None else self.row_bound(axis)
        return Spectrum(1.0, 1.0 + bound * equation.ratio)

    def _row_bound(self, axis: int) -> float:
        """Return a bound of the eigenvalues of minus the Laplacian of a component, beside walls."""
        if not self.solids.masked:
            return ROW_BOUND
        if self.solids.moving:
            return ROW_BOUND_IN_WALLS
        walls = (self.solids.openings[axis], self.solids.reach[axis])
        return max(self.grid.largest("row_bound", self.grid.region, *walls), ROW_BOUND)

    def _chebyshev(
        self, equation: Equation, spectrum: Spectrum, wait: Callable[[], list[float]]
    ) -> None:
        """Do as many iterations as the residual that is waited for needs; one at least.

        What little a small viscosity does adds up over the steps. Where the residual is zero or no
        number nothing is done, but for an iteration ahead of it.
        """
        done = self._iterate(equation, spectrum, 0, 1) if self._goes_ahead else 0
        largest, found = wait()
        if not 0.0 < found < math.inf:
            return
        most = self.accuracy.iterations
        limit = self.accuracy.tolerance * largest
        needed = spectrum.iterations(limit / found) if self.accuracy.tolerance else most
        end = min(max(needed, 1), most)
        while True:
            done = self._iterate(equation, spectrum, done, end)
            if done == most or self.grid.largest("largest", equation.region, self.r) <= limit:
                break
            end = min(done + MORE, most)

    @property
    def _goes_ahead(self) -> bool:
        """Return whether ranks do the first iteration while their hosts wait for the residual.

        All decide alike, or some would wait for planes and others for the residual; and any number
        of ranks does, as an iteration on a residual of zero changes the sign of a zero.
        """
        enough = math.prod(self.grid.cells) >= AHEAD_CELLS
        return self.grid.backend.runs_ahead and not self.grid.mixed and enough

    def _iterate(self, equation: Equation, spectrum: Spectrum, done: int, end: int) -> int:
        """Do the iterations from `done` to `end`, if any are left, and return `end`."""
        if done < end:
            iterate = partial(self._queue, equation, spectrum, range(done, end))
            self._repeat(iterate, equation, "iterate", done, end)
        return end

    def _queue(self, equation: Equation, spectrum: Spectrum, numbers: range) -> None:
        """Go along a direction in each iteration, and choose the next one."""
        run = self.grid.program.run
        if numbers.start == 0:
            _, part = next(spectrum.directions())
            self.grid.clear(self.direction)
            run("add_field", equation.region, self.direction, part, self.r)
        for parts in islice(spectrum.directions(), numbers.start + 1, numbers.stop + 1):
            self._apply(equation)
            fields = (equation.field, self.r, self.direction, self.image)
            run("descend_and_turn", equation.region, *fields, *parts)

    # --- conjugate gradients ----------------------------------------------------------------------

    def _conjugate(self, equation: Equation, found: float, limit: float) -> None:
        """Improve a field, whose largest residual was found, by conjugate gradients."""
        if not 0.0 < found < math.inf:
            return
        grid = self.grid
        region = equation.region
        self.grid.clear(self.direction)
        grid.program.run("copy", region, self.r, self.direction)
        self.unit = unit_of(found)
        grade = self._dot(region, self.r, self.r)
        for done in range(self.accuracy.iterations):
            if done and limit and grid.largest("largest", region, self.r) <= limit:
                break
            self._descend(equation, grade)
            following = self._dot(region, self.r, self.r)
            grid.program.run("turn", region, self.direction, self.r, following, grade)
            grade = following

    def _dot(self, region: Region, a: Array, b: Array) -> Total:
        """Return the sum of the products of two fields, in the unit of this solve."""
        return self.grid.total_by_hosts("dot", region, a, b, self.unit)

    def _descend(self, equation: Equation, grade: Total) -> None:
        """Go to the lowest point along the direction."""
        self._apply(equation)
        curvature = self._dot(equation.region, self.direction, self.image)
        fields = (equation.field, self.r, self.direction, self.image)
        self.grid.program.run("descend", equation.region, *fields, grade, curvature)
