"""Thin solids: where the fluid on both sides is so near that interpolation would reach across."""

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles import lattice
from hybrid_nbody.fluid.obstacles.openings import Openings

Flags = NDArray[np.bool_]

LEAST = 1.0
"""Fluid on one side of a thin solid, among 27 cells, in cells."""

MIDDLE = 13
"""The place of a cell among the 27 around it."""

INNER = (slice(1, -1),) * 3
"""Cells that are no ghosts."""

STRIDES = (1, 3, 9)
"""From one of 27 cells to the next along x, y and z."""


def thin_cells(found: Openings) -> Flags:
    """Return which cells are beside or within a solid of at most a cell in thickness.

    There, two cells of the fluid with one closed face or one solid cell between them are not joined
    through the cells around these: the edge of a body that pokes through a face is not thin. On
    both sides there is the fluid of a cell or more: slivers along a surface do not count.

    Parameters
    ----------
    found : Openings

    Returns
    -------
    array of bool, shape (planes, ny, nx)
        Of the cells without ghosts.
    """
    thin = np.zeros(found.volume[INNER].shape, np.bool_)
    for axis in range(3):
        for candidates, low, high in _pairs(found, axis):
            places = np.argwhere(candidates)
            thin[tuple(places[_parted(found, places, low, high)].T)] = True
    return thin


def _parted(found: Openings, places: NDArray[np.intp], low: int, high: int) -> Flags:
    """Return at which places two of the 27 cells around are not joined, both with some fluid."""
    k, j, i = _around(places)
    labels = _labels_around(found, places)
    volume = found.volume[k, j, i]
    amounts = [np.where(labels == labels[:, [one]], volume, 0.0).sum(axis=1) for one in (low, high)]
    apart: Flags = (labels[:, low] != labels[:, high]) & (np.minimum(*amounts) >= LEAST)
    return apart


def _pairs(found: Openings, axis: int) -> list[tuple[Flags, int, int]]:
    """Return cells whose fluid, or that of the cells at their sides, may be parted along an axis.

    With them come the places, among the 27 cells around each, of the two to be compared.
    """
    along = 2 - axis
    opening = (found.x, found.y, found.z)[axis]
    fluid = found.volume > 0.0
    below = np.roll(fluid, 1, along)
    above = np.roll(fluid, -1, along)
    stride = STRIDES[axis]
    face: Flags = (fluid & below & (opening == 0.0))[INNER]
    cell: Flags = (~fluid & below & above)[INNER]
    return [(face, MIDDLE - stride, MIDDLE), (cell, MIDDLE - stride, MIDDLE + stride)]


def _around(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the indices k, j, i, in arrays with ghosts, of 27 cells; shape (3, n, 27)."""
    around: NDArray[np.intp] = places[:, None] + lattice.CORNERS[:, ::-1]
    return around.transpose(2, 0, 1)


def _labels_around(found: Openings, places: NDArray[np.intp]) -> NDArray[np.int8]:
    """Return for the 27 cells around places which of them are joined; shape (n, 27)."""
    k, j, i = _around(places)
    fluid = found.volume[k, j, i] > 0.0
    joined = []
    for axis, opening in enumerate((found.x, found.y, found.z)):
        low = np.minimum(lattice.CORNERS[:, axis] + 1, 2) - lattice.CORNERS[:, axis]
        steps = [low if other == axis else 0 for other in range(3)]
        joined.append(opening[k + steps[2], j + steps[1], i + steps[0]] > 0.0)
    return lattice.labels(fluid, joined)
