"""The cell by cell parts of a fluid step on a GPU (CUDA through CuPy); twin of ``cpu``.

``red_black_resident.cu`` and ``red_black_tiles.cu`` hold whole red-black solves (`red_black.py`),
``red_black.cu`` the parts of others, ``advection.cu`` the advection, ``cells.cu`` everything else.
"""

import functools
from pathlib import Path

import numpy as np

from hybrid_nbody.backends.launch import CudaModule, Macros
from hybrid_nbody.fluid.kernels.gpu import red_black as gpu_relax
from hybrid_nbody.fluid.kernels.gpu.layout import (
    OPTIONS,
    SOURCES,
    SUM_THREADS,
    defines,
    halo_of,
    pitch_of,
)
from hybrid_nbody.fluid.kernels.gpu.peers import Peers
from hybrid_nbody.fluid.kernels.reference import SMALLEST

BLOCK = (64, 4)
"""Threads along x and y of a kernel that has one for each cell."""

FIRST_KERNELS = {"red_black": "sweep", "advection": "advect", "cells": "merge"}
"""The kernel of each source that is loaded when kernels are made: it compiles the whole file, and
no step has to wait for that."""

BLOCKS_OF_A_PLANE = 8
"""Blocks that look for the largest value of a plane."""

WORDS = 24
"""Of what the device remembers of solves: see ``solve.cuh``."""
STATISTICS = {"solves": 1, "iterations": 2, "early": 3}
DONE = 4
FLAGS = 10
FLAGS_OF_A_LAUNCH = 4
LAUNCHES = 3


