"""Advection beside thin solids: paths end where a face is closed, and nothing is read behind it.

A path is followed from cell to cell. What comes from its end is interpolated between the elements
of that cell and of those to which the fluid can go from there, through open faces, one step along
each axis; others are left out. So nothing passes a plate, however thin it is.
"""

from math import fabs

from hybrid_nbody.backends.cells import Cells, Int, Real, columns, over_cells, rows
from hybrid_nbody.fluid.kernels.cells.advection import component_at, ends_inside
from hybrid_nbody.fluid.kernels.cells.interpolation import moved, within

NEVER = 2.0
"""Share of a path at which it leaves a cell that it does not leave."""

ROUNDS = 64
"""Times that a path may go round a periodic box."""

PACK = 1024
"""More than twice the cells along an axis that a path may cross: three such numbers are packed."""

MOST = 500
"""Cells along an axis that a path may cross."""

CLOSE = 1e-4
"""Cells by which the end of a path may be beyond its cell: rounding."""


def around(index: Int, wraps: Int, length: Int) -> Int:
    """Return the index of a row or a column, of `length` with ghosts, within a periodic box."""
    found = index
    if wraps == 1:
        found = (index - 1 + ROUNDS * (length - 2)) % (length - 2) + 1
    return found


def along(index: Int, distance: Real, staggered: Real, wraps: Int, bottom: Int, top: Int) -> Real:
    """Return a distance along an axis that ends within the box, or goes round a periodic one."""
    longest = within(distance, -float(MOST), float(MOST))
    return longest if wraps == 1 else moved(index, longest, staggered, 0, bottom, top)


def leaves(place: Real, cell: Int, distance: Real) -> Real:
    """Return the share of a path at which it leaves a cell along an axis."""
    share = NEVER
    if distance > 0.0:
        share = (float(cell + 1) - place) / distance
    if distance < 0.0:
        share = (float(cell) - place) / distance
    return share


def within_box(index: Int, wraps: Int, bottom: Int, top: Int) -> Int:
    """Return 1 if a cell is one of the box."""
    return 1 if wraps == 1 or (index >= bottom and index < top) else 0


def first_cell(staggered: Real, distance: Real) -> Int:
    """Return the cell in which a path begins, from the element: a face goes with the one below."""
    return -1 if staggered > 0.5 and distance < 0.0 else 0


