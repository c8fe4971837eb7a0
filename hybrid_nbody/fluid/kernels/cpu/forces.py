"""Forces on CPU threads: vorticity confinement, and multiples of other fields."""

import numpy as np
from numba import prange

from hybrid_nbody.fluid.kernels.cpu.layout import (
    compiled,
    compiled_parallel,
    inlined,
    plane_above,
    plane_below,
    row_after,
    row_before,
)
from hybrid_nbody.fluid.kernels.reference import SMALLEST


@inlined
def along_x(row, c, wraps, sign):
    """Return the next cell of a row minus the previous one."""
    last = row.size - 1
    after = row[c + 1] if c < last else (row[0] if wraps else sign * row[last])
    before = row[c - 1] if c > 0 else (row[last] if wraps else sign * row[0])
    return after - before


@inlined
def along_y(field, z, y, c, sign, grid):
    """Return the cell in the next row minus that in the previous one."""
    front = row_before(y, grid)
    back = row_after(y, grid)
    after = field[z, back, c]
    before = field[z, front, c]
    return (sign * after if back == y else after) - (sign * before if front == y else before)


@inlined
def along_z(field, z, y, c, sign, grid):
    """Return the cell in the next plane minus that in the previous one."""
    below = plane_below(z, grid)
    above = plane_above(z, grid)
    after = field[above, y, c]
    before = field[below, y, c]
    return (sign * after if above == z else after) - (sign * before if below == z else before)


@inlined
def curl_at(z, y, c, u, v, w, signs, scale, grid):
    """Return the vorticity of a cell; `scale` is 1 / (2 h)."""
    x_part = along_y(w, z, y, c, signs[2, 1], grid) - along_z(v, z, y, c, signs[1, 2], grid)
    y_part = along_z(u, z, y, c, signs[0, 2], grid) - along_x(w[z, y], c, grid.wraps, signs[2, 0])
    z_part = along_x(v[z, y], c, grid.wraps, signs[1, 0]) - along_y(u, z, y, c, signs[0, 1], grid)
    return scale * x_part, scale * y_part, scale * z_part


@compiled
def curl_length_plane(z, u, v, w, signs, scale, out, grid):
    """Fill a plane with the length of the vorticity."""
    for y in range(grid.rows):
        for c in range(grid.columns):
            cx, cy, cz = curl_at(z, y, c, u, v, w, signs, scale, grid)
            out[z, y, c] = np.sqrt(cx * cx + cy * cy + cz * cz)


@inlined
def direction_at(z, y, c, length, signs, scale, grid):
    """Return the unit gradient of a scalar."""
    x_part = scale * along_x(length[z, y], c, grid.wraps, signs[3, 0])
    y_part = scale * along_y(length, z, y, c, signs[3, 1], grid)
    z_part = scale * along_z(length, z, y, c, signs[3, 2], grid)
    size = np.sqrt(x_part * x_part + y_part * y_part + z_part * z_part) + type(scale)(SMALLEST)
    return x_part / size, y_part / size, z_part / size


@compiled
def confine_plane(z, u, v, w, length, signs, scale, strength, new_u, new_v, new_w, grid):
    """Add vorticity confinement to a plane."""
    for y in range(grid.rows):
        for c in range(grid.columns):
            cx, cy, cz = curl_at(z, y, c, u, v, w, signs, scale, grid)
            nx, ny, nz = direction_at(z, y, c, length, signs, scale, grid)
            new_u[z, y, c] = u[z, y, c] + strength * (ny * cz - nz * cy)
            new_v[z, y, c] = v[z, y, c] + strength * (nz * cx - nx * cz)
            new_w[z, y, c] = w[z, y, c] + strength * (nx * cy - ny * cx)


@compiled
def add_multiple(plane, factor, other):
    """Add a multiple of a plane to another one."""
    for y in range(plane.shape[0]):
        for c in range(plane.shape[1]):
            plane[y, c] += factor * other[y, c]


# ---- All planes ----------------------------------------------------------------------------------


@compiled_parallel
def curl_length(u, v, w, signs, scale, out, grid):
    """Fill `out` with the length of the vorticity; `scale` is 1 / (2 h).

    `signs`, here and below: (4, 3) array of the parities of u, v, w and of a scalar.
    """
    for z in prange(1, grid.planes + 1):
        curl_length_plane(z, u, v, w, signs, scale, out, grid)


@compiled_parallel
def confine(u, v, w, length, signs, scale, strength, new_u, new_v, new_w, grid):
    """Add vorticity confinement; `strength` is that times h, `length` that of the vorticity."""
    for z in prange(1, grid.planes + 1):
        confine_plane(z, u, v, w, length, signs, scale, strength, new_u, new_v, new_w, grid)


@compiled_parallel
def add_multiples(field, factor, other, grid):
    """Add `factor` times another field."""
    for z in prange(1, grid.planes + 1):
        add_multiple(field[z], factor, other[z])
