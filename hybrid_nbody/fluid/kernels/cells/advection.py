"""Semi-Lagrangian advection with departure points of second order, and MacCormack's correction.

Selle, Fedkiw, Kim, Liu, Rossignac, "An unconditionally stable MacCormack method" (2008).

The point of an element is found from its own velocity and from that halfway along the path
(midpoint rule). Paths end at walls. Fields may be given on more planes than the slab: `shift` is
added to the plane of the result for theirs.
"""

from math import fabs, floor

from hybrid_nbody.backends.cells import Cells, Int, Real, columns, over_cells, over_rows, rows
from hybrid_nbody.fluid.kernels.cells.interpolation import (
    base_of,
    blend,
    largest_around,
    least_around,
    moved,
    sample,
    sample_inside,
    within,
)


def room(index: Int, bottom: Int, top: Int, last: Int) -> Real:
    """Return how far paths may go from an element along an axis without coming near an end.

    The ends are those of the box, and of the array, whose last plane is `last`. A cell is left for
    samples of a component that is staggered otherwise, half a cell farther, and for the element
    above. Windows are so deep that ends of the box alone are met, on any number of ranks the same:
    `hybrid_nbody.fluid.staggered.windows.BEYOND`.
    """
    return float(min(index - max(bottom, 1), min(top, last) - index) - 1)


def stays(
    z: Real, y: Real, x: Real, k: Int, j: Int, i: Int, bottom: Int, top: Int, last: Int
) -> Int:
    """Return 1 if no path of these lengths comes near an end of the box from an element."""
    in_z = fabs(z) <= room(k, bottom, top, last)
    in_y = fabs(y) <= room(j, 1, rows - 1, rows - 1)
    in_x = fabs(x) <= room(i, 1, columns - 1, columns - 1)
    return 1 if in_z and in_y and in_x else 0


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


def mean(a: Real, b: Real) -> Real:
    """Return the mean of two numbers."""
    return blend(a, b, 0.5)


def u_at(u: Cells, k: Int, j: Int, i: Int, at_z: Real, at_y: Real, at_x: Real) -> Real:
    """Return the velocity along x at an element; `at_*` say where it is staggered."""
    if at_x > 0.0:
        return u[k, j, i]
    value = mean(u[k, j, i], u[k, j, i + 1])
    if at_y > 0.0:
        value = mean(mean(u[k, j - 1, i], u[k, j - 1, i + 1]), value)
    elif at_z > 0.0:
        value = mean(mean(u[k - 1, j, i], u[k - 1, j, i + 1]), value)
    return value


def v_at(v: Cells, k: Int, j: Int, i: Int, at_z: Real, at_y: Real, at_x: Real) -> Real:
    """Return the velocity along y at an element."""
    if at_y > 0.0:
        return v[k, j, i]
    if at_x > 0.0:
        low = mean(v[k, j, i - 1], v[k, j, i])
        return mean(low, mean(v[k, j + 1, i - 1], v[k, j + 1, i]))
    value = mean(v[k, j, i], v[k, j + 1, i])
    if at_z > 0.0:
        value = mean(mean(v[k - 1, j, i], v[k - 1, j + 1, i]), value)
    return value


def w_at(w: Cells, k: Int, j: Int, i: Int, at_z: Real, at_y: Real, at_x: Real) -> Real:
    """Return the velocity along z at an element."""
    if at_z > 0.0:
        return w[k, j, i]
    if at_x > 0.0:
        low = mean(w[k, j, i - 1], w[k, j, i])
        return mean(low, mean(w[k + 1, j, i - 1], w[k + 1, j, i]))
    if at_y > 0.0:
        low = mean(w[k, j - 1, i], w[k, j, i])
        return mean(low, mean(w[k + 1, j - 1, i], w[k + 1, j, i]))
    return mean(w[k, j, i], w[k + 1, j, i])


