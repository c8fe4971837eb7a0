"""Viscosity and diffusion: the compact Laplacian of a component of the velocity, or of a scalar."""

from hybrid_nbody.backends.cells import (
    Cells,
    Int,
    Real,
    over_cells,
    over_columns,
    over_rows,
    plane_largest,
)
from hybrid_nbody.fluid.kernels.cells.interpolation import within

FAR = 2
"""Of `masked`: there are obstacles, but not here. Else it is 1 if there are any, and 0."""

NEAREST = 0.25
"""Least distance in cells of an element to a wall, as viscosity takes it."""


def spread(a: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the sum of the six neighbours of an element less six times the element."""
    neighbours = a[k, j, i - 1] + a[k, j, i + 1] + a[k, j - 1, i] + a[k, j + 1, i]
    return neighbours + a[k - 1, j, i] + a[k + 1, j, i] - 6.0 * a[k, j, i]


def differences(a: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return what the six neighbours of an element pull on it where all is fluid."""
    own = a[k, j, i]
    left = a[k, j, i - 1] - own
    right = a[k, j, i + 1] - own
    front = a[k, j - 1, i] - own
    back = a[k, j + 1, i] - own
    below = a[k - 1, j, i] - own
    above = a[k + 1, j, i] - own
    return left + right + front + back + below + above


def gap(opening: Cells, own_opening: Real, k: Int, j: Int, i: Int) -> Real:
    """Return how far a wall is from an element, of which another one stands for it, in cells."""
    return within(own_opening + opening[k, j, i] - 0.5, NEAREST, 1.0)


def towards(
    a: Cells, opening: Cells, reach: Cells, own: Real, own_opening: Real, k: Int, j: Int, i: Int
) -> Real:
    """Return how an element pulls on another one, by the difference to it over their distance.

    An element whose value is given stands for the wall, which is nearer the less is open between
    both; 0 where fluid slides along it.
    """
    found = a[k, j, i] - own
    if reach[k, j, i] < 0.0:
        found = 0.0
    elif reach[k, j, i] < 1.0:
        found = found / gap(opening, own_opening, k, j, i)
    return found


def spread_beside(a: Cells, opening: Cells, reach: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return what the six neighbours of an element and walls between them pull on it."""
    own = a[k, j, i]
    part = opening[k, j, i]
    left = towards(a, opening, reach, own, part, k, j, i - 1)
    right = towards(a, opening, reach, own, part, k, j, i + 1)
    front = towards(a, opening, reach, own, part, k, j - 1, i)
    back = towards(a, opening, reach, own, part, k, j + 1, i)
    below = towards(a, opening, reach, own, part, k - 1, j, i)
    above = towards(a, opening, reach, own, part, k + 1, j, i)
    return left + right + front + back + below + above


def beyond(
    solid: Cells, opening: Cells, reach: Cells, own: Real, own_opening: Real,
    k: Int, j: Int, i: Int,
) -> Real:  # fmt: skip
    """Return what `towards` lacks where the solid moves: its velocity is not the same all over.

    The wall has the velocity of the solid between both elements, where the wall is; `own` is that
    which the solid would have at the element that is pulled.
    """
    found = 0.0
    if reach[k, j, i] >= 0.0 and reach[k, j, i] < 1.0:
        found = (own - solid[k, j, i]) * (1.0 / gap(opening, own_opening, k, j, i) - 1.0)
    return found


@over_cells
def add_motion(
    k: Int, j: Int, i: Int, solid: Cells, ratio: Real, opening: Cells, reach: Cells, out: Cells
) -> None:
    """Add to the viscous change what `add_viscosity` lacks where solids move."""
    if reach[k, j, i] >= 1.0:
        own = solid[k, j, i]
        part = opening[k, j, i]
        total = beyond(solid, opening, reach, own, part, k, j, i - 1)
        total += beyond(solid, opening, reach, own, part, k, j, i + 1)
        total += beyond(solid, opening, reach, own, part, k, j - 1, i)
        total += beyond(solid, opening, reach, own, part, k, j + 1, i)
        total += beyond(solid, opening, reach, own, part, k - 1, j, i)
        total += beyond(solid, opening, reach, own, part, k + 1, j, i)
        out[k, j, i] += ratio * total


@over_rows
def add_viscosity(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, masked: Int, opening: Cells, reach: Cells,
    out: Cells,
) -> None:  # fmt: skip
    """Add the viscous change of a component over a step; `ratio` is viscosity * dt / h^2."""
    if masked == 0:
        out[k, j, i] += ratio * spread(a, k, j, i)
    elif masked == FAR:
        out[k, j, i] += ratio * differences(a, k, j, i)
    elif reach[k, j, i] >= 1.0:
        out[k, j, i] += ratio * spread_beside(a, opening, reach, k, j, i)


@over_columns
def viscous(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, masked: Int, opening: Cells, reach: Cells,
    out: Cells,
) -> None:  # fmt: skip
    """Set an element to ``(1 - ratio * Laplacian) a``; 0 where its value is given."""
    if masked == 0:
        out[k, j, i] = a[k, j, i] - ratio * spread(a, k, j, i)
    elif masked == FAR:
        out[k, j, i] = a[k, j, i] - ratio * differences(a, k, j, i)
    elif reach[k, j, i] >= 1.0:
        out[k, j, i] = a[k, j, i] - ratio * spread_beside(a, opening, reach, k, j, i)
    else:
        out[k, j, i] = 0.0


def in_row_bound(
    opening: Cells, reach: Cells, own_opening: Real, k: Int, j: Int, i: Int
) -> Real:  # fmt: skip
    """Return what a neighbour adds to the bound of a row.

    That is its part of the diagonal and, where it is an unknown itself, its coefficient.
    """
    found = 2.0
    if reach[k, j, i] < 0.0:
        found = 0.0
    elif reach[k, j, i] < 1.0:
        found = 1.0 / gap(opening, own_opening, k, j, i)
    return found


@plane_largest
def row_bound(k: Int, j: Int, i: Int, opening: Cells, reach: Cells) -> Real:
    """Return Gershgorin's bound of the row of an element in minus the Laplacian."""
    total = 0.0
    if reach[k, j, i] >= 1.0:
        part = opening[k, j, i]
        total = in_row_bound(opening, reach, part, k, j, i - 1)
        total += in_row_bound(opening, reach, part, k, j, i + 1)
        total += in_row_bound(opening, reach, part, k, j - 1, i)
        total += in_row_bound(opening, reach, part, k, j + 1, i)
        total += in_row_bound(opening, reach, part, k - 1, j, i)
        total += in_row_bound(opening, reach, part, k + 1, j, i)
    return total


def leaving(a: Cells, ax: Cells, ay: Cells, az: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return what leaves a cell through open faces, per difference between cells."""
    own = a[k, j, i]
    x = ax[k, j, i] * (own - a[k, j, i - 1]) + ax[k, j, i + 1] * (own - a[k, j, i + 1])
    y = ay[k, j, i] * (own - a[k, j - 1, i]) + ay[k, j + 1, i] * (own - a[k, j + 1, i])
    z = az[k, j, i] * (own - a[k - 1, j, i]) + az[k + 1, j, i] * (own - a[k + 1, j, i])
    return x + y + z


def leaving_freely(a: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return what leaves a cell where all is fluid, per difference between cells."""
    own = a[k, j, i]
    x = (own - a[k, j, i - 1]) + (own - a[k, j, i + 1])
    y = (own - a[k, j - 1, i]) + (own - a[k, j + 1, i])
    z = (own - a[k - 1, j, i]) + (own - a[k + 1, j, i])
    return x + y + z


@over_rows
def add_diffusion(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, masked: Int,
    ax: Cells, ay: Cells, az: Cells, out: Cells,
) -> None:  # fmt: skip
    """Add the change of a scalar by diffusion over a step."""
    if masked == 1:
        out[k, j, i] -= ratio * leaving(a, ax, ay, az, k, j, i)
    elif masked == FAR:
        out[k, j, i] -= ratio * leaving_freely(a, k, j, i)
    else:
        out[k, j, i] += ratio * spread(a, k, j, i)


@over_columns
def diffusive(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, masked: Int,
    ax: Cells, ay: Cells, az: Cells, out: Cells,
) -> None:  # fmt: skip
    """Set a cell to ``(1 - ratio * Laplacian) a``, where nothing passes closed faces."""
    if masked == 1:
        out[k, j, i] = a[k, j, i] + ratio * leaving(a, ax, ay, az, k, j, i)
    elif masked == FAR:
        out[k, j, i] = a[k, j, i] + ratio * leaving_freely(a, k, j, i)
    else:
        out[k, j, i] = a[k, j, i] - ratio * spread(a, k, j, i)
