"""Values between the elements of an array."""

from math import floor

from hybrid_nbody.backends.cells import Cells, Int, Real, columns, rows


def blend(a: Real, b: Real, t: Real) -> Real:
    """Return a number between a (t = 0) and b (t = 1)."""
    return a + t * (b - a)


def within(x: Real, low: Real, high: Real) -> Real:
    """Return x, or the end of the interval that it is beyond; the low one if it is not a number."""
    above = x if x >= low else low
    return above if above <= high else high


def wrapped(x: Real, period: Real) -> Real:
    """Return x less the multiples of a period that it is beyond [0, period)."""
    return x - period * float(int(floor(x / period)))


def base_of(distance: Real, index: Int, last: Int) -> Int:
    """Return the steps from an index to the element below a point, with another one above it."""
    steps = int(floor(distance))
    if index + steps > last - 1:
        steps = last - 1 - index
    if index + steps < 0:
        steps = -index
    return steps


def between(a: Cells, k: Int, j: Int, i: Int, tz: Real, ty: Real, tx: Real) -> Real:
    """Return a field between an element and the next ones along each axis."""
    low_front = blend(a[k, j, i], a[k, j, i + 1], tx)
    low_back = blend(a[k, j + 1, i], a[k, j + 1, i + 1], tx)
    high_front = blend(a[k + 1, j, i], a[k + 1, j, i + 1], tx)
    high_back = blend(a[k + 1, j + 1, i], a[k + 1, j + 1, i + 1], tx)
    return blend(blend(low_front, low_back, ty), blend(high_front, high_back, ty), tz)


def sample(a: Cells, last: Int, k: Int, j: Int, i: Int, z: Real, y: Real, x: Real) -> Real:
    """Return a field at the distances z, y, x from an element, by trilinear interpolation.

    The last plane of the array is `last`.
    """
    above = base_of(z, k, last)
    back = base_of(y, j, rows - 1)
    right = base_of(x, i, columns - 1)
    tz = z - float(above)
    ty = y - float(back)
    tx = x - float(right)
    return between(a, k + above, j + back, i + right, tz, ty, tx)


def sample_inside(a: Cells, k: Int, j: Int, i: Int, z: Real, y: Real, x: Real) -> Real:
    """Return what `sample` does where all elements around the point are in the array."""
    above = int(floor(z))
    back = int(floor(y))
    right = int(floor(x))
    tz = z - float(above)
    ty = y - float(back)
    tx = x - float(right)
    return between(a, k + above, j + back, i + right, tz, ty, tx)


def least_around(a: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the least of an element and the next ones along each axis."""
    low = min(min(a[k, j, i], a[k, j, i + 1]), min(a[k, j + 1, i], a[k, j + 1, i + 1]))
    kk = k + 1
    high = min(min(a[kk, j, i], a[kk, j, i + 1]), min(a[kk, j + 1, i], a[kk, j + 1, i + 1]))
    return min(low, high)


def largest_around(a: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the largest of the same."""
    low = max(max(a[k, j, i], a[k, j, i + 1]), max(a[k, j + 1, i], a[k, j + 1, i + 1]))
    kk = k + 1
    high = max(max(a[kk, j, i], a[kk, j, i + 1]), max(a[kk, j + 1, i], a[kk, j + 1, i + 1]))
    return max(low, high)


def moved(index: Int, distance: Real, staggered: Real, wraps: Int, bottom: Int, top: Int) -> Real:
    """Return a distance along an axis that ends within the box.

    Parameters
    ----------
    index : int
        Of the element that the distance is counted from.
    distance : float
    staggered : float
        1 if elements are at faces, 0 if at centres of cells.
    wraps : int
        Whether the axis is periodic; else the distance ends at a wall.
    bottom, top : int
        Indices of the faces at both ends of the box.
    """
    start = float(bottom - index)
    end = float(top - index)
    if wraps == 1:
        beyond = distance < start or distance > end
        return start + wrapped(distance - start, end - start) if beyond else distance
    shift = 0.5 * (staggered - 1.0)
    return within(distance, start + shift, end + shift)
