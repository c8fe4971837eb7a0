"""Viscosity and diffusion: the compact Laplacian of a component of the velocity, or of a scalar."""

from hybrid_nbody.backends.cells import Cells, Int, Real, over_cells


def spread(a: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the sum of the six neighbours of an element less six times the element."""
    neighbours = a[k, j, i - 1] + a[k, j, i + 1] + a[k, j - 1, i] + a[k, j + 1, i]
    return neighbours + a[k - 1, j, i] + a[k + 1, j, i] - 6.0 * a[k, j, i]


def towards(a: Cells, reach: Cells, own: Real, k: Int, j: Int, i: Int) -> Real:
    """Return the difference of an element to another; 0 to one along whose wall fluid slides."""
    return a[k, j, i] - own if reach[k, j, i] >= 0.0 else 0.0


def spread_beside(a: Cells, reach: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the differences of the neighbours of an element to it, where fluid sticks to them."""
    own = a[k, j, i]
    x = towards(a, reach, own, k, j, i - 1) + towards(a, reach, own, k, j, i + 1)
    y = towards(a, reach, own, k, j - 1, i) + towards(a, reach, own, k, j + 1, i)
    z = towards(a, reach, own, k - 1, j, i) + towards(a, reach, own, k + 1, j, i)
    return x + y + z


@over_cells
def add_viscosity(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, masked: Int, reach: Cells, out: Cells
) -> None:
    """Add the viscous change of a component over a step; `ratio` is viscosity * dt / h^2."""
    if masked == 0:
        out[k, j, i] += ratio * spread(a, k, j, i)
    elif reach[k, j, i] > 0.0:
        out[k, j, i] += ratio * spread_beside(a, reach, k, j, i)


@over_cells
def viscous(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, masked: Int, reach: Cells, out: Cells
) -> None:
    """Set an element to ``(1 - ratio * Laplacian) a``; 0 where a face is closed."""
    if masked == 0:
        out[k, j, i] = a[k, j, i] - ratio * spread(a, k, j, i)
    elif reach[k, j, i] > 0.0:
        out[k, j, i] = a[k, j, i] - ratio * spread_beside(a, reach, k, j, i)
    else:
        out[k, j, i] = 0.0


def leaving(a: Cells, ax: Cells, ay: Cells, az: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return what leaves a cell through open faces, per difference between cells."""
    own = a[k, j, i]
    x = ax[k, j, i] * (own - a[k, j, i - 1]) + ax[k, j, i + 1] * (own - a[k, j, i + 1])
    y = ay[k, j, i] * (own - a[k, j - 1, i]) + ay[k, j + 1, i] * (own - a[k, j + 1, i])
    z = az[k, j, i] * (own - a[k - 1, j, i]) + az[k + 1, j, i] * (own - a[k + 1, j, i])
    return x + y + z


@over_cells
def add_diffusion(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, masked: Int,
    ax: Cells, ay: Cells, az: Cells, out: Cells,
) -> None:  # fmt: skip
    """Add the change of a scalar by diffusion over a step."""
    if masked == 1:
        out[k, j, i] -= ratio * leaving(a, ax, ay, az, k, j, i)
    else:
        out[k, j, i] += ratio * spread(a, k, j, i)


@over_cells
def diffusive(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, masked: Int,
    ax: Cells, ay: Cells, az: Cells, out: Cells,
) -> None:  # fmt: skip
    """Set a cell to ``(1 - ratio * Laplacian) a``, where nothing passes closed faces."""
    if masked == 1:
        out[k, j, i] = a[k, j, i] + ratio * leaving(a, ax, ay, az, k, j, i)
    else:
        out[k, j, i] = a[k, j, i] - ratio * spread(a, k, j, i)
