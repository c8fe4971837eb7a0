"""Multigrid on CPU threads (Numba): coarse grids, restriction and prolongation.

A coarse grid is a field, not taken apart by colour, with a halo plane at each end. All its axes
wrap around; behind a wall the coupling to what lies there is 0. Tables are those of
`hybrid_nbody.fluid.solvers.coarsening`.
"""

from typing import Any, NamedTuple

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.kernels.cpu.boundary import Image, ghost, image_if
from hybrid_nbody.fluid.kernels.cpu.layout import (
    compiled_with_threads,
    first_column,
    inlined,
    linked,
    linked_with_arrays,
    plane_above,
    plane_below,
    row_after,
    row_before,
)
from hybrid_nbody.fluid.kernels.cpu.linear_systems import LinearSystems
from hybrid_nbody.fluid.kernels.multigrid_contract import CoarseSystem, Tables
from hybrid_nbody.fluid.stencil import Stencil

FEW_CELLS = 1 << 14
"""Up to this size of a grid, waking threads takes longer than the work."""


class Coefficients(NamedTuple):
    """A stencil in the working type; see `hybrid_nbody.fluid.stencil.Stencil`."""

    shift: Any
    neighbour: Any


# ---- Coarse grids --------------------------------------------------------------------------------


@linked
def wrap(row, line):
    """Copy a row, with its last cell before it and its first one behind it."""
    line[0] = row[row.size - 1]
    line[row.size + 1] = row[0]
    for i in range(row.size):
        line[i + 1] = row[i]


@linked
def residual_row(z, y, system, line, result):
    """Fill `result` with the residuals of a row; return what y and z add to its diagonal.

    `system` holds x, b, coefficients and couplings; `line` is scratch memory.
    """
    x, b, coefficients, couplings = system
    along_x, along_y, along_z = couplings
    before = along_x[0]
    after = along_x[1]
    to_front = along_y[0, y]
    to_back = along_y[1, y]
    to_below = along_z[0, z - 1]
    to_above = along_z[1, z - 1]
    front = x[z, y - 1 if y else x.shape[1] - 1]
    back = x[z, y + 1 if y + 1 < x.shape[1] else 0]
    below = x[z - 1, y]
    above = x[z + 1, y]
    here = x[z, y]
    rhs = b[z, y]
    diagonal = along_y[2, y] + along_z[2, z - 1]
    wrap(here, line)
    for i in range(here.size):
        in_row = before[i] * line[i] + after[i] * line[i + 2]
        around = in_row + (to_front * front[i] + to_back * back[i])
        around += to_below * below[i] + to_above * above[i]
        around -= (along_x[2, i] + diagonal) * here[i]
        result[i] = (rhs[i] - coefficients.shift * here[i]) + coefficients.neighbour * around
    return diagonal


@linked_with_arrays
def sweep_plane(z, colour, system):
    """Relax the cells of one colour in a plane; `colour` is theirs where z is 0."""
    x, _, coefficients, couplings = system
    line = np.empty(x.shape[2] + 2, x.dtype)
    change = np.empty(x.shape[2], x.dtype)
    for y in range(x.shape[1]):
        diagonal = residual_row(z, y, system, line, change)
        row = x[z, y]
        along_x = couplings[0]
        for i in range(row.size):
            laplacian = along_x[2, i] + diagonal
            change[i] /= coefficients.shift + coefficients.neighbour * laplacian
        for i in range((colour + z + y) & 1, row.size, 2):
            row[i] += change[i]


@compiled_with_threads
def sweep(colour, first, x, b, coefficients, couplings):
    """Relax the cells of one colour; `first` is the global number of the first plane."""
    system = (x, b, coefficients, couplings)
    colour_at_0 = colour + first - 1
    if x.size <= FEW_CELLS:
        for z in range(1, x.shape[0] - 1):
            sweep_plane(z, colour_at_0, system)
    else:
        each_on_threads(sweep_plane, 1, x.shape[0] - 1, (colour_at_0, system))


