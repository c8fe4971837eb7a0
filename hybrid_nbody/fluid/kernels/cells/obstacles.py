"""Obstacles: faces that are closed by them, what fields are within them, and forces on them.

What is known of an element stands in `reach`: 1 where there is fluid; 0.5 where most of a face is
closed, so that viscosity holds it at the velocity of the wall, and pressure moves it; 0 where a
value is given; -n in the n-th layer of a solid into which fields are continued, -`BURIED` beyond.
"""

from hybrid_nbody.backends.cells import Cells, Int, Real, over_cells, plane_sum
from hybrid_nbody.fluid.kernels.cells.diffusion import beyond, gap, towards

BURIED = 9.0
"""Less this is the reach of elements into which nothing is continued."""


@over_cells
def impose_solid(k: Int, j: Int, i: Int, a: Cells, reach: Cells, moving: Int, solid: Cells) -> None:
    """Give the faces within obstacles the velocity of those."""
    if reach[k, j, i] <= 0.0:
        a[k, j, i] = solid[k, j, i] if moving == 1 else 0.0


@over_cells
def stick(k: Int, j: Int, i: Int, a: Cells, reach: Cells, moving: Int, solid: Cells) -> None:
    """Give faces that are mostly closed the velocity of a wall to which fluid sticks."""
    if reach[k, j, i] > 0.0 and reach[k, j, i] < 1.0:
        a[k, j, i] = solid[k, j, i] if moving == 1 else 0.0


@over_cells
def blank(k: Int, j: Int, i: Int, a: Cells, reach: Cells) -> None:
    """Set cells within obstacles to 0."""
    if reach[k, j, i] <= 0.0:
        a[k, j, i] = 0.0


@plane_sum
def total_in(k: Int, j: Int, i: Int, a: Cells, part: Cells, number: Real) -> Real:
    """Return a field at the cells of a part."""
    return a[k, j, i] if part[k, j, i] == number else 0.0


@over_cells
def add_in(k: Int, j: Int, i: Int, a: Cells, part: Cells, number: Real, value: Real) -> None:
    """Add a number to a field at the cells of a part."""
    if part[k, j, i] == number:
        a[k, j, i] += value


def known(reach: Cells, least: Real, k: Int, j: Int, i: Int) -> Real:
    """Return 1 if an element is fluid, or in a layer above `least`; else 0."""
    found = reach[k, j, i]
    return 1.0 if found > 0.0 or (found < 0.0 and found > least) else 0.0


@over_cells
def deepen(k: Int, j: Int, i: Int, reach: Cells, layer: Real) -> None:
    """Make those buried elements a layer that have a known one beside them; `layer` is -n."""
    if reach[k, j, i] == -BURIED:
        beside = known(reach, layer, k, j, i - 1) + known(reach, layer, k, j, i + 1)
        beside += known(reach, layer, k, j - 1, i) + known(reach, layer, k, j + 1, i)
        beside += known(reach, layer, k - 1, j, i) + known(reach, layer, k + 1, j, i)
        if beside > 0.0:
            reach[k, j, i] = layer


@over_cells
def extend(k: Int, j: Int, i: Int, a: Cells, reach: Cells, layer: Real) -> None:
    """Set the elements of a layer to the mean of those beside them that are known."""
    if reach[k, j, i] == layer:
        left = known(reach, layer, k, j, i - 1)
        right = known(reach, layer, k, j, i + 1)
        front = known(reach, layer, k, j - 1, i)
        back = known(reach, layer, k, j + 1, i)
        below = known(reach, layer, k - 1, j, i)
        above = known(reach, layer, k + 1, j, i)
        total = left * a[k, j, i - 1] + right * a[k, j, i + 1]
        total += front * a[k, j - 1, i] + back * a[k, j + 1, i]
        total += below * a[k - 1, j, i] + above * a[k + 1, j, i]
        a[k, j, i] = total / max(left + right + front + back + below + above, 1.0)


def arm(
    along_k: Real, along_j: Real, along_i: Real, first: Int, start: Real, edge: Real,
    k: Int, j: Int, i: Int,
) -> Real:  # fmt: skip
    """Return the place of an element along an axis, in cells from `start`.

    `along_*` are 1 for that axis, else 0; all 0 with the start -1 is an arm of 1. Local plane 0 is
    the global one `first`. Places are less than half of `edge`, the period of the axis, from 0.
    """
    place = along_k * float(k + first) + along_j * float(j) + along_i * float(i) - start
    if place > 0.5 * edge:
        place -= edge
    elif place < -0.5 * edge:
        place += edge
    return place


