"""Viscosity and diffusion: the compact Laplacian of a component of the velocity, or of a scalar."""

from hybrid_nbody.backends.cells import Cells, Int, Real, over_cells


def spread(a: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the sum of the six neighbours of an element less six times the element."""
    neighbours = a[k, j, i - 1] + a[k, j, i + 1] + a[k, j - 1, i] + a[k, j + 1, i]
    return neighbours + a[k - 1, j, i] + a[k + 1, j, i] - 6.0 * a[k, j, i]


@over_cells
def add_viscosity(k: Int, j: Int, i: Int, a: Cells, ratio: Real, out: Cells) -> None:
    """Add the viscous change of a component over a step; `ratio` is viscosity * dt / h^2."""
    out[k, j, i] += ratio * spread(a, k, j, i)


@over_cells
def viscous(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, masked: Int, opening: Cells, out: Cells
) -> None:
    """Set an element to ``(1 - ratio * Laplacian) a``; 0 where a face is closed."""
    value = a[k, j, i] - ratio * spread(a, k, j, i)
    out[k, j, i] = 0.0 if masked == 1 and opening[k, j, i] <= 0.0 else value


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