# ---- Restriction ---------------------------------------------------------------------------------


@linked
def add_average(weight, row, along_x, result):
    """Add `weight` times the averages of a row."""
    cells, share = along_x
    for k in range(result.size):
        total = share[0, k] * row[cells[0, k]] + share[1, k] * row[cells[1, k]]
        result[k] += weight * (total + share[2, k] * row[cells[2, k]])


@linked_with_arrays
def restrict_plane(z, system, along_x, along_y, rows):
    """Average the residuals of a plane along x and y."""
    x = system[0]
    line = np.empty(x.shape[2] + 2, x.dtype)
    residual = np.empty(x.shape[2], x.dtype)
    for k in range(rows.shape[1]):
        rows[z, k] = 0
        for tap in range(along_y.weight.shape[0]):
            weight = along_y.weight[tap, k]
            if weight > 0:
                residual_row(z, np.int64(along_y.cells[tap, k]), system, line, residual)
                add_average(weight, residual, along_x, rows[z, k])


@compiled_with_threads
def restrict_rows(x, b, coefficients, couplings, along_x, along_y, rows):
    """Average the residuals of a coarse grid along x and y."""
    system = (x, b, coefficients, couplings)
    if x.size <= FEW_CELLS:
        for z in range(1, x.shape[0] - 1):
            restrict_plane(z, system, along_x, along_y, rows)
    else:
        each_on_threads(restrict_plane, 1, x.shape[0] - 1, (system, along_x, along_y, rows))


@linked
def restrict_to_plane(k, rows, along_z, coarse):
    """Average along z what was averaged along x and y, for one plane of the coarser grid."""
    cells, share = along_z
    for y in range(coarse.shape[1]):
        lines = (rows[cells[0, k], y], rows[cells[1, k], y], rows[cells[2, k], y])
        for i in range(coarse.shape[2]):
            total = share[0, k] * lines[0][i] + share[1, k] * lines[1][i]
            coarse[k + 1, y, i] = total + share[2, k] * lines[2][i]


@compiled_with_threads
def restrict_planes(rows, along_z, coarse):
    """Average along z what was averaged along x and y, halo planes included."""
    each_on_threads(restrict_to_plane, 0, coarse.shape[0] - 2, (rows, along_z, coarse))


@inlined
def neighbouring_row(x, cell, neighbour, sign):
    """Return a neighbouring row and its image; a wall has the ghosts of the row itself.

    `cell` is the colour, plane and row of a cell, `neighbour` plane and row beside it.
    """
    colour, z, y = cell
    at_wall = neighbour[0] == z and neighbour[1] == y
    image = image_if(at_wall, Image(sign, None))
    row = x[colour, z, y] if at_wall else x[1 - colour, neighbour[0], neighbour[1]]
    return row, image


@linked
def wrap_colour(here, others, first, rule, grid, line):
    """Copy the other cells of a row and what lies behind its ends; return the cells of `here`."""
    number = (grid.columns - first + 1) // 2
    other_number = (grid.columns + first) // 2
    low = ghost(here[0], Image(rule.x_low, None))
    high = ghost(here[number - 1], Image(rule.x_high, None))
    line[0] = others[other_number - 1] if grid.wraps else low
    line[other_number + 1] = others[0] if grid.wraps else high
    for c in range(other_number):
        line[c + 1] = others[c]
    return number


