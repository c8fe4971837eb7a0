"""The cell by cell parts of a fluid step on a GPU (CUDA through CuPy); twin of ``cpu``.

``sweeps.cu`` and ``tiles.cu`` hold the linear systems, ``transport.cu`` the advection, ``cells.cu`` everything else.
"""

import functools

import numpy as np

from hybrid_nbody.fluid.kernels.gpu_layout import (
    ARRAYS,
    LANES,
    OPTIONS,
    SOURCES,
    STAGES,
    SUM_THREADS,
    defines,
    pitch_of,
)
from hybrid_nbody.fluid.kernels.reference import SMALLEST

FUSED = 2
"""Most iterations of one pass over the grid."""

SMALL = 300_000
"""Cells of a grid that is relaxed in place."""

BLOCK = (64, 4)
"""Threads along x and y of a kernel that has one for each cell."""

BLOCKS_OF_A_PLANE = 8
"""Blocks that look for the largest value of a plane."""

COPY_BLOCKS = 1056
COPY_THREADS = 256
WORDS = 24
"""Of what the device remembers of solves: see ``solve.cuh``."""
STATISTICS = {"solves": 1, "iterations": 2, "early": 3}
ROOM_ALIGNMENT = 256
"""Bytes: colours in lent memory begin at a multiple of them, as those that are allocated do."""