def open_to(
    ax: Cells, ay: Cells, az: Cells, k: Int, j: Int, i: Int, dk: Int, dj: Int, di: Int
) -> Real:
    """Return the opening of the face towards a cell that is one step away along one axis."""
    found = 1.0
    if di != 0:
        found = ax[k, j, i + (di + 1) // 2]
    elif dj != 0:
        found = ay[k, j + (dj + 1) // 2, i]
    elif dk != 0:
        found = az[k + (dk + 1) // 2, j, i]
    return found


def last_cell(
    ax: Cells, ay: Cells, az: Cells, k: Int, j: Int, i: Int, z: Real, y: Real, x: Real,
    at_z: Real, at_y: Real, at_x: Real, wraps_x: Int, wraps_y: Int, bottom: Int, top: Int,
) -> Int:  # fmt: skip
    """Return the cell in which a path ends: its distances from the element, packed."""
    ck = first_cell(at_z, z)
    cj = first_cell(at_y, y)
    ci = first_cell(at_x, x)
    going = 1
    for _step in range(int(fabs(z) + fabs(y) + fabs(x)) + 4):
        tz = leaves(0.5 - 0.5 * at_z, ck, z)
        ty = leaves(0.5 - 0.5 * at_y, cj, y)
        tx = leaves(0.5 - 0.5 * at_x, ci, x)
        first = min(min(tx, ty), tz)
        if first >= 1.0:
            going = 0
        dk = 0
        dj = 0
        di = 0
        if going == 1 and tx == first:
            di = 1 if x > 0.0 else -1
        elif going == 1 and ty == first:
            dj = 1 if y > 0.0 else -1
        elif going == 1:
            dk = 1 if z > 0.0 else -1
        kk = k + ck
        jj = around(j + cj, wraps_y, rows)
        ii = around(i + ci, wraps_x, columns)
        inside = within_box(kk + dk, 0, bottom, top)
        inside = inside * within_box(jj + dj, wraps_y, 1, rows - 1)
        inside = inside * within_box(ii + di, wraps_x, 1, columns - 1)
        if inside == 0 or open_to(ax, ay, az, kk, jj, ii, dk, dj, di) == 0.0:
            going = 0
        if going == 1:
            ck += dk
            cj += dj
            ci += di
    return ((ck + MOST) * PACK + cj + MOST) * PACK + ci + MOST


def open_way(
    ax: Cells, ay: Cells, az: Cells, k: Int, j: Int, i: Int,
    first_k: Int, first_j: Int, first_i: Int, then_k: Int, then_j: Int, then_i: Int,
    last_k: Int, last_j: Int, last_i: Int,
) -> Real:  # fmt: skip
    """Return the least opening on three steps from a cell, one along each axis."""
    one = open_to(ax, ay, az, k, j, i, first_k, first_j, first_i)
    kk = k + first_k
    jj = j + first_j
    ii = i + first_i
    two = open_to(ax, ay, az, kk, jj, ii, then_k, then_j, then_i)
    kk += then_k
    jj += then_j
    ii += then_i
    three = open_to(ax, ay, az, kk, jj, ii, last_k, last_j, last_i)
    return min(min(one, two), three)


def reached(
    ax: Cells, ay: Cells, az: Cells, k: Int, j: Int, i: Int, dk: Int, dj: Int, di: Int
) -> Real:
    """Return more than 0 if the fluid can go from a cell to one beside it, in any order of axes."""
    xyz = open_way(ax, ay, az, k, j, i, 0, 0, di, 0, dj, 0, dk, 0, 0)
    xzy = open_way(ax, ay, az, k, j, i, 0, 0, di, dk, 0, 0, 0, dj, 0)
    yxz = open_way(ax, ay, az, k, j, i, 0, dj, 0, 0, 0, di, dk, 0, 0)
    yzx = open_way(ax, ay, az, k, j, i, 0, dj, 0, dk, 0, 0, 0, 0, di)
    zxy = open_way(ax, ay, az, k, j, i, dk, 0, 0, 0, 0, di, 0, dj, 0)
    zyx = open_way(ax, ay, az, k, j, i, dk, 0, 0, 0, dj, 0, 0, 0, di)
    return max(max(max(xyz, xzy), max(yxz, yzx)), max(zxy, zyx))


def side(part: Real, staggered: Real) -> Int:
    """Return the step from a cell to the one beside it that is nearer to a place in it."""
    towards = 1 if part >= 0.5 else -1
    return 0 if staggered > 0.5 else towards


def share_of(part: Real, staggered: Real, number: Int) -> Real:
    """Return the weight of the first or the second of two elements along an axis."""
    second = part if staggered > 0.5 else fabs(part - 0.5)
    return second if number == 1 else 1.0 - second


def weight_of(
    number: Int, ax: Cells, ay: Cells, az: Cells, solid: Cells, ghosts: Int,
    k: Int, j: Int, i: Int, fz: Real, fy: Real, fx: Real, at_z: Real, at_y: Real, at_x: Real,
) -> Real:  # fmt: skip
    """Return the weight of one of the eight elements around a place in a cell.

    It is -1 if the fluid cannot go there. What is known within solids counts if `ghosts` is 1.
    """
    bz = number // 4
    by = number // 2 % 2
    bx = number % 2
    dk = bz * side(fz, at_z)
    dj = by * side(fy, at_y)
    di = bx * side(fx, at_x)
    weight = share_of(fz, at_z, bz) * share_of(fy, at_y, by) * share_of(fx, at_x, bx)
    way = reached(ax, ay, az, k, j, i, dk, dj, di)
    if way == 0.0 and (ghosts == 0 or solid[k + dk, j + dj, i + di] > 0.0):
        weight = -1.0
    return weight


def element_of(
    a: Cells, number: Int, k: Int, j: Int, i: Int, fz: Real, fy: Real, fx: Real,
    at_z: Real, at_y: Real, at_x: Real,
) -> Real:  # fmt: skip
    """Return one of the eight elements around a place in a cell."""
    bz = number // 4
    by = number // 2 % 2
    bx = number % 2
    kk = k + (bz if at_z > 0.5 else bz * side(fz, at_z))
    jj = j + (by if at_y > 0.5 else by * side(fy, at_y))
    ii = i + (bx if at_x > 0.5 else bx * side(fx, at_x))
    return a[kk, jj, ii]


def value_in(
    a: Cells, ax: Cells, ay: Cells, az: Cells, solid: Cells, ghosts: Int,
    k: Int, j: Int, i: Int, fz: Real, fy: Real, fx: Real, at_z: Real, at_y: Real, at_x: Real,
) -> Real:  # fmt: skip
    """Return a field at a place in a cell, between the elements that the fluid can go to."""
    total = 0.0
    weights = 0.0
    for number in range(8):
        weight = weight_of(number, ax, ay, az, solid, ghosts, k, j, i, fz, fy, fx,
                           at_z, at_y, at_x)  # fmt: skip
        if weight > 0.0:
            weights += weight
            total += weight * element_of(a, number, k, j, i, fz, fy, fx, at_z, at_y, at_x)
    return total / weights


def largest_in(
    a: Cells, sign: Real, ax: Cells, ay: Cells, az: Cells, solid: Cells, ghosts: Int,
    k: Int, j: Int, i: Int, fz: Real, fy: Real, fx: Real, at_z: Real, at_y: Real, at_x: Real,
) -> Real:  # fmt: skip
    """Return the largest of a sign times the elements that `value_in` blends."""
    found = sign * element_of(a, 0, k, j, i, fz, fy, fx, at_z, at_y, at_x)
    for number in range(1, 8):
        weight = weight_of(number, ax, ay, az, solid, ghosts, k, j, i, fz, fy, fx,
                           at_z, at_y, at_x)  # fmt: skip
        if weight >= 0.0:
            element = element_of(a, number, k, j, i, fz, fy, fx, at_z, at_y, at_x)
            found = max(found, sign * element)
    return found


def carried(
    of: Cells, of_z: Real, of_y: Real, of_x: Real, k: Int, j: Int, i: Int,
    u: Cells, v: Cells, w: Cells, scale: Real, at_z: Real, at_y: Real, at_x: Real,
    wraps_x: Int, wraps_y: Int, wraps_z: Int, bottom: Int, top: Int, last: Int,
) -> Real:  # fmt: skip
    """Return how far an element is carried along the axis of the component `of`."""
    sz = 0.5 * at_z
    sy = 0.5 * at_y
    sx = 0.5 * at_x
    half = 0.5 * scale
    hx = half * component_at(u, last, k, j, i, -sz, -sy, 0.5 - sx, 0.0, 0.0, 1.0,
                             wraps_x, wraps_y, wraps_z, bottom, top) - sx  # fmt: skip
    hy = half * component_at(v, last, k, j, i, -sz, 0.5 - sy, -sx, 0.0, 1.0, 0.0,
                             wraps_x, wraps_y, wraps_z, bottom, top) - sy  # fmt: skip
    hz = half * component_at(w, last, k, j, i, 0.5 - sz, -sy, -sx, 1.0, 0.0, 0.0,
                             wraps_x, wraps_y, wraps_z, bottom, top) - sz  # fmt: skip
    return scale * component_at(of, last, k, j, i, hz + 0.5 * of_z, hy + 0.5 * of_y,
                                hx + 0.5 * of_x, of_z, of_y, of_x,
                                wraps_x, wraps_y, wraps_z, bottom, top)  # fmt: skip


def part_in(distance: Real, staggered: Real, cells: Int) -> Real:
    """Return where in its cell a path ends along an axis; not in [0, 1] if it was stopped."""
    return 0.5 - 0.5 * staggered + distance - float(cells)


def planes_of(cell: Int) -> Int:
    """Return the planes from an element to a packed cell."""
    return cell // PACK // PACK - MOST


def rows_of(cell: Int) -> Int:
    """Return the rows from an element to a packed cell."""
    return cell // PACK % PACK - MOST


def columns_of(cell: Int) -> Int:
    """Return the columns from an element to a packed cell."""
    return cell % PACK - MOST


def value_at(
    cell: Int, a: Cells, ax: Cells, ay: Cells, az: Cells, solid: Cells, ghosts: Int,
    k: Int, j: Int, i: Int, z: Real, y: Real, x: Real, at_z: Real, at_y: Real, at_x: Real,
    wraps_x: Int, wraps_y: Int,
) -> Real:  # fmt: skip
    """Return a field at the end of a path in a packed cell."""
    fz = within(part_in(z, at_z, planes_of(cell)), 0.0, 1.0)
    fy = within(part_in(y, at_y, rows_of(cell)), 0.0, 1.0)
    fx = within(part_in(x, at_x, columns_of(cell)), 0.0, 1.0)
    kk = k + planes_of(cell)
    jj = around(j + rows_of(cell), wraps_y, rows)
    ii = around(i + columns_of(cell), wraps_x, columns)
    return value_in(a, ax, ay, az, solid, ghosts, kk, jj, ii, fz, fy, fx, at_z, at_y, at_x)


def largest_at(
    cell: Int, a: Cells, sign: Real, ax: Cells, ay: Cells, az: Cells, solid: Cells, ghosts: Int,
    k: Int, j: Int, i: Int, z: Real, y: Real, x: Real, at_z: Real, at_y: Real, at_x: Real,
    wraps_x: Int, wraps_y: Int,
) -> Real:  # fmt: skip
    """Return the largest of a sign times the elements that `value_at` blends."""
    fz = within(part_in(z, at_z, planes_of(cell)), 0.0, 1.0)
    fy = within(part_in(y, at_y, rows_of(cell)), 0.0, 1.0)
    fx = within(part_in(x, at_x, columns_of(cell)), 0.0, 1.0)
    kk = k + planes_of(cell)
    jj = around(j + rows_of(cell), wraps_y, rows)
    ii = around(i + columns_of(cell), wraps_x, columns)
    return largest_in(a, sign, ax, ay, az, solid, ghosts, kk, jj, ii, fz, fy, fx, at_z, at_y, at_x)


def is_whole(cell: Int, z: Real, y: Real, x: Real, at_z: Real, at_y: Real, at_x: Real) -> Int:
    """Return 1 if a path was not stopped by a closed face before its end."""
    fz = part_in(z, at_z, planes_of(cell))
    fy = part_in(y, at_y, rows_of(cell))
    fx = part_in(x, at_x, columns_of(cell))
    least = min(min(fz, fy), fx)
    most = max(max(fz, fy), fx)
    return 1 if least >= -CLOSE and most <= 1.0 + CLOSE else 0


@over_cells
def advect_beside(
    k: Int, j: Int, i: Int, source: Cells, u: Cells, v: Cells, w: Cells, out: Cells,
    ax: Cells, ay: Cells, az: Cells, solid: Cells, ghosts: Int, scale: Real,
    at_z: Real, at_y: Real, at_x: Real, wraps_x: Int, wraps_y: Int, wraps_z: Int,
    bottom: Int, top: Int, last: Int, shift: Int,
) -> None:  # fmt: skip
    """Do what `advect` does, along paths that end at closed faces."""
    kk = k + shift
    z = carried(w, 1.0, 0.0, 0.0, kk, j, i, u, v, w, scale, at_z, at_y, at_x,
                wraps_x, wraps_y, wraps_z, bottom, top, last)  # fmt: skip
    y = carried(v, 0.0, 1.0, 0.0, kk, j, i, u, v, w, scale, at_z, at_y, at_x,
                wraps_x, wraps_y, wraps_z, bottom, top, last)  # fmt: skip
    x = carried(u, 0.0, 0.0, 1.0, kk, j, i, u, v, w, scale, at_z, at_y, at_x,
                wraps_x, wraps_y, wraps_z, bottom, top, last)  # fmt: skip
    z = along(kk, z, at_z, wraps_z, bottom, top)
    y = along(j, y, at_y, wraps_y, 1, rows - 1)
    x = along(i, x, at_x, wraps_x, 1, columns - 1)
    low = max(bottom, 1)
    high = min(top, last)
    cell = last_cell(ax, ay, az, kk, j, i, z, y, x, at_z, at_y, at_x, wraps_x, wraps_y, low, high)
    value = value_at(cell, source, ax, ay, az, solid, ghosts, kk, j, i, z, y, x, at_z, at_y, at_x,
                     wraps_x, wraps_y)  # fmt: skip
    out[k, j, i] = value


@over_cells
def correct_beside(
    k: Int, j: Int, i: Int, source: Cells, forward: Cells, u: Cells, v: Cells, w: Cells,
    out: Cells, ax: Cells, ay: Cells, az: Cells, solid: Cells, ghosts: Int, scale: Real,
    at_z: Real, at_y: Real, at_x: Real, wraps_x: Int, wraps_y: Int, wraps_z: Int,
    bottom: Int, top: Int, last: Int, shift: Int, slack: Real,
) -> None:  # fmt: skip
    """Do what `correct` does, along paths that end at closed faces; nothing where one does."""
    kk = k + shift
    bz = carried(w, 1.0, 0.0, 0.0, kk, j, i, u, v, w, scale, at_z, at_y, at_x,
                 wraps_x, wraps_y, wraps_z, bottom, top, last)  # fmt: skip
    by = carried(v, 0.0, 1.0, 0.0, kk, j, i, u, v, w, scale, at_z, at_y, at_x,
                 wraps_x, wraps_y, wraps_z, bottom, top, last)  # fmt: skip
    bx = carried(u, 0.0, 0.0, 1.0, kk, j, i, u, v, w, scale, at_z, at_y, at_x,
                 wraps_x, wraps_y, wraps_z, bottom, top, last)  # fmt: skip
    fz = carried(w, 1.0, 0.0, 0.0, kk, j, i, u, v, w, -scale, at_z, at_y, at_x,
                 wraps_x, wraps_y, wraps_z, bottom, top, last)  # fmt: skip
    fy = carried(v, 0.0, 1.0, 0.0, kk, j, i, u, v, w, -scale, at_z, at_y, at_x,
                 wraps_x, wraps_y, wraps_z, bottom, top, last)  # fmt: skip
    fx = carried(u, 0.0, 0.0, 1.0, kk, j, i, u, v, w, -scale, at_z, at_y, at_x,
                 wraps_x, wraps_y, wraps_z, bottom, top, last)  # fmt: skip
    value = forward[kk, j, i]
    if (
        ends_inside(kk, bz, fz, at_z, wraps_z, bottom, top) == 1
        and ends_inside(j, by, fy, at_y, wraps_y, 1, rows - 1) == 1
        and ends_inside(i, bx, fx, at_x, wraps_x, 1, columns - 1) == 1
    ):
        bz = within(bz, -float(MOST), float(MOST))
        by = within(by, -float(MOST), float(MOST))
        bx = within(bx, -float(MOST), float(MOST))
        fz = within(fz, -float(MOST), float(MOST))
        fy = within(fy, -float(MOST), float(MOST))
        fx = within(fx, -float(MOST), float(MOST))
        low = max(bottom, 1)
        high = min(top, last)
        back_to = last_cell(ax, ay, az, kk, j, i, bz, by, bx, at_z, at_y, at_x,
                            wraps_x, wraps_y, low, high)  # fmt: skip
        ahead = last_cell(ax, ay, az, kk, j, i, fz, fy, fx, at_z, at_y, at_x,
                          wraps_x, wraps_y, low, high)  # fmt: skip
        if (
            is_whole(back_to, bz, by, bx, at_z, at_y, at_x) == 1
            and is_whole(ahead, fz, fy, fx, at_z, at_y, at_x) == 1
        ):
            back = value_at(ahead, forward, ax, ay, az, solid, ghosts, kk, j, i, fz, fy, fx,
                            at_z, at_y, at_x, wraps_x, wraps_y)  # fmt: skip
            value = value + 0.5 * (source[kk, j, i] - back)
            least = -largest_at(back_to, source, -1.0, ax, ay, az, solid, ghosts, kk, j, i,
                                bz, by, bx, at_z, at_y, at_x, wraps_x, wraps_y)  # fmt: skip
            most = largest_at(back_to, source, 1.0, ax, ay, az, solid, ghosts, kk, j, i,
                              bz, by, bx, at_z, at_y, at_x, wraps_x, wraps_y)  # fmt: skip
            more = slack * (most - least)
            value = within(value, least - more, most + more)
    out[k, j, i] = value
