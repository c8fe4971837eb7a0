"""Forces: buoyancy, the gradient of the last pressure, vorticity confinement."""

from math import fabs, sqrt

from hybrid_nbody.backends.cells import Cells, Int, Real, over_cells, over_rows


@over_rows
def add_between(
    k: Int, j: Int, i: Int, a: Cells, scalar: Cells, factor: Real, dk: Int, dj: Int, di: Int
) -> None:
    """Add a multiple of a scalar to a component; `d*` lead to the cell at its low side."""
    a[k, j, i] += 0.5 * factor * (scalar[k, j, i] + scalar[k + dk, j + dj, i + di])


def curl_x(v: Cells, w: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the x component of the vorticity at a centre, times the edge of a cell."""
    of_w = w[k, j + 1, i] + w[k + 1, j + 1, i] - w[k, j - 1, i] - w[k + 1, j - 1, i]
    of_v = v[k + 1, j, i] + v[k + 1, j + 1, i] - v[k - 1, j, i] - v[k - 1, j + 1, i]
    return 0.25 * (of_w - of_v)


def curl_y(u: Cells, w: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the y component of the vorticity at a centre, times the edge of a cell."""
    of_u = u[k + 1, j, i] + u[k + 1, j, i + 1] - u[k - 1, j, i] - u[k - 1, j, i + 1]
    of_w = w[k, j, i + 1] + w[k + 1, j, i + 1] - w[k, j, i - 1] - w[k + 1, j, i - 1]
    return 0.25 * (of_u - of_w)


def curl_z(u: Cells, v: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the z component of the vorticity at a centre, times the edge of a cell."""
    of_v = v[k, j, i + 1] + v[k, j + 1, i + 1] - v[k, j, i - 1] - v[k, j + 1, i - 1]
    of_u = u[k, j + 1, i] + u[k, j + 1, i + 1] - u[k, j - 1, i] - u[k, j - 1, i + 1]
    return 0.25 * (of_v - of_u)


def hypotenuse(x: Real, y: Real, z: Real) -> Real:
    """Return the length of a vector, also where its squares leave the range of numbers."""
    largest = max(fabs(x), max(fabs(y), fabs(z)))
    if largest == 0.0:
        largest = 1.0
    a = x / largest
    b = y / largest
    c = z / largest
    return largest * sqrt(a * a + b * b + c * c)


@over_cells
def curl_length(k: Int, j: Int, i: Int, u: Cells, v: Cells, w: Cells, out: Cells) -> None:
    """Set a cell to the length of the vorticity at its centre."""
    x = curl_x(v, w, k, j, i)
    y = curl_y(u, w, k, j, i)
    z = curl_z(u, v, k, j, i)
    out[k, j, i] = hypotenuse(x, y, z)


@over_cells
def confinement(
    k: Int, j: Int, i: Int, u: Cells, v: Cells, w: Cells, length: Cells, strength: Real,
    fx: Cells, fy: Cells, fz: Cells,
) -> None:  # fmt: skip
    """Set three fields to the force ``strength * N x curl u``, N the unit gradient of `length`.

    Where `length` does not change, N is 0.
    """
    nx = length[k, j, i + 1] - length[k, j, i - 1]
    ny = length[k, j + 1, i] - length[k, j - 1, i]
    nz = length[k + 1, j, i] - length[k - 1, j, i]
    size = hypotenuse(nx, ny, nz)
    if size == 0.0:
        size = 1.0
    cx = curl_x(v, w, k, j, i)
    cy = curl_y(u, w, k, j, i)
    cz = curl_z(u, v, k, j, i)
    nx /= size
    ny /= size
    nz /= size
    fx[k, j, i] = strength * (ny * cz - nz * cy)
    fy[k, j, i] = strength * (nz * cx - nx * cz)
    fz[k, j, i] = strength * (nx * cy - ny * cx)
