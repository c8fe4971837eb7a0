"""Forces on CPU threads: vorticity confinement, and multiples of other fields."""

from typing import NamedTuple

import numpy as np

from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.kernels.cpu.boundary import ghost, images_of
from hybrid_nbody.fluid.kernels.cpu.layout import (
    compiled_with_threads,
    inlined,
    linked,
    plane_above,
    plane_below,
    row_after,
    row_before,
)

U, V, W, LENGTH = range(4)
"""The fields of a table of images."""


class Factors(NamedTuple):
    """The factors of vorticity confinement, in the working type.

    Attributes
    ----------
    per_length : float
        1 / (2 h), of differences.
    strength : float
        That of the confinement, times h.
    """

    per_length: float
    strength: float


@inlined
def along_x(row, c, wraps, images):
    """Return the next cell of a row minus the previous one."""
    last = row.size - 1
    after = row[c + 1] if c < last else end_of_row(row, last, 0, wraps, images.x_high)
    before = row[c - 1] if c > 0 else end_of_row(row, 0, last, wraps, images.x_low)
    return after - before


@inlined
def end_of_row(row, end, other_end, wraps, image):
    """Return what lies behind an end of a row: its other end, or a ghost."""
    return row[other_end] if wraps else ghost(row[end], image)


@inlined
def along_y(field, z, y, c, images, grid):
    """Return the cell in the next row minus that in the previous one."""
    front = row_before(y, grid)
    back = row_after(y, grid)
    after = neighbour(field[z, back, c], back == y, images.y_high)
    before = neighbour(field[z, front, c], front == y, images.y_low)
    return after - before


@inlined
def along_z(field, z, y, c, images, grid):
    """Return the cell in the next plane minus that in the previous one."""
    below = plane_below(z, grid)
    above = plane_above(z, grid)
    after = neighbour(field[above, y, c], above == z, images.z_high)
    before = neighbour(field[below, y, c], below == z, images.z_low)
    return after - before


@inlined
def neighbour(cell, at_wall, image):
    """Return a cell, or the ghost of one that lies at the wall."""
    return ghost(cell, image) if at_wall else cell


@inlined
def curl_at(cell, u, v, w, images, scale, grid):
    """Return the vorticity of a cell (z, y, x); `images` are those of u, v and w."""
    z, y, c = cell
    of_u, of_v, of_w = images
    x_part = along_y(w, z, y, c, of_w, grid) - along_z(v, z, y, c, of_v, grid)
    y_part = along_z(u, z, y, c, of_u, grid) - along_x(w[z, y], c, grid.wraps, of_w)
    z_part = along_x(v[z, y], c, grid.wraps, of_v) - along_y(u, z, y, c, of_u, grid)
    return scale * x_part, scale * y_part, scale * z_part


@linked
def curl_length_plane(z, velocity, images, scale, out, grid):
    """Fill a plane with the length of the vorticity."""
    u, v, w = velocity
    of_velocity = images_of(images, U), images_of(images, V), images_of(images, W)
    for y in range(grid.rows):
        for c in range(grid.columns):
            cx, cy, cz = curl_at((z, y, c), u, v, w, of_velocity, scale, grid)
            out[z, y, c] = np.sqrt(cx * cx + cy * cy + cz * cz)


@inlined
def direction_at(z, y, c, length, images, scale, grid):
    """Return the unit gradient of a scalar, or 0 where it does not change."""
    x_part = scale * along_x(length[z, y], c, grid.wraps, images)
    y_part = scale * along_y(length, z, y, c, images, grid)
    z_part = scale * along_z(length, z, y, c, images, grid)
    size = np.sqrt(x_part * x_part + y_part * y_part + z_part * z_part)
    if size == 0:
        size = type(scale)(1)
    return x_part / size, y_part / size, z_part / size


@linked
def confine_plane(z, velocity, length, images, factors, out, grid):
    """Add vorticity confinement to a plane."""
    u, v, w = velocity
    new_u, new_v, new_w = out
    scale = factors.per_length
    strength = factors.strength
    of_velocity = images_of(images, U), images_of(images, V), images_of(images, W)
    of_length = images_of(images, LENGTH)
    for y in range(grid.rows):
        for c in range(grid.columns):
            cx, cy, cz = curl_at((z, y, c), u, v, w, of_velocity, scale, grid)
            nx, ny, nz = direction_at(z, y, c, length, of_length, scale, grid)
            new_u[z, y, c] = u[z, y, c] + strength * (ny * cz - nz * cy)
            new_v[z, y, c] = v[z, y, c] + strength * (nz * cx - nx * cz)
            new_w[z, y, c] = w[z, y, c] + strength * (nx * cy - ny * cx)


@linked
def add_multiple(z, field, factor, other):
    """Add a multiple of a plane of another field to that of a field."""
    for y in range(field.shape[1]):
        for c in range(field.shape[2]):
            field[z, y, c] += factor * other[z, y, c]


# ---- All planes ----------------------------------------------------------------------------------


@compiled_with_threads
def curl_length(velocity, images, scale, out, grid):
    """Fill `out` with the length of the vorticity.

    Parameters
    ----------
    velocity : tuple of array
        u, v and w.
    images : array
        Of u, v, w and a scalar, from `make_image_table`.
    scale : float
        1 / (2 h).
    out : array
    grid : Grid
    """
    given = (velocity, images, scale, out, grid)
    each_on_threads(curl_length_plane, 1, grid.planes + 1, given)


@compiled_with_threads
def confine(velocity, length, images, factors, out, grid):
    """Fill `out`, three fields, with the velocity and vorticity confinement.

    Parameters
    ----------
    velocity : tuple of array
        u, v and w.
    length : array
        The length of the vorticity.
    images : array
        Of u, v, w and the length, from `make_image_table`.
    factors : Factors
    out : tuple of array
    grid : Grid
    """
    given = (velocity, length, images, factors, out, grid)
    each_on_threads(confine_plane, 1, grid.planes + 1, given)


@compiled_with_threads
def add_multiples(field, factor, other, grid):
    """Add `factor` times another field."""
    each_on_threads(add_multiple, 1, grid.planes + 1, (field, factor, other))