@linked
def residual_of_colour(cell, x, b, rule, grid, scratch):
    """Store the residuals of the cells of one colour in a row, given as colour, plane and row.

    `scratch` holds memory for a row and the result, (2, half): at 0 for even x, at 1 for odd x.
    """
    colour, z, y = cell
    line, result = scratch
    first = first_column(colour, z, y, grid)
    here = x[colour, z, y]
    rhs = b[colour, z, y]
    residual = result[first]
    number = wrap_colour(here, x[1 - colour, z, y], first, rule, grid, line)
    front, image_front = neighbouring_row(x, cell, (z, row_before(y, grid)), rule.y_low)
    back, image_back = neighbouring_row(x, cell, (z, row_after(y, grid)), rule.y_high)
    below, image_below = neighbouring_row(x, cell, (plane_below(z, grid), y), rule.z_low)
    above, image_above = neighbouring_row(x, cell, (plane_above(z, grid), y), rule.z_high)
    before = line[first:]
    behind = line[first + 1 :]
    for c in range(number):
        along_y = ghost(front[c], image_front) + ghost(back[c], image_back)
        around = (before[c] + behind[c]) + along_y
        around += ghost(below[c], image_below) + ghost(above[c], image_above)
        around -= x.dtype.type(6) * here[c]
        residual[c] = (rhs[c] - rule.shift * here[c]) + rule.neighbour * around


@linked_with_arrays
def restrict_finest_plane(z, system, along_x, along_y, rows, grid):
    """Average the residuals of a plane of the finest grid along x and y."""
    x, b, rule = system
    half = (grid.columns + 1) // 2
    line = np.empty(half + 2, x.dtype)
    residual = np.zeros((2, half), x.dtype)
    for k in range(rows.shape[1]):
        rows[z, k] = 0
        for tap in range(along_y.weight.shape[0]):
            weight = along_y.weight[tap, k]
            if weight > 0:
                y = np.int64(along_y.cells[tap, k])
                for colour in range(2):
                    residual_of_colour((colour, z, y), x, b, rule, grid, (line, residual))
                add_average(weight, residual.reshape(-1), along_x, rows[z, k])


@compiled_with_threads
def restrict_finest_rows(x, b, rule, along_x, along_y, rows, grid):
    """Average the residuals of the finest grid along x and y."""
    given = ((x, b, rule), along_x, along_y, rows, grid)
    each_on_threads(restrict_finest_plane, 1, grid.planes + 1, given)


# ---- Prolongation --------------------------------------------------------------------------------


@linked
def interpolate_row(z, y, coarse, along_y, along_z, line):
    """Fill `line` with coarse values at the location of a fine row."""
    low = along_z.lower[z]
    high = along_z.upper[z]
    front = along_y.lower[y]
    back = along_y.upper[y]
    rows = (coarse[low, front], coarse[low, back], coarse[high, front], coarse[high, back])
    weights = (along_y.lower_weight[y], along_y.upper_weight[y])
    below = along_z.lower_weight[z]
    above = along_z.upper_weight[z]
    for k in range(line.size):
        lower = weights[0] * rows[0][k] + weights[1] * rows[1][k]
        line[k] = below * lower + above * (weights[0] * rows[2][k] + weights[1] * rows[3][k])


@linked_with_arrays
def prolong_to_plane(z, coarse, along_x, along_y, along_z, x):
    """Add interpolated coarse values to a plane of a coarse grid."""
    line = np.empty(coarse.shape[2], x.dtype)
    for y in range(x.shape[1]):
        interpolate_row(z - 1, y, coarse, along_y, along_z, line)
        row = x[z, y]
        for i in range(row.size):
            low = along_x.lower_weight[i] * line[along_x.lower[i]]
            row[i] += low + along_x.upper_weight[i] * line[along_x.upper[i]]


@compiled_with_threads
def prolong(coarse, along_x, along_y, along_z, x):
    """Add interpolated coarse values to a coarse grid."""
    if x.size <= FEW_CELLS:
        for z in range(1, x.shape[0] - 1):
            prolong_to_plane(z, coarse, along_x, along_y, along_z, x)
    else:
        given = (coarse, along_x, along_y, along_z, x)
        each_on_threads(prolong_to_plane, 1, x.shape[0] - 1, given)


