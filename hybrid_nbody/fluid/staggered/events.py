"""Sources of the staggered fluid: events that give cells or faces a value."""

from collections.abc import Iterator

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.fluid.sources import Box, Event, Sphere
from hybrid_nbody.fluid.staggered.grid import AXES, STEPS, Grid
from hybrid_nbody.fluid.staggered.state import State

KEPT = {"set": 0.0, "add": 1.0}
"""What remains of a cell's value in each mode."""


def apply(event: Event, grid: Grid, state: State) -> None:
    """Give the cells of an event, or the faces of these, its values; ghosts are not valid then."""
    if event.field != "velocity":
        _put(event, grid, state.scalars[event.field], event.values[0], (0, 0, 0))
        return
    for axis in AXES:
        _put(event, grid, state.velocity[axis], event.values[axis], STEPS[axis])


def _put(
    event: Event, grid: Grid, array: Array, value: float, staggered: tuple[int, int, int]
) -> None:
    """Set or add to elements; `staggered` is 1 along the axis at whose faces they are."""
    keep = KEPT[event.mode]
    run = grid.program.run
    if isinstance(event.region, Box):
        for box in (event.region, *_wrapped_faces(event.region, grid, staggered)):
            run("put", _box(box, grid, staggered), array, keep, value)
        return
    given = (keep, value, grid.first, *_centre(event.region, staggered), event.region.radius**2)
    run("put_sphere", _all(grid, staggered), array, *given)


def _wrapped_faces(box: Box, grid: Grid, staggered: tuple[int, int, int]) -> Iterator[Box]:
    """Yield a box without cells at the start of a periodic axis whose end a box reaches.

    The last faces of its cells are the first ones there.
    """
    for axis in AXES:
        low, high = box.edges[2 * axis : 2 * axis + 2]
        if staggered == STEPS[axis] and grid.periodic[axis] and 0 < low < high == grid.cells[axis]:
            edges = [*box.edges]
            edges[2 * axis : 2 * axis + 2] = 0, 0
            x0, x1, y0, y1, z0, z1 = edges
            yield Box((x0, x1, y0, y1, z0, z1))


def _box(box: Box, grid: Grid, staggered: tuple[int, int, int]) -> Region:
    """Return the elements of a box on this rank: cells, or all their faces across an axis."""
    x0, x1, y0, y1, z0, z1 = box.edges
    above, behind, right = staggered
    shift = 1 - grid.first
    low = max(z0 + shift, 1)
    high = min(z1 + above + shift, grid.planes + 1 + above * grid.ends[1])
    rows = (y0 + 1, y1 + 1 + behind)
    columns = (x0 + 1, x1 + 1 + right)
    return low, max(low, high), *rows, *columns


def _all(grid: Grid, staggered: tuple[int, int, int]) -> Region:
    """Return the elements that a rank owns, the last faces of the box among them."""
    above, behind, right = staggered
    k0, k1, j0, j1, i0, i1 = grid.region
    return k0, k1 + above * grid.ends[1], j0, j1 + behind, i0, i1 + right


def _centre(sphere: Sphere, staggered: tuple[int, int, int]) -> tuple[float, float, float]:
    """Return the centre of a sphere as the indices of elements count."""
    x, y, z = sphere.centre
    above, behind, right = staggered
    return x + 0.5 * right, y + 0.5 * behind, z + 0.5 * above
