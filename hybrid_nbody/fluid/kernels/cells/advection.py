"""Semi-Lagrangian advection with departure points of second order, and MacCormack's correction.

Selle, Fedkiw, Kim, Liu, Rossignac, "An unconditionally stable MacCormack method" (2008).

The point of an element is found from its own velocity and from that halfway along the path
(midpoint rule). Paths end at walls. Fields may be given on more planes than the slab: `shift` is
added to the plane of the result for theirs.
"""

from hybrid_nbody.backends.cells import Cells, Int, Real, columns, over_cells, rows
from hybrid_nbody.fluid.kernels.cells.interpolation import (
    blend,
    largest_around,
    least_around,
    moved,
    sample,
    within,
)


def component_at(
    a: Cells, last: Int, k: Int, j: Int, i: Int, z: Real, y: Real, x: Real,
    at_z: Real, at_y: Real, at_x: Real, wraps_x: Int, wraps_y: Int, wraps_z: Int,
    bottom: Int, top: Int,
) -> Real:  # fmt: skip
    """Return a field at distances from an element of itself; `at_*` say where it is staggered."""
    dz = moved(k, z, at_z, wraps_z, bottom, top)
    dy = moved(j, y, at_y, wraps_y, 1, rows - 1)
    dx = moved(i, x, at_x, wraps_x, 1, columns - 1)
    return sample(a, last, k, j, i, dz, dy, dx)


def ends_inside(
    index: Int, back: Real, ahead: Real, staggered: Real, wraps: Int, bottom: Int, top: Int
) -> Int:
    """Return 1 if the paths to two distances along an axis end within the box."""
    low = float(bottom - index) + 0.5 * (staggered - 1.0)
    high = float(top - index) + 0.5 * (staggered - 1.0)
    least = min(back, ahead)
    most = max(back, ahead)
    inside = 1
    if wraps == 0 and (least < low or most > high):
        inside = 0
    return inside


def mean_in_row(a: Cells, k: Int, j: Int, i: Int, low: Int, high: Int) -> Real:
    """Return the mean of two elements of a row; steps lead to them, which may be the same."""
    value = a[k, j, i + low]
    if low != high:
        value = blend(value, a[k, j, i + high], 0.5)
    return value


def mean_in_plane(
    a: Cells, k: Int, j: Int, i: Int, low: Int, high: Int, left: Int, right: Int
) -> Real:
    """Return the mean along y and x."""
    value = mean_in_row(a, k, j + low, i, left, right)
    if low != high:
        value = blend(value, mean_in_row(a, k, j + high, i, left, right), 0.5)
    return value


def mean_around(
    a: Cells, k: Int, j: Int, i: Int, low: Int, high: Int, front: Int, back: Int,
    left: Int, right: Int,
) -> Real:  # fmt: skip
    """Return the mean along z, y and x."""
    value = mean_in_plane(a, k + low, j, i, front, back, left, right)
    if low != high:
        value = blend(value, mean_in_plane(a, k + high, j, i, front, back, left, right), 0.5)
    return value


def before(at: Real) -> Int:
    """Return the step to what is beside an element at a low face of cells: 0 at a centre."""
    return -1 if at > 0.0 else 0


def after(at: Real) -> Int:
    """Return the step from an element to the next face of its cell: 0 at a low face."""
    return 0 if at > 0.0 else 1


def u_at(u: Cells, k: Int, j: Int, i: Int, at_z: Real, at_y: Real, at_x: Real) -> Real:
    """Return the velocity along x at an element; `at_*` say where it is staggered."""
    return mean_around(u, k, j, i, before(at_z), 0, before(at_y), 0, 0, after(at_x))


def v_at(v: Cells, k: Int, j: Int, i: Int, at_z: Real, at_y: Real, at_x: Real) -> Real:
    """Return the velocity along y at an element."""
    return mean_around(v, k, j, i, before(at_z), 0, 0, after(at_y), before(at_x), 0)


def w_at(w: Cells, k: Int, j: Int, i: Int, at_z: Real, at_y: Real, at_x: Real) -> Real:
    """Return the velocity along z at an element."""
    return mean_around(w, k, j, i, 0, after(at_z), before(at_y), 0, before(at_x), 0)


