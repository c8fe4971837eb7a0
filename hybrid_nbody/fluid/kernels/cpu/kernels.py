"""The fluid kernels on CPU threads (Numba); twin of ``gpu``.

Arrays are those of a `Slab`. Loops are compiled in the modules ``cpu_*``, each for one part of a
step; here, arguments are brought into the working type, and solves are counted.
"""

import functools
import math

import numpy as np

from hybrid_nbody.fluid.kernels.cpu import (
    advection as cpu_transport,
)
from hybrid_nbody.fluid.kernels.cpu import (
    colours as cpu_colours,
)
from hybrid_nbody.fluid.kernels.cpu import (
    forces as cpu_fields,
)
from hybrid_nbody.fluid.kernels.cpu import (
    ghosts as cpu_ghosts,
)
from hybrid_nbody.fluid.kernels.cpu import (
    lexicographic as cpu_order,
)
from hybrid_nbody.fluid.kernels.cpu import (
    red_black as cpu_sweeps,
)
from hybrid_nbody.fluid.kernels.cpu import (
    reductions as cpu_sums,
)
from hybrid_nbody.fluid.kernels.cpu import (
    residual as cpu_equations,
)
from hybrid_nbody.fluid.kernels.cpu.layout import (
    aligned_zeros,
    cells_of_rows,
    make_grid,
    tables_of_rows,
    walls_of_rows,
)
from hybrid_nbody.fluid.solvers.stencil import SCALAR

BYTES_IN_CACHE = 12 << 20
"""Bytes of a system that about fit into the last cache, where more iterations in a pass over the
grid save nothing."""