@over_rows
def limit_to(k: Int, j: Int, i: Int, a: Cells, most: Real) -> None:
    """Limit the size of an element."""
    a[k, j, i] = within(a[k, j, i], -most, most)


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
    if stays(half * sw, half * sv, half * su, kk, j, i, bottom, top, last) == 1:
        x = scale * sample_inside(u, kk, j, i, hz, hy, hx + 0.5)
        y = scale * sample_inside(v, kk, j, i, hz, hy + 0.5, hx)
        z = scale * sample_inside(w, kk, j, i, hz + 0.5, hy, hx)
    else:
        x = scale * component_at(u, last, kk, j, i, hz, hy, hx + 0.5, 0.0, 0.0, 1.0,
                                 wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
        y = scale * component_at(v, last, kk, j, i, hz, hy + 0.5, hx, 0.0, 1.0, 0.0,
                                 wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
        z = scale * component_at(w, last, kk, j, i, hz + 0.5, hy, hx, 1.0, 0.0, 0.0,
                                 wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    if stays(z, y, x, kk, j, i, bottom, top, last) == 1:
        value = sample_inside(source, kk, j, i, z, y, x)
    else:
        value = component_at(source, last, kk, j, i, z, y, x, at_z, at_y, at_x,
                             wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
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
    gx = -half * su - sx
    gy = -half * sv - sy
    gz = -half * sw - sz
    if stays(half * sw, half * sv, half * su, kk, j, i, bottom, top, last) == 1:
        bx = scale * sample_inside(u, kk, j, i, hz, hy, hx + 0.5)
        by = scale * sample_inside(v, kk, j, i, hz, hy + 0.5, hx)
        bz = scale * sample_inside(w, kk, j, i, hz + 0.5, hy, hx)
        fx = -scale * sample_inside(u, kk, j, i, gz, gy, gx + 0.5)
        fy = -scale * sample_inside(v, kk, j, i, gz, gy + 0.5, gx)
        fz = -scale * sample_inside(w, kk, j, i, gz + 0.5, gy, gx)
    else:
        bx = scale * component_at(u, last, kk, j, i, hz, hy, hx + 0.5, 0.0, 0.0, 1.0,
                                  wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
        by = scale * component_at(v, last, kk, j, i, hz, hy + 0.5, hx, 0.0, 1.0, 0.0,
                                  wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
        bz = scale * component_at(w, last, kk, j, i, hz + 0.5, hy, hx, 1.0, 0.0, 0.0,
                                  wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
        fx = -scale * component_at(u, last, kk, j, i, gz, gy, gx + 0.5, 0.0, 0.0, 1.0,
                                   wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
        fy = -scale * component_at(v, last, kk, j, i, gz, gy + 0.5, gx, 0.0, 1.0, 0.0,
                                   wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
        fz = -scale * component_at(w, last, kk, j, i, gz + 0.5, gy, gx, 1.0, 0.0, 0.0,
                                   wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
    ends_within = 1
    above = int(floor(bz))
    front = int(floor(by))
    right = int(floor(bx))
    stays_back = stays(bz, by, bx, kk, j, i, bottom, top, last)
    if stays_back == 1 and stays(fz, fy, fx, kk, j, i, bottom, top, last) == 1:
        back = sample_inside(forward, kk, j, i, fz, fy, fx)
    else:
        back = component_at(forward, last, kk, j, i, fz, fy, fx, at_z, at_y, at_x,
                            wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip
        above = base_of(moved(kk, bz, at_z, wraps_z, bottom, top), kk, last)
        front = base_of(moved(j, by, at_y, wraps_y, 1, rows - 1), j, rows - 1)
        right = base_of(moved(i, bx, at_x, wraps_x, 1, columns - 1), i, columns - 1)
        ends_within = ends_inside(kk, bz, fz, at_z, wraps_z, bottom, top)
        ends_within = ends_within * ends_inside(j, by, fy, at_y, wraps_y, 1, rows - 1)
        ends_within = ends_within * ends_inside(i, bx, fx, at_x, wraps_x, 1, columns - 1)
    value = forward[kk, j, i]
    if ends_within == 1:
        value = value + 0.5 * (source[kk, j, i] - back)
        low = least_around(source, kk + above, j + front, i + right)
        high = largest_around(source, kk + above, j + front, i + right)
        more = slack * (high - low)
        value = within(value, low - more, high + more)
    out[k, j, i] = value