@plane_sum
def pressure_moment(
    k: Int, j: Int, i: Int, p: Cells, opening: Cells, owner: Cells, number: Real,
    dk: Int, dj: Int, di: Int,
    along_k: Real, along_j: Real, along_i: Real, first: Int, start: Real, edge: Real,
) -> Real:  # fmt: skip
    """Return the force of the pressure on an obstacle in a cell, times an arm.

    The force is that along the axis of `opening`, to whose high face `d*` lead; see `arm`.
    """
    closed = opening[k, j, i] - opening[k + dk, j + dj, i + di]
    lever = arm(along_k, along_j, along_i, first, start, edge, k, j, i)
    return p[k, j, i] * closed * lever if owner[k, j, i] == number else 0.0


@plane_sum
def held_moment(
    k: Int, j: Int, i: Int, a: Cells, of_low: Real, of_own: Real, opening: Cells, reach: Cells,
    owner: Cells, number: Real, dk: Int, dj: Int, di: Int,
    along_k: Real, along_j: Real, along_i: Real, first: Int, start: Real, edge: Real,
) -> Real:  # fmt: skip
    """Return what two cells do to the open part of a face that a wall holds, times an arm.

    The wall takes it. `of_low` and `of_own` are factors of a field at both cells; `d*` lead to the
    low one.
    """
    pushed = of_low * a[k + dk, j + dj, i + di] + of_own * a[k, j, i]
    lever = arm(along_k, along_j, along_i, first, start, edge, k, j, i)
    is_held = reach[k, j, i] > 0.0 and reach[k, j, i] < 1.0
    return pushed * opening[k, j, i] * lever if is_held and owner[k, j, i] == number else 0.0


def pull(
    a: Cells, opening: Cells, reach: Cells, moving: Int, solid: Cells, own: Real, part: Real,
    own_solid: Real, k: Int, j: Int, i: Int,
) -> Real:  # fmt: skip
    """Return what an element pulls on the open part of a given one beside it; 0 if that is none."""
    value = -towards(a, opening, reach, own, part, k, j, i)
    if moving == 1:
        value = value - beyond(solid, opening, reach, own_solid, part, k, j, i)
    return part * value if reach[k, j, i] >= 0.0 and reach[k, j, i] < 1.0 else 0.0


def drawn(
    a: Cells, opening: Cells, reach: Cells, own: Real, part: Real, k: Int, j: Int, i: Int
) -> Real:
    """Return half of what the wall pulls between two elements of which unlike parts are open."""
    return 0.5 * (part - opening[k, j, i]) * (own - a[k, j, i]) if reach[k, j, i] >= 1.0 else 0.0


@plane_sum
def friction_moment(
    k: Int, j: Int, i: Int, a: Cells, opening: Cells, reach: Cells, moving: Int, solid: Cells,
    owner: Cells, number: Real,
    along_k: Real, along_j: Real, along_i: Real, first: Int, start: Real, edge: Real,
) -> Real:  # fmt: skip
    """Return what a component pulls on the wall beside it, times an arm to that wall.

    Viscosity changes the momentum of the open parts of faces by what the walls take. Between two
    faces of which unlike parts are open, that includes a part of what they pull on each other.
    """
    total = 0.0
    shift = 0.0
    if reach[k, j, i] >= 1.0 and owner[k, j, i] == number:
        own = a[k, j, i]
        part = opening[k, j, i]
        speed = solid[k, j, i] if moving == 1 else 0.0
        left = pull(a, opening, reach, moving, solid, own, part, speed, k, j, i - 1)
        right = pull(a, opening, reach, moving, solid, own, part, speed, k, j, i + 1)
        front = pull(a, opening, reach, moving, solid, own, part, speed, k, j - 1, i)
        back = pull(a, opening, reach, moving, solid, own, part, speed, k, j + 1, i)
        below = pull(a, opening, reach, moving, solid, own, part, speed, k - 1, j, i)
        above = pull(a, opening, reach, moving, solid, own, part, speed, k + 1, j, i)
        total = left + right + front + back + below + above
        total += drawn(a, opening, reach, own, part, k, j, i - 1)
        total += drawn(a, opening, reach, own, part, k, j, i + 1)
        total += drawn(a, opening, reach, own, part, k, j - 1, i)
        total += drawn(a, opening, reach, own, part, k, j + 1, i)
        total += drawn(a, opening, reach, own, part, k - 1, j, i)
        total += drawn(a, opening, reach, own, part, k + 1, j, i)
        shift += along_i * right * gap(opening, part, k, j, i + 1)
        shift -= along_i * left * gap(opening, part, k, j, i - 1)
        shift += along_j * back * gap(opening, part, k, j + 1, i)
        shift -= along_j * front * gap(opening, part, k, j - 1, i)
        shift += along_k * above * gap(opening, part, k + 1, j, i)
        shift -= along_k * below * gap(opening, part, k - 1, j, i)
    return total * arm(along_k, along_j, along_i, first, start, edge, k, j, i) + shift