class Kernels:
    """Operations on the fields of one rank's planes.

    Parameters
    ----------
    backend : CpuBackend
        The threads.
    slab : Slab
        The planes.
    dtype : {"f4", "f8"}
        The working type.

    Attributes
    ----------
    changed : (1,) array of int32
        Not 0 if a sweep of this iteration changed a cell by more than the tolerance.
    """

    def __init__(self, backend, slab, dtype):
        self.backend = backend
        self.slab = slab
        self.dtype = np.dtype(dtype)
        self.kind = self.dtype.type
        self.grid = make_grid(slab)
        self.box = cpu_ghosts.make_box(slab)
        self.blocks = min(backend.threads, slab.planes)
        self.cells = cells_of_rows(slab.cells[0], self.grid.pitch, self.dtype)
        self.walls = walls_of_rows(slab.cells[0], self.grid.pitch, slab.periodic[0])
        self.signs = np.array(
            [*(slab.velocity_parity(component) for component in range(3)), SCALAR], self.dtype
        )
        self.changed = np.zeros(1, np.int32)
        size = 4 * slab.shape[0] * slab.shape[1] * self.grid.pitch * self.dtype.itemsize
        self.longest_pass = 1 if size <= BYTES_IN_CACHE else cpu_sweeps.LONGEST_PASS
        self.copies = np.zeros(0, self.dtype)
        self._signs = functools.cache(self._signs_of)
        self._equations = functools.cache(self._equations_of)
        self.begin_solve()
        self.reset_statistics()

    def field(self):
        """Return zeros of the slab's shape."""
        return np.zeros(self.slab.shape, self.dtype)

    def colours(self, *number):
        """Return zeros for a field taken apart by colour, (2, planes + 2, ny, pitch), or for a number of fields."""
        return aligned_zeros((*number, 2, *self.slab.shape[:2], self.grid.pitch), self.dtype)

    def fill(self, array, value):
        """Fill a field, halos and all, or colours with zeros: padding stays zero."""
        array.fill(value)

    # ---- Fields and colours ----

    def split(self, field, colours):
        """Take a field apart."""
        cpu_colours.split(field.reshape(-1), colours.reshape(-1), self.grid)

    def split_twice(self, field, first, second):
        """Take a field apart into two arrays of colours."""
        self.split(field, first)
        cpu_sweeps.copy(first.reshape(-1), second.reshape(-1), self.grid)

    def split_carried(self, field, factor, carried, b, x):
        """Take ``field + factor * carried`` apart into b, and `carried` into x."""
        flat = (
            field.reshape(-1),
            self.kind(factor),
            carried.reshape(-1),
            b.reshape(-1),
            x.reshape(-1),
        )
        cpu_colours.split_carried(*flat, self.grid)

    def clear(self, colours):
        """Let a field taken apart be zero."""
        cpu_colours.clear(colours.reshape(-1), self.grid)

    def merge(self, colours, field):
        """Put a field together, halo planes included."""
        cpu_colours.merge(colours.reshape(-1), field.reshape(-1), self.grid)

    # ---- Linear systems ----

    def relaxes(self, halo) -> bool:
        """Return whether `relax` does all of a solve with such neighbours, or they are asked after every sweep."""
        return halo.alone

    def relax(self, x, b, stencil, iterations, tolerance, room, halo=None):
        """Solve by red-black Gauss-Seidel iterations, on one rank that owns all planes.

        Parameters
        ----------
        x, b : array by colour
            First guess, which becomes the solution, halo planes included, and right-hand side.
        stencil : Stencil
            The system.
        iterations : int
            Most iterations.
        tolerance : float
            Iterations end when none of the cells changed by more.
        room : flat array or None
            Memory that is free meanwhile.
        halo : HaloExchange or FullGrid, optional
            How ranks see each other's planes, where `relaxes` says so.
        """
        longest, kept = self._passes(x, tolerance, room)
        system = self._system(x, b, stencil, stencil.lagging)
        done = cpu_sweeps.relax(
            *system, iterations, self.kind(tolerance), longest, kept, self.blocks, self.grid
        )
        self._count(done, done < iterations)
        if halo:
            halo.fill(*x)

    def _passes(self, x, tolerance, room):
        """Return the most iterations of a pass, and where the first guess is kept if one may do too many."""
        if room is not None and room.size >= x.size:
            return self.longest_pass, room[: x.size]
        return (self.longest_pass if tolerance < 0 else 1), x.reshape(-1)[:0]

    def begin_solve(self):
        """Start a solve by single sweeps."""
        self.changed[0] = 0
        self.done = False
        self.iterations_done = 0
        self.cut_short = False

    def sweep(self, colour, x, b, stencil, factors, tolerance):
        """Relax the cells of one colour once, and note in `changed` whether one changed by more than the tolerance.

        What is missing in a cell's equation times one of the eight factors is its change: 1 is
        added to the index for a wall of x beside it, 2 for one of y, 4 for one of z.
        """
        if not self.done:
            system = self._system(x, b, stencil, factors)
            self.changed[0] |= cpu_sweeps.sweep(colour, *system, self.kind(tolerance), self.grid)

    def end_iteration(self):
        """Look at `changed` after both sweeps: the solve is done if nothing changed."""
        if not self.done:
            self.iterations_done += 1
            self.done = not self.changed[0]
            self.changed[0] = 0

    def stopped(self):
        """Return whether the solve is done before its last iteration."""
        self.cut_short = self.done
        return self.done

    def end_solve(self):
        """Add the solve to the statistics."""
        self._count(self.iterations_done, self.cut_short)

    def relax_lexicographic(self, x, b, stencil, iterations):
        """Relax the cells of a field `iterations` times, in the order of memory, on one thread of one rank."""
        diagonal = self.kind(stencil.diagonal)
        cpu_order.relax_in_order(x, b, self._rule(stencil), diagonal, iterations, self.grid)
        self._count(iterations, False)

    def residual(self, x, b, stencil):
        """Return the largest residual of this rank's cells."""
        return float(
            cpu_equations.largest_missing(*self._system(x, b, stencil, (1.0,) * 8), self.grid)
        )

    def exceeds(self, x, b, stencil, limit):
        """Note in `changed` whether a residual is larger than ``limit[0]``."""
        self.changed[0] |= self.residual(x, b, stencil) > limit[0]

    def statistics(self):
        """Return the number of solves, of their iterations, and of the solves that ended before their last."""
        return dict(self.counts)

    def reset_statistics(self):
        """Count from zero."""
        self.counts = {"solves": 0, "iterations": 0, "early": 0}

    def _count(self, iterations, early):
        for name, number in (("solves", 1), ("iterations", iterations), ("early", early)):
            self.counts[name] += int(number)

    def _signs_of(self, parity):
        return tuple(map(self.kind, parity))

    def _system(self, x, b, stencil, factors):
        return x.reshape(-1), b.reshape(-1), *self._equations(stencil, factors)

    def _rule(self, stencil):
        return cpu_equations.Rule(
            self.kind(stencil.own), self.kind(stencil.neighbour), *self._signs(stencil.parity)
        )

    def _equations_of(self, stencil, factors):
        factors = np.array(factors, self.dtype)
        return self._rule(stencil), tables_of_rows(
            self.cells, self.walls, stencil.parity[0], factors
        )

    # ---- Fields ----

    def divergence(self, u, v, w, factor, colours):
        """Store, by colour, `factor` times the sum of the central differences f[i + 1] - f[i - 1] of u, v, w."""
        velocity = (component.reshape(-1) for component in (u, v, w))
        normal = self._signs(tuple(self.signs.diagonal()))
        cpu_colours.divergence(*velocity, normal, self.kind(factor), colours.reshape(-1), self.grid)

    def subtract_gradient(self, u, v, w, p, factor):
        """Subtract `factor` times the central differences of p, an array by colour, from the velocity."""
        velocity = (component.reshape(-1) for component in (u, v, w))
        cpu_colours.subtract_gradient(*velocity, p.reshape(-1), self.kind(factor), self.grid)

    def buoyancy(self, u, v, w, density, factors):
        """Add `factors` times the density to the components of the velocity."""
        for component, factor in zip((u, v, w), factors, strict=True):
            cpu_fields.add_multiples(component, self.kind(factor), density, self.grid)

    def curl_length(self, u, v, w, out):
        """Fill `out` with the length of the vorticity."""
        cpu_fields.curl_length(u, v, w, self.signs, self._per_length(), out, self.grid)

    def confine(self, u, v, w, length, strength, new_u, new_v, new_w):
        """Add the force of vorticity confinement, ``strength * h * (N x curl u)`` with N the unit grad of `length`."""
        strength = self.kind(strength * self.slab.spacing)
        velocities = (self.signs, self._per_length(), strength, new_u, new_v, new_w)
        cpu_fields.confine(u, v, w, length, *velocities, self.grid)

    def _per_length(self):
        return self.kind(0.5 / self.slab.spacing)

    # ---- Transport ----

    def advect(self, source, below, out, u, v, w, scale, parity, room=None):
        """Fill `out` with what the velocity carries to each cell.

        Parameters
        ----------
        source : (m, ny, nx) array
            All planes that traces can reach; the first is `below` planes under the slab.
        below : int
            1 for a field of the slab.
        out, u, v, w : array
            Fields of the slab.
        scale : float
            Cells that a velocity of 1 moves.
        parity : tuple of int
            Of the source.
        room : flat array or None
            Memory that is free meanwhile, for a copy of the source with ghosts.
        """
        origin = self.slab.first - below
        (ghosted,) = self._with_ghosts((source,), origin, parity, room)
        flat = (array.reshape(-1) for array in (out, u, v, w))
        cpu_transport.advect(ghosted, origin, *flat, self.kind(-scale), self.box)

    def advect_velocity(self, outs, u, v, w, scale, room=None):
        """Fill `outs`, three fields, with what the velocity carries of itself; traces reach a halo plane at most."""
        for component, (source, out) in enumerate(zip((u, v, w), outs, strict=True)):
            self.advect(source, 1, out, u, v, w, scale, self.slab.velocity_parity(component), room)

    def correct(self, source, forward, below, out, u, v, w, scale, parity, room=None):
        """Fill `out` with the MacCormack scheme's correction of `forward`, what `advect` made of `source`."""
        origin = self.slab.first - below
        ghosted = self._with_ghosts((source, forward), origin, parity, room)
        fields = (source.reshape(-1), forward.reshape(-1))
        flat = (array.reshape(-1) for array in (out, u, v, w))
        cpu_transport.correct(*ghosted, fields, origin, *flat, self.kind(-scale), self.box)

    def _with_ghosts(self, fields, origin, parity, room):
        """Return flat copies of fields with ghosts, in `room` if they fit."""
        shape = cpu_ghosts.ghosted_shape(fields[0])
        copies = self._memory((len(fields), *shape), room)
        for field, copy in zip(fields, copies, strict=True):
            cpu_ghosts.fill_ghosted(field, origin, copy, self._signs(parity), self.box)
        return [copy.reshape(-1) for copy in copies]

    def _memory(self, shape, room):
        """Return an array that lies in `room`, or else in memory of our own, which is kept."""
        size = math.prod(shape)
        if room is None or room.size < size:
            if self.copies.size < size:
                self.copies = np.zeros(size, self.dtype)
            room = self.copies
        return room[:size].reshape(shape)

    # ---- Sources ----

    def add_box(self, field, box, value):
        """Add to the cells of a box (x0, x1, y0, y1, z0, z1), half-open, in global cells."""
        self._part(field, box)[...] += self.kind(value)

    def set_box(self, field, box, value):
        """Set the cells of a box."""
        self._part(field, box)[...] = value

    def add_sphere(self, field, centre, radius, value):
        """Add to the cells whose centres are within `radius` of `centre`, in global cells."""
        for plane, inside in self._in_sphere(field, centre, radius):
            plane[inside] += self.kind(value)

    def set_sphere(self, field, centre, radius, value):
        """Set the cells of a sphere."""
        for plane, inside in self._in_sphere(field, centre, radius):
            plane[inside] = value

    def _part(self, field, box):
        low, high = (min(max(z - self.slab.first, 0), self.slab.planes) for z in box[4:])
        return field[1:-1][low:high, box[2] : box[3], box[0] : box[1]]

    def _in_sphere(self, field, centre, radius):
        """Yield planes of a field, and which of their cells lie in a sphere."""
        nx, ny, _ = self.slab.cells
        y, x = np.ogrid[:ny, :nx]
        squares = (x - centre[0]) ** 2 + (y - centre[1]) ** 2
        for z, plane in enumerate(field[1:-1], self.slab.first):
            if abs(z - centre[2]) <= radius:
                yield plane, squares + (z - centre[2]) ** 2 <= radius**2

    # ---- Sums ----

    def largest(self, array):
        """Return the largest absolute value of this rank's cells."""
        result = np.empty(self.slab.planes, self.dtype)
        cpu_sums.largest_per_plane(array, result)
        return float(result.max())

    def largest_later(self, array):
        """Return a function that returns the largest absolute value, which another device would find meanwhile."""
        value = self.largest(array)
        return lambda: value

    def largest_into(self, colours, factor, limit):
        """Store `factor` times the largest absolute value of an array by colour in ``limit[0]``."""
        largest = cpu_equations.largest_cell(colours.reshape(-1), self.cells.reshape(-1), self.grid)
        limit[0] = self.kind(factor) * largest

    def plane_sums(self, field):
        """Return the sum of every plane, (planes,) float64."""
        return self._plane_sums(field, False, False)

    def plane_sums_with_ghosts(self, field):
        """Return sums in which a cell at a wall of x or y counts twice, at both four times."""
        periodic_x, periodic_y, _ = self.slab.periodic
        return self._plane_sums(field, not periodic_x, not periodic_y)

    def _plane_sums(self, field, walled_x, walled_y):
        result = np.empty(self.slab.planes)
        cpu_sums.plane_sums(field, walled_x, walled_y, result)
        return result

    def plane_squares(self, *fields):
        """Return the sum over fields of the squares of every plane."""
        result = np.zeros(self.slab.planes)
        for field in fields:
            cpu_sums.add_plane_squares(field, result)
        return result