@linked
def prolong_to_colour(line, along_x, first, number, tolerance, row):
    """Add a line of coarse values to the cells of one colour in a row.

    Returns whether one of them changed by more than `tolerance`.
    """
    lower = along_x.lower[first]
    upper = along_x.upper[first]
    lower_weight = along_x.lower_weight[first]
    upper_weight = along_x.upper_weight[first]
    changed = 0
    for c in range(number):
        change = lower_weight[c] * line[lower[c]] + upper_weight[c] * line[upper[c]]
        row[c] += change
        changed |= abs(change) > tolerance
    return changed


@linked_with_arrays
def prolong_to_finest_plane(z, coarse, tables, tolerance, x, grid, changed):
    """Add interpolated coarse values to a plane of the finest grid.

    ``changed[z]`` becomes whether one of its cells changed by more than `tolerance`.
    """
    along_x, along_y, along_z = tables
    line = np.empty(coarse.shape[2], x.dtype)
    any_cell = 0
    for y in range(grid.rows):
        interpolate_row(z - 1, y, coarse, along_y, along_z, line)
        for colour in range(2):
            first = first_column(colour, z, y, grid)
            number = (grid.columns - first + 1) // 2
            row = x[colour, z, y]
            any_cell |= prolong_to_colour(line, along_x, first, number, tolerance, row)
    changed[z] = any_cell


@compiled_with_threads
def prolong_to_finest(coarse, along_x, along_y, along_z, tolerance, x, grid, changed):
    """Add interpolated coarse values to the finest grid; see `prolong_to_finest_plane`."""
    given = (coarse, (along_x, along_y, along_z), tolerance, x, grid, changed)
    each_on_threads(prolong_to_finest_plane, 1, grid.planes + 1, given)


class MultigridKernels:
    """The operations on coarse grids; see `hybrid_nbody.fluid.kernels.multigrid_contract`.

    Parameters
    ----------
    kernels : Kernels
        Those of the finest grid.
    """

    def __init__(self, kernels: LinearSystems):
        self.kernels = kernels
        self.number = kernels.number

    def _coefficients(self, equation: Stencil) -> Coefficients:
        return Coefficients(self.number(equation.shift), self.number(equation.neighbour))

    def clear(self, array: Array) -> None:
        """See `MultigridKernels`."""
        array.fill(0)

    def subtract_mean(self, array: Array) -> None:
        """See `MultigridKernels`."""
        array[1:-1] -= self.number(array[1:-1].mean(dtype="f8"))

    def sweep(self, colour: int, system: CoarseSystem) -> None:
        """See `MultigridKernels`."""
        x, b, equation, couplings, first = system
        sweep(colour, first, x, b, self._coefficients(equation), couplings)

    def restrict_rows(self, system: CoarseSystem, tables: Tables, rows: Array) -> None:
        """See `MultigridKernels`."""
        x, b, equation, couplings, _ = system
        restrict_rows(x, b, self._coefficients(equation), couplings, *tables, rows)

    def restrict_finest_rows(
        self, x: Array, b: Array, equation: Stencil, tables: Tables, rows: Array
    ) -> None:
        """See `MultigridKernels`; the cells of the table of x are counted by colour."""
        rule = self.kernels.rule(equation)
        restrict_finest_rows(x, b, rule, *tables, rows, self.kernels.grid)

    def restrict_planes(self, rows: Array, table: tuple[Array, ...], coarse: Array) -> None:
        """See `MultigridKernels`."""
        restrict_planes(rows, table, coarse)

    def prolong(self, coarse: Array, tables: Tables, x: Array) -> None:
        """See `MultigridKernels`."""
        prolong(coarse, *tables, x)

    def prolong_to_finest(self, coarse: Array, tables: Tables, tolerance: float, x: Array) -> None:
        """See `MultigridKernels`."""
        changed = np.zeros(self.kernels.grid.planes + 1, np.bool_)
        given = (self.number(tolerance), x, self.kernels.grid, changed)
        prolong_to_finest(coarse, *tables, *given)
        self.kernels.changed[0] |= changed.any()