@over_cells
def advect(
    k: Int, j: Int, i: Int, source: Cells, u: Cells, v: Cells, w: Cells, out: Cells, scale: Real,
    at_z: Real, at_y: Real, at_x: Real, wraps_x: Int, wraps_y: Int, wraps_z: Int,
    bottom: Int, top: Int, last: Int, shift: Int,
) -> None:  # fmt: skip
    """Set an element to what comes to it in a step; `scale` is less than 0 to look back."""
    kk = k + shift
    sz = 0.5 * at_z
    sy = 0.5 * at_y
    sx = 0.5 * at_x
    su = u_at(u, kk, j, i, at_z, at_y, at_x)
    sv = v_at(v, kk, j, i, at_z, at_y, at_x)
    sw = w_at(w, kk, j, i, at_z, at_y, at_x)
    half = 0.5 * scale
    hx = half * su - sx
    hy = half * sv - sy
    hz = half * sw - sz
    mu = component_at(u, last, kk, j, i, hz, hy, hx + 0.5, 0.0, 0.0, 1.0,
                      wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    mv = component_at(v, last, kk, j, i, hz, hy + 0.5, hx, 0.0, 1.0, 0.0,
                      wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    mw = component_at(w, last, kk, j, i, hz + 0.5, hy, hx, 1.0, 0.0, 0.0,
                      wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    value = component_at(source, last, kk, j, i, scale * mw, scale * mv, scale * mu,
                         at_z, at_y, at_x, wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    out[k, j, i] = value


@over_cells
def correct(
    k: Int, j: Int, i: Int, source: Cells, forward: Cells, u: Cells, v: Cells, w: Cells,
    out: Cells, scale: Real, at_z: Real, at_y: Real, at_x: Real,
    wraps_x: Int, wraps_y: Int, wraps_z: Int, bottom: Int, top: Int, last: Int, shift: Int,
    slack: Real,
) -> None:  # fmt: skip
    """Correct what `advect` made of a field, by what it would make of that backwards.

    Results stay between the elements that were blended, or beyond them by at most `slack` times
    their range. Where a path ends at a wall, nothing is corrected.
    """
    kk = k + shift
    sz = 0.5 * at_z
    sy = 0.5 * at_y
    sx = 0.5 * at_x
    su = u_at(u, kk, j, i, at_z, at_y, at_x)
    sv = v_at(v, kk, j, i, at_z, at_y, at_x)
    sw = w_at(w, kk, j, i, at_z, at_y, at_x)
    half = 0.5 * scale
    hx = half * su - sx
    hy = half * sv - sy
    hz = half * sw - sz
    bx = scale * component_at(u, last, kk, j, i, hz, hy, hx + 0.5, 0.0, 0.0, 1.0,
                              wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    by = scale * component_at(v, last, kk, j, i, hz, hy + 0.5, hx, 0.0, 1.0, 0.0,
                              wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    bz = scale * component_at(w, last, kk, j, i, hz + 0.5, hy, hx, 1.0, 0.0, 0.0,
                              wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    hx = -half * su - sx
    hy = -half * sv - sy
    hz = -half * sw - sz
    fx = -scale * component_at(u, last, kk, j, i, hz, hy, hx + 0.5, 0.0, 0.0, 1.0,
                               wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    fy = -scale * component_at(v, last, kk, j, i, hz, hy + 0.5, hx, 0.0, 1.0, 0.0,
                               wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    fz = -scale * component_at(w, last, kk, j, i, hz + 0.5, hy, hx, 1.0, 0.0, 0.0,
                               wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    value = forward[kk, j, i]
    if (
        ends_inside(kk, bz, fz, at_z, wraps_z, bottom, top) == 1
        and ends_inside(j, by, fy, at_y, wraps_y, 1, rows - 1) == 1
        and ends_inside(i, bx, fx, at_x, wraps_x, 1, columns - 1) == 1
    ):
        back = component_at(forward, last, kk, j, i, fz, fy, fx, at_z, at_y, at_x,
                            wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
        value = value + 0.5 * (source[kk, j, i] - back)
        dz = moved(kk, bz, at_z, wraps_z, bottom, top)
        dy = moved(j, by, at_y, wraps_y, 1, rows - 1)
        dx = moved(i, bx, at_x, wraps_x, 1, columns - 1)
        low = least_around(source, last, kk, j, i, dz, dy, dx)
        high = largest_around(source, last, kk, j, i, dz, dy, dx)
        more = slack * (high - low)
        value = within(value, low - more, high + more)
    out[k, j, i] = value