class Kernels:
    """The parts of a step on one GPU; parameters and methods as in `hybrid_nbody.fluid.kernels.cpu.kernels.Kernels`.

    Launches are queued on the backend's stream and return at once; `statistics`, `residual`,
    `largest` and the sums wait for their result. A solve stops on the device: what is queued after
    it has converged returns at once.
    """

    def __init__(self, backend, slab, dtype):
        self.backend = backend
        self.slab = slab
        self.dtype = np.dtype(dtype)
        self.number = self.dtype.type
        self.modules = {name: self.compile(source) for name, source in SOURCES.items()}
        for source, name in FIRST_KERNELS.items():
            self.modules[source].load(name)
        self.control = backend.zeros(WORDS, "i4")
        self.changed = self.control[:1]
        self.extreme = backend.zeros(1, dtype)
        self.fetched = backend.pinned(1, dtype)
        self.shape_of_colours = (
            2,
            slab.planes + 2 * halo_of(slab),
            slab.cells[1],
            pitch_of(slab, dtype),
        )

    def compile(
        self, source: Path, macros: Macros | None = None, cooperative: bool = False
    ) -> CudaModule:
        """Return the kernels of a file for this slab; see `CudaModule`."""
        every_macro = defines(self.slab, self.dtype) | dict(macros or {})
        return CudaModule(self.backend, source, every_macro, OPTIONS, cooperative)

    # --- arrays -----------------------------------------------------------------------------------

    def field(self):
        """Return a field of zeros."""
        return self.backend.zeros(self.slab.shape, self.dtype)

    def colours(self, *number):
        """Return colours that are zero."""
        return self.backend.zeros((*number, *self.shape_of_colours), self.dtype)

    def fill(self, array, value):
        """Set every element, halo planes included."""
        array.fill(value)

    def split(self, field, colours):
        """Sort a field into colours."""
        self._pairs("split", field, colours)

    def split_twice(self, field, first, second):
        """Sort a field into two arrays of colours."""
        self._pairs("split_twice", field, first, second)

    def split_carried(self, field, factor, carried, b, x):
        """Sort ``field + factor * carried`` into b, and `carried` into x."""
        self._pairs("split_sum", field, self.number(factor), carried, b)
        self._pairs("split", carried, x)

    def clear(self, colours):
        """Set colours to zero, halo planes included."""
        colours.fill(0)

    def merge(self, colours, field):
        """Gather colours into a field, halo planes included."""
        self._over(self.slab.half, "cells", "merge", colours, field, planes=self.slab.planes + 2)

    def _pairs(self, name, *arguments):
        """Launch a kernel with a thread for every two cells beside each other in x."""
        self._over(self.slab.half, "cells", name, *arguments)

    def _cells(self, source, name, *arguments):
        """Launch a kernel with a thread for every cell."""
        self._over(self.slab.cells[0], source, name, *arguments)

    def _over(self, width, source, name, *arguments, planes=None):
        """Launch a kernel with a thread for each of `width` places of every row, of this rank's planes by default."""
        if not self.slab.planes:
            return
        across = -(-width // BLOCK[0])
        along = -(-self.slab.cells[1] // BLOCK[1])
        grid = (across, along, planes or self.slab.planes)
        self.modules[source].launch_grid(name, grid, (*BLOCK, 1), arguments)

    # --- linear systems ---------------------------------------------------------------------------

    @functools.cached_property
    def relaxation(self):
        """What relaxes this rank's planes best; None where ranks compute on devices of several kinds."""
        return None if self.slab.mixed else gpu_relax.fastest(self)

    @property
    def passes_allowed(self):
        """Return whether a solve is done in passes."""
        return self.relaxation is not None

    @property
    def longest_pass(self):
        """Return the most iterations of a pass."""
        return self.relaxation.longest

    @longest_pass.setter
    def longest_pass(self, iterations):
        self.relaxation.longest = iterations

    @property
    def pass_depth(self):
        """Return the planes of b beyond each end that passes read."""
        return halo_of(self.slab)

    def begin_passes(self, x, b, solve, scratch):
        """Return a solve in passes. Nothing is done but queue kernels, so that a caller may capture it."""
        equation = solve.equation
        numbers = (
            *self._equation(equation),
            self.number(1.0 / equation.diagonal),
            self.number(solve.tolerance),
        )
        return self.relaxation.begin(x, b, numbers, solve, scratch)

    def peer_planes(self, memory, rank, planes):
        """Return how passes write into other ranks' memory; None if a slab is too thin for it."""
        return Peers(self, memory, rank, planes) if min(planes) >= halo_of(self.slab) else None

    def impose(self, equation, b):
        """Refuse offsets of ghosts, which these kernels do not know yet."""
        raise NotImplementedError("walls that move are not supported on GPUs")

    def _equation(self, stencil):
        """Return a stencil as arguments of a kernel."""
        return tuple(
            map(self.number, (stencil.shift, stencil.neighbour, *stencil.ghosts.axis_signs))
        )

    def flags(self, launch, iterations):
        """Return what launch number `launch` of a solve notes for each of its iterations: whether a cell changed."""
        start = FLAGS + launch % LAUNCHES * FLAGS_OF_A_LAUNCH
        return self.control[start : start + iterations]

    def single(self, source, name, *arguments):
        """Launch one thread."""
        self.modules[source].launch(name, 1, 1, *arguments)

    def begin_solve(self):
        """Begin a solve by `sweep` and `end_iteration`."""
        self.single("red_black", "begin_solve", self.control)

    def sweep(self, colour, x, b, relaxation):
        """Update the cells of one colour; the halo planes of the other are valid.

        A cell changes by ``factors[k]`` times what its equation lacks, k counting the walls beside
        it: 1 for one of x, 2 for one of y, 4 for one of z.
        """
        stencil, factors, tolerance = relaxation
        equation = self._equation(stencil)
        by_walls = np.array([(factors,)], [("at", self.dtype, len(factors))])
        numbers = *equation, by_walls, self.number(tolerance)
        self._over(
            self.slab.half, "red_black", "sweep", np.int32(colour), x, b, *numbers, self.control
        )

    def end_iteration(self):
        """Let the solve end here if `changed` is zero."""
        self.single("red_black", "end_iteration", self.control)

    def end_solve(self):
        """Add the solve to the statistics."""
        self.single("red_black", "end_solve", self.control)

    def stopped(self) -> bool:
        """Return whether a solve is done, where other ranks are on CPUs, which leave it then; an iteration is left out.

        Else only the device knows, and does nothing more once a solve has converged: the host does
        not wait for it.
        """
        done = self.slab.mixed and bool(self.backend.download(self.control[DONE : DONE + 1])[0])
        if done:
            self.end_iteration()  # one that is left out
        return done

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
        self._over(
            self.slab.half, "red_black", "residual", x, b, *self._equation(stencil), self.extreme
        )
        return float(self.backend.download(self.extreme)[0])

    def exceeds(self, x, b, stencil, limit):
        """Note in `changed` whether a residual is larger than ``limit[0]``."""
        self._over(
            self.slab.half,
            "red_black",
            "exceeds",
            x,
            b,
            *self._equation(stencil),
            limit,
            self.control,
        )

    # --- over all cells ---------------------------------------------------------------------------

    def largest(self, array) -> float:
        """Return the largest absolute value of a field or of colours."""
        self._find_largest(array)
        return float(self.backend.download(self.extreme)[0])

    def largest_later(self, array):
        """Return a function that waits for the largest absolute value, and for nothing that is queued after this."""
        self._find_largest(array)
        arrival = self.backend.fetch(self.extreme, self.fetched)

        def wait():
            self.backend.wait(arrival)
            return float(self.fetched[0])

        return wait

    def largest_into(self, colours, factor, limit):
        """Set ``limit[0]`` to `factor` times the largest absolute value."""
        self._find_largest(colours)
        self.single("cells", "take_limit", self.number(factor), self.extreme, limit)

    def _find_largest(self, array):
        self.extreme.fill(0)
        name = {3: "largest", 4: "largest_in_colours"}[array.ndim]
        grid = (BLOCKS_OF_A_PLANE, self.slab.planes)
        self.modules["cells"].launch_grid(name, grid, (SUM_THREADS,), (array, self.extreme))

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
        planes = self.slab.planes
        sums = self.backend.zeros(planes, "f8")
        for field in fields:
            self.modules["cells"].launch_grid(name, (planes,), (SUM_THREADS,), (field, sums))
        return self.backend.download(sums)

    # --- projection and advection -----------------------------------------------------------------

    def divergence(self, velocity, factor, colours):
        """Set colours to `factor` times the sum of the central differences."""
        self._cells("cells", "divergence", *velocity, self.number(factor), colours)

    def subtract_gradient(self, velocity, p, factor):
        """Subtract `factor` times the central differences of p, colours."""
        self._cells("cells", "subtract_gradient", *velocity, p, self.number(factor))

    def advect(self, source, out, flow, scratch=None):
        """Set `out` to what a flow carries; the scratch memory is not needed: a thread makes its ghosts."""
        planes = self._planes(source)
        arguments = *flow.velocity, *self._numbers(flow.scale, source.ghosts)
        self._cells("advection", "advect", source.cells, *planes, out, *arguments)

    def advect_velocity(self, out, flow, scratch=None):
        """Set `out`, three fields, to what the velocity brings of itself from planes of the slab and its halo."""
        arguments = *out, *flow.velocity, self.number(flow.scale)
        self._cells("advection", "advect_velocity", *arguments)

    def correct(self, source, forward, out, flow, scratch=None):
        """Set `out` to `forward` with half the error of going there and back taken off."""
        planes = self._planes(source)
        arguments = *flow.velocity, *self._numbers(flow.scale, source.ghosts)
        self._cells("advection", "correct", source.cells, forward, *planes, out, *arguments)

    def _planes(self, source):
        """Return which global plane is the first of a source, and how many there are."""
        return np.int32(self.slab.first - source.depth), np.int32(len(source.cells))

    def _numbers(self, scale, ghosts):
        return map(self.number, (scale, *ghosts.axis_signs))

    # --- forces and sources -----------------------------------------------------------------------

    def buoyancy(self, velocity, density, factors):
        """Add the density times a factor to each component."""
        self._cells("cells", "buoyancy", *velocity, density, *map(self.number, factors))

    def curl_length(self, velocity, out):
        """Set `out` to the length of the vorticity."""
        self._cells("cells", "curl_length", *velocity, self.number(0.5 / self.slab.spacing), out)

    def confine(self, velocity, length, strength, out):
        """Add vorticity confinement."""
        factors = 0.5 / self.slab.spacing, strength * self.slab.spacing, SMALLEST
        self._cells("cells", "confine", *velocity, length, *map(self.number, factors), *out)

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