def launches_of(iterations: int) -> list[int]:
    """Return the iterations of each launch of a solve."""
    return [FUSED] * (iterations // FUSED) + [1] * (iterations % FUSED)


class Kernels:
    """The parts of a step on one GPU; parameters and methods as in the twin, `hybrid_nbody.fluid.kernels.cpu.Kernels`.

    Launches are queued on the backend's stream and return at once; `statistics`, `residual`, `largest` and the sums
    wait for their result. A solve stops on the device: what is queued after it has converged returns at once.
    """

    def __init__(self, backend, slab, dtype):
        self.backend, self.slab, self.dtype = backend, slab, np.dtype(dtype)
        self.number = self.dtype.type
        macros = defines(slab, dtype)
        self.align, self.rows = macros["ALIGN"], macros["ROWS"] * macros["WARPS"]
        self.waiting = STAGES * ARRAYS * self.rows * LANES * self.dtype.itemsize
        self.threads = LANES * macros["WARPS"]
        modules = {name: backend.compile(source, macros, OPTIONS) for name, source in SOURCES.items()}
        self.kernel = functools.cache(lambda source, name: modules[source].get_function(name))
        for source, name in (("sweeps", "sweep"), ("tiles", "settle"), ("transport", "advect"), ("cells", "merge")):
            self.kernel(source, name)  # compiles the whole file now: no step has to wait for it
        self.blocks = macros["BLOCKS"] * backend.facts()["multiprocessors"]
        self.control = backend.zeros(WORDS, "i4")
        self.changed = self.control[:1]
        self.extreme = backend.zeros(1, dtype)
        self.shape_of_colours = (2, *slab.shape[:2], pitch_of(slab, dtype))
        self.spare = None
        self.in_place = bool(np.prod(slab.cells) <= SMALL)

    # --- arrays -------------------------------------------------------------------------------------------------------

    def field(self):
        """Return a field of zeros."""
        return self.backend.zeros(self.slab.shape, self.dtype)

    def colours(self, *number):
        """Return colours that are zero."""
        return self.backend.zeros((*number, *self.shape_of_colours), self.dtype)

    def fill(self, array, value):
        """Set every element, halo planes included."""
        array.fill(value)

    def copy(self, colours, target):
        """Copy an array by colour."""
        target[...] = colours

    def split(self, field, colours):
        """Sort a field into colours."""
        self._cells("cells", "split", field, colours)

    def split_sum(self, field, factor, other, colours):
        """Sort ``field + factor * other`` into colours."""
        self._cells("cells", "split_sum", field, self.number(factor), other, colours)

    def merge(self, colours, field):
        """Gather colours into a field."""
        self._cells("cells", "merge", colours, field)

    def _cells(self, source, name, *arguments):
        """Launch a kernel with a thread for every cell."""
        self._over(self.slab.cells[0], source, name, *arguments)

    def _over(self, width, source, name, *arguments):
        """Launch a kernel with a thread for each of `width` places of every row."""
        grid = (-(-width // BLOCK[0]), -(-self.slab.cells[1] // BLOCK[1]), self.slab.planes)
        if self.slab.planes:
            self.kernel(source, name)(grid, (*BLOCK, 1), arguments)

    # --- linear systems -----------------------------------------------------------------------------------------------

    def relax(self, x, b, stencil, iterations, tolerance, room):
        """Do all iterations of a solve on a rank that owns every plane, and note it in the statistics.

        `room` is flat memory of the working type that is free meanwhile, or None; if colours do not fit there, the
        first call makes some to work in. Nothing else is done here but queue kernels, so that a caller may capture it.
        """
        equation = *self._equation(stencil), self.number(1.0 / stencil.diagonal), self.number(tolerance)
        if self.in_place:
            self._relax_in_place(x, b, equation, iterations)
        else:
            self._relax_fused(x, b, equation, iterations, self._spare_colours(room))

    def _relax_in_place(self, x, b, equation, iterations):
        """Launch colour after colour: on a small grid a launch takes less time than filling and emptying tiles."""
        for number in range(iterations):
            for colour in (0, 1):
                order = np.int32(number), np.int32(colour)
                self._over(self.slab.half, "sweeps", "relax_colour", *order, x, b, *equation, self.control)
        self._settle(iterations, min(iterations, 1), iterations)

    def _relax_fused(self, x, b, equation, iterations, spare):
        """Launch passes over the grid that take x into `spare` and back; redo a part of the last if it did too many."""
        launches, previous = launches_of(iterations), 0
        for number, count in enumerate(launches):
            order = np.int32(number), np.int32(previous)
            self._tiles(f"relax_{count}", count, *order, x, spare, b, *equation, self.control)
            previous = count
        self._settle(len(launches), previous, iterations)
        for number in range(FUSED - 1):
            self._tiles("redo", 1, np.int32(number), x, spare, b, *equation, self.control)
        self.kernel("tiles", "bring_home")((COPY_BLOCKS,), (COPY_THREADS,), (x, spare, self.control))

    def _settle(self, launches, last, iterations):
        """End a solve whose last launch had `last` iterations."""
        self._single("tiles", "settle", np.int32(launches), np.int32(last), np.int32(iterations), self.control)

    def _spare_colours(self, room):
        """Return colours to work in: within `room`, always in the same place of it, or our own if they do not fit."""
        if room is not None:
            size, start = int(np.prod(self.shape_of_colours)), -room.data.ptr % ROOM_ALIGNMENT // self.dtype.itemsize
            if start + size <= room.size:
                return room[start : start + size].reshape(self.shape_of_colours)
        if self.spare is None:
            self.spare = self.colours()
        return self.spare

    def _equation(self, stencil):
        """Return a stencil as arguments of a kernel."""
        return tuple(map(self.number, (stencil.own, stencil.neighbour, *stencil.parity)))

    def _tiles(self, name, count, *arguments):
        """Launch a kernel that walks tiles through the grid and does `count` iterations."""
        periodic = self.slab.periodic
        across = self._tiling(self.slab.half, LANES, -(-count // self.align) * self.align, self.align == 1, periodic[0])
        strips = self._tiling(self.slab.cells[1], self.rows, 2 * count, True, periodic[1])
        rows = max(1, min(self.blocks // across, strips * self.slab.planes))
        kernel = self.kernel("tiles", name)
        kernel.max_dynamic_shared_size_bytes = self.waiting
        kernel((across, rows), (self.threads,), arguments, shared_mem=self.waiting)

    @staticmethod
    def _tiling(size, width, skirt, more, periodic):
        """Return how many tiles cover an axis; see ``Tiling`` in ``tiles.cu``; walls have `more` cells."""
        if not periodic and size <= width:
            return 1
        beyond = 0 if periodic or not more else skirt
        return -(-(size - 2 * beyond) // (width - 2 * skirt))

    def _single(self, source, name, *arguments):
        """Launch one thread."""
        self.kernel(source, name)((1,), (1,), arguments)

    def begin_solve(self):
        """Begin a solve by `sweep` and `end_iteration`."""
        self._single("sweeps", "begin_solve", self.control)

    def sweep(self, colour, x, b, stencil, factors, tolerance):
        """Renew the cells of one colour; the halo planes of the other are valid.

        A cell changes by ``factors[k]`` times what its equation lacks, k counting the walls beside it: 1 for one of x,
        2 for one of y, 4 for one of z.
        """
        equation, by_walls = self._equation(stencil), np.array([(factors,)], [("at", self.dtype, len(factors))])
        numbers = *equation, by_walls, self.number(tolerance)
        self._over(self.slab.half, "sweeps", "sweep", np.int32(colour), x, b, *numbers, self.control)

    def end_iteration(self):
        """Let the solve end here if `changed` is zero."""
        self._single("sweeps", "end_iteration", self.control)

    def end_solve(self):
        """Add the solve to the statistics."""
        self._single("sweeps", "end_solve", self.control)

    def stopped(self) -> bool:
        """Return False: only the device knows, and does nothing more once a solve has converged."""
        return False

    def statistics(self) -> dict[str, int]:
        """Return solves, iterations, and solves that stopped early, since `reset_statistics`."""
        words = self.backend.download(self.control)
        return {name: int(words[place]) for name, place in STATISTICS.items()}

    def reset_statistics(self):
        """Count from zero."""
        self.control[1:4] = 0

    def residual(self, x, b, stencil) -> float:
        """Return the largest residual of this rank's cells."""
        self.extreme.fill(0)
        self._over(self.slab.half, "sweeps", "residual", x, b, *self._equation(stencil), self.extreme)
        return float(self.backend.download(self.extreme)[0])

    def exceeds(self, x, b, stencil, limit):
        """Note in `changed` whether a residual is larger than ``limit[0]``."""
        self._over(self.slab.half, "sweeps", "exceeds", x, b, *self._equation(stencil), limit, self.control)

    # --- over all cells -----------------------------------------------------------------------------------------------

    def largest(self, array) -> float:
        """Return the largest absolute value of a field or of colours."""
        self._find_largest(array)
        return float(self.backend.download(self.extreme)[0])

    def largest_into(self, colours, factor, limit):
        """Set ``limit[0]`` to `factor` times the largest absolute value."""
        self._find_largest(colours)
        self._single("cells", "take_limit", self.number(factor), self.extreme, limit)

    def _find_largest(self, array):
        self.extreme.fill(0)
        name = {3: "largest", 4: "largest_in_colours"}[array.ndim]
        if self.slab.planes:
            grid = (BLOCKS_OF_A_PLANE, self.slab.planes)
            self.kernel("cells", name)(grid, (SUM_THREADS,), (array, self.extreme))

    def plane_sums(self, field):
        """Return the sum of each plane, float64 on the host."""
        return self._sums("plane_sums", field)

    def plane_sums_with_ghosts(self, field):
        """Return the sum of each plane; a cell at a wall of x or y counts once more for its ghost."""
        return self._sums("plane_sums_with_ghosts", field)

    def plane_squares(self, *fields):
        """Return the sum of the squares of several fields for each plane."""
        return self._sums("plane_squares", *fields)

    def _sums(self, name, *fields):
        sums = self.backend.zeros(self.slab.planes, "f8")
        for field in fields if self.slab.planes else ():
            self.kernel("cells", name)((self.slab.planes,), (SUM_THREADS,), (field, sums))
        return self.backend.download(sums)

    # --- projection and advection -------------------------------------------------------------------------------------

    def divergence(self, u, v, w, factor, colours):
        """Set colours to `factor` times the sum of the central differences."""
        self._cells("cells", "divergence", u, v, w, self.number(factor), colours)

    def subtract_gradient(self, u, v, w, p, factor):
        """Subtract `factor` times the central differences of p, colours."""
        self._cells("cells", "subtract_gradient", u, v, w, p, self.number(factor))

    def advect(self, source, below, out, u, v, w, scale, parity, room=None):
        """Set `out` to what comes from `scale` times the velocity; plane 0 of `source` is `below` planes below.

        The room for ghosts is not needed: a thread takes them from the cells at the walls.
        """
        velocity = u, v, w, self.number(scale), *map(np.int32, parity)
        self._cells("transport", "advect", source, *self._planes(source, below), out, *velocity)

    def correct(self, source, forward, below, out, u, v, w, scale, parity, room=None):
        """Set `out` to `forward` with half the error of going there and back taken off."""
        velocity = u, v, w, self.number(scale), *map(np.int32, parity)
        self._cells("transport", "correct", source, forward, *self._planes(source, below), out, *velocity)

    def _planes(self, source, below):
        """Return which global plane is the first of `source`, and how many there are."""
        return np.int32(self.slab.first - below), np.int32(len(source))

    # --- forces and sources -------------------------------------------------------------------------------------------

    def buoyancy(self, u, v, w, density, factors):
        """Add the density times a factor to each component."""
        self._cells("cells", "buoyancy", u, v, w, density, *map(self.number, factors))

    def curl_length(self, u, v, w, out):
        """Set `out` to the length of the vorticity."""
        self._cells("cells", "curl_length", u, v, w, self.number(0.5 / self.slab.spacing), out)

    def confine(self, u, v, w, length, strength, new_u, new_v, new_w):
        """Add vorticity confinement."""
        factors = 0.5 / self.slab.spacing, strength * self.slab.spacing, SMALLEST
        self._cells("cells", "confine", u, v, w, length, *map(self.number, factors), new_u, new_v, new_w)

    def add_box(self, field, box, value):
        """Add `value` in the cells of a box (x0, x1, y0, y1, z0, z1), half-open."""
        self._renew("renew_box", field, map(np.int32, box), 1, value)

    def set_box(self, field, box, value):
        """Set the cells of a box (x0, x1, y0, y1, z0, z1), half-open, to `value`."""
        self._renew("renew_box", field, map(np.int32, box), 0, value)

    def add_sphere(self, field, centre, radius, value):
        """Add `value` in the cells whose centre lies within `radius` cells of `centre`."""
        self._renew("renew_sphere", field, map(np.float64, (*centre, radius**2)), 1, value)

    def set_sphere(self, field, centre, radius, value):
        """Set the cells whose centre lies within `radius` cells of `centre` to `value`."""
        self._renew("renew_sphere", field, map(np.float64, (*centre, radius**2)), 0, value)

    def _renew(self, name, field, where, keep, value):
        self._cells("cells", name, field, *where, self.number(keep), self.number(value))
