"""Isosurfaces of a field as triangles, by marching tetrahedra on a coarsened grid."""

from itertools import permutations

import numpy as np

from hybrid_nbody.analysis.volume import blocks, volume_of
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array

CORNERS = np.array([[corner >> 2, corner >> 1 & 1, corner & 1] for corner in range(8)])
"""Offsets (z, y, x) of the corners of a cube."""

TETRAHEDRA = np.array([[0, 1 << a, 1 << a | 1 << b, 7] for a, b, _ in permutations(range(3))])
"""Six tetrahedra around the diagonal of a cube (Freudenthal's division): those of neighbours share
their faces."""


def isosurface(values: Array, level: float) -> tuple[Array, Array]:
    """Return the closed surface around all points at which a field is greater than a level.

    Parameters
    ----------
    values : ndarray
        (nz, ny, nx), the field at the points of a grid; outside of them, and where it is not a
        number, it is taken to be below the level.
    level : float
        The value on the surface.

    Returns
    -------
    vertices : ndarray
        (V, 3) float64: x, y, z in units of the spacing, 0 at the first point. Each stands once.
    triangles : ndarray
        (F, 3) int64, the vertices of each, counter-clockwise if seen from where the field is
        smaller.

    Notes
    -----
    A. Doi and A. Koide, "An efficient method of triangulating equi-valued surfaces by using
    tetrahedral cells" (1991).
    """
    known = np.isfinite(values)
    below = min(
        float(np.min(values, initial=level, where=known)), level - 1e-3 * (abs(level) or 1.0)
    )
    field = np.pad(np.where(known, values, below).astype(np.float64), 1, constant_values=below)
    corners = _cubes_cut(field > level)
    tetrahedra = corners[:, TETRAHEDRA].reshape(-1, 4)
    edges = _edges_of_triangles(tetrahedra, field.ravel() > level)
    vertices, triangles = _shared(edges, field, level)
    return vertices - 1.0, _facing_out(vertices, triangles, edges, field)


def _cubes_cut(inside: Array) -> Array:
    """Return the flat indices of the corners of every cube that the surface cuts: (M, 8)."""
    counts = sum(
        inside[z : z - 1 or None, y : y - 1 or None, x : x - 1 or None].astype(np.int8)
        for z, y, x in CORNERS
    )
    cubes = np.argwhere((counts > 0) & (counts < 8))
    corners = (cubes[:, None] + CORNERS).transpose(2, 0, 1)
    return np.asarray(np.ravel_multi_index(tuple(corners), inside.shape))


def _edges_of_triangles(tetrahedra: Array, inside: Array) -> Array:
    """Return the edges with the corners of the triangles: (F, 3, 2), the inner point first."""
    order = np.argsort(~inside[tetrahedra], axis=1, kind="stable")
    sorted_ = np.take_along_axis(tetrahedra, order, axis=1)  # the points inside come first
    number = inside[tetrahedra].sum(axis=1)
    one, two, three = (sorted_[number == count].T for count in (1, 2, 3))
    groups = [
        [(one[0], one[1]), (one[0], one[2]), (one[0], one[3])],
        [(three[0], three[3]), (three[1], three[3]), (three[2], three[3])],
        [(two[0], two[2]), (two[0], two[3]), (two[1], two[3])],
        [(two[0], two[2]), (two[1], two[3]), (two[1], two[2])],
    ]
    return np.concatenate([np.array(group).transpose(2, 0, 1) for group in groups])


def _shared(edges: Array, field: Array, level: float) -> tuple[Array, Array]:
    """Return the vertices, each edge that is cut having one, and the vertices of each triangle."""
    keys, triangles = np.unique(edges.reshape(-1, 2), axis=0, return_inverse=True)
    inner, outer = field.ravel()[keys].T
    share = ((inner - level) / (inner - outer))[:, None]
    return _positions(keys[:, 0], field) * (1 - share) + _positions(
        keys[:, 1], field
    ) * share, triangles.reshape(-1, 3)


def _positions(points: Array, field: Array) -> Array:
    return np.stack(np.unravel_index(points, field.shape)[::-1], axis=-1).astype(np.float64)


def _facing_out(vertices: Array, triangles: Array, edges: Array, field: Array) -> Array:
    """Turn the triangles around whose corners are counter-clockwise as seen from inside."""
    outward = (_positions(edges[..., 1], field) - _positions(edges[..., 0], field)).sum(axis=1)
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    wrong = (np.cross(b - a, c - a) * outward).sum(axis=1) < 0
    return np.where(wrong[:, None], triangles[:, ::-1], triangles)


def coarse_means(run: Run, name: str, frame: int, most: int) -> tuple[Array, Array]:
    """Return a field of a frame as means over cubes of cells, read a few planes at a time.

    Parameters
    ----------
    run : Run
        An open run whose frames hold evenly spaced planes.
    name : str
        A field on a grid.
    frame : int
        Not negative.
    most : int
        Points along the longest axis at most.

    Returns
    -------
    means : ndarray
        (mz, my, mx) float64.
    width : ndarray
        (3,) float64, the edges x, y, z of such a cube: the longest edge of the box has length 1.
    """
    volume = volume_of(run, name)
    shape = run.shape(name)[1:4]
    factor = -(-max(shape) // most)
    starts = [np.arange(0, size, factor) for size in shape]
    total = np.zeros([len(start) for start in starts])
    for first, block in blocks(run, name, frame):
        flat = np.add.reduceat(
            np.add.reduceat(block, starts[2], axis=2, dtype=np.float64), starts[1], axis=1
        )
        np.add.at(total, (first + np.arange(len(block))) // factor, flat)
    cells = [np.diff([*start, size]) for start, size in zip(starts, shape, strict=True)]
    edges = np.array([volume.edge(axis) / shape[2 - axis] * factor for axis in range(3)])
    return total / (cells[0][:, None, None] * cells[1][:, None] * cells[2]), edges
