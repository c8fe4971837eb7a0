"""The pressure: divergence, gradient, and the operator that is one after the other.

``D G = L``: the gradient at a face has the weight of that face (1 between two cells, 2 where the
pressure is given at a face of the box, 0 at a wall), the divergence the open part of it, and the
operator the product of both.
"""

from hybrid_nbody.backends.cells import (
    Cells,
    Int,
    Real,
    Table,
    columns,
    over_cells,
    over_columns,
    over_rows,
    plane_largest,
)

TILE = 16
"""Cells of a row whose coefficients are marked together if they are alike."""


def through(velocity: Cells, opening: Cells, solid: Cells, masked: Int, moving: Int,
            k: Int, j: Int, i: Int) -> Real:  # fmt: skip
    """Return the flux through the low face of an element: of the fluid, and of a solid's motion."""
    flux = velocity[k, j, i]
    if masked == 1:
        flux = opening[k, j, i] * flux
        if moving == 1:
            flux += (1.0 - opening[k, j, i]) * solid[k, j, i]
    return flux


def outflux(
    u: Cells, v: Cells, w: Cells, ax: Cells, ay: Cells, az: Cells, su: Cells, sv: Cells, sw: Cells,
    masked: Int, moving: Int, k: Int, j: Int, i: Int,
) -> Real:  # fmt: skip
    """Return what flows out of a cell, per area of a face; nothing where all is solid."""
    beside = 1.0
    if masked == 1:
        beside = ax[k, j, i] + ax[k, j, i + 1] + ay[k, j, i] + ay[k, j + 1, i]
        beside += az[k, j, i] + az[k + 1, j, i]
    right = through(u, ax, su, masked, moving, k, j, i + 1)
    left = through(u, ax, su, masked, moving, k, j, i)
    back = through(v, ay, sv, masked, moving, k, j + 1, i)
    front = through(v, ay, sv, masked, moving, k, j, i)
    above = through(w, az, sw, masked, moving, k + 1, j, i)
    below = through(w, az, sw, masked, moving, k, j, i)
    total = (right - left) + (back - front) + (above - below)
    return total if beside > 0.0 else 0.0


@over_columns
def divergence(
    k: Int, j: Int, i: Int, u: Cells, v: Cells, w: Cells, ax: Cells, ay: Cells, az: Cells,
    su: Cells, sv: Cells, sw: Cells, masked: Int, moving: Int, factor: Real, out: Cells,
) -> None:  # fmt: skip
    """Set a cell to a multiple of what flows out of it."""
    out[k, j, i] = factor * outflux(u, v, w, ax, ay, az, su, sv, sw, masked, moving, k, j, i)


@plane_largest
def largest_divergence(
    k: Int, j: Int, i: Int, u: Cells, v: Cells, w: Cells, ax: Cells, ay: Cells, az: Cells,
    su: Cells, sv: Cells, sw: Cells, masked: Int, moving: Int,
) -> Real:  # fmt: skip
    """Return the size of what flows out of a cell."""
    flux = outflux(u, v, w, ax, ay, az, su, sv, sw, masked, moving, k, j, i)
    return flux if flux > 0.0 else -flux


@over_rows
def subtract_gradient(
    k: Int, j: Int, i: Int, a: Cells, x: Cells, factor: Real, masked: Int, opening: Cells,
    dk: Int, dj: Int, di: Int,
) -> None:  # fmt: skip
    """Subtract a multiple of the gradient of x from a component; `d*` lead to its low side."""
    if masked != 1 or opening[k, j, i] > 0.0:
        a[k, j, i] -= factor * (x[k, j, i] - x[k + dk, j + dj, i + di])


@over_rows
def subtract_gradients(
    k: Int, j: Int, i: Int, u: Cells, v: Cells, w: Cells, x: Cells, factor: Real,
    first_k: Int, first_j: Int, first_i: Int,
) -> None:  # fmt: skip
    """Subtract a multiple of the gradient of x from all components at the low faces of a cell.

    Faces before `first_*` are given and stay. Everything is read before anything changes.
    """
    own = x[k, j, i]
    new_u = u[k, j, i] - factor * (own - x[k, j, i - 1])
    new_v = v[k, j, i] - factor * (own - x[k, j - 1, i])
    new_w = w[k, j, i] - factor * (own - x[k - 1, j, i])
    if i >= first_i:
        u[k, j, i] = new_u
    if j >= first_j:
        v[k, j, i] = new_v
    if k >= first_k:
        w[k, j, i] = new_w


@over_rows
def subtract_potential(
    k: Int, j: Int, i: Int, u: Cells, v: Cells, w: Cells, x: Cells, p: Cells, factor: Real,
    first_k: Int, first_j: Int, first_i: Int,
) -> None:  # fmt: skip
    """Subtract the gradient of x as above, and add a multiple of x to a pressure p."""
    own = x[k, j, i]
    new_u = u[k, j, i] - (own - x[k, j, i - 1])
    new_v = v[k, j, i] - (own - x[k, j - 1, i])
    new_w = w[k, j, i] - (own - x[k - 1, j, i])
    p[k, j, i] += factor * own
    if i >= first_i:
        u[k, j, i] = new_u
    if j >= first_j:
        v[k, j, i] = new_v
    if k >= first_k:
        w[k, j, i] = new_w


def applied(
    p: Cells, cx: Cells, cy: Cells, cz: Cells, plain: Table, even: Real, k: Int, j: Int, i: Int
) -> Real:
    """Return the operator on p at a cell.

    `c*` are the coefficients of low faces; they are `even`, a power of 2, in tiles that are plain.
    """
    own = p[k, j, i]
    x = 0.0
    y = 0.0
    z = 0.0
    if plain[k, j, (i - 1) // TILE] > 0.0:
        x = even * (own - p[k, j, i - 1]) + even * (own - p[k, j, i + 1])
        y = even * (own - p[k, j - 1, i]) + even * (own - p[k, j + 1, i])
        z = even * (own - p[k - 1, j, i]) + even * (own - p[k + 1, j, i])
    else:
        x = cx[k, j, i] * (own - p[k, j, i - 1]) + cx[k, j, i + 1] * (own - p[k, j, i + 1])
        y = cy[k, j, i] * (own - p[k, j - 1, i]) + cy[k, j + 1, i] * (own - p[k, j + 1, i])
        z = cz[k, j, i] * (own - p[k - 1, j, i]) + cz[k + 1, j, i] * (own - p[k + 1, j, i])
    return x + y + z


@over_columns
def apply(
    k: Int, j: Int, i: Int, p: Cells, cx: Cells, cy: Cells, cz: Cells, plain: Table, even: Real,
    out: Cells,
) -> None:  # fmt: skip
    """Set a cell to the operator on p."""
    out[k, j, i] = applied(p, cx, cy, cz, plain, even, k, j, i)


@over_cells
def mark_plain(
    k: Int, j: Int, i: Int, plain: Table, cx: Cells, cy: Cells, cz: Cells, even: Real
) -> None:
    """Set a tile to 1 if all faces of its cells have one coefficient, else to 0."""
    found = 1.0
    for x in range(TILE * i + 1, min(TILE * i + TILE + 1, columns - 1)):
        if cx[k, j, x] != even or cx[k, j, x + 1] != even:
            found = 0.0
        if cy[k, j, x] != even or cy[k, j + 1, x] != even:
            found = 0.0
        if cz[k, j, x] != even or cz[k + 1, j, x] != even:
            found = 0.0
    plain[k, j, i] = found
