"""The cube that the cells of a tree divide."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST_EXTENT = float(np.finfo(float).tiny) * 2.0**64
"""Extent below which the edges of deep cells would not be normal numbers."""


class Cube(NamedTuple):
    """A cube that holds all bodies: its lowest corner and its edge, a power of two."""

    x: float
    y: float
    z: float
    edge: float


def box_around(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the box around boxes, (B, 2, 3): its lowest and its highest corner, (2, 3)."""
    return np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])


def cube_around(lowest: NDArray[np.float64], highest: NDArray[np.float64]) -> Cube:
    """Return a cube around a box; its corner is a multiple of half its edge.

    A body therefore has the same key whatever the others do, as long as the cube is the same.

    Parameters
    ----------
    lowest, highest : (3,) array of float64
        Corners of the box; neither may be infinite or NaN.
    """
    extent = float(np.max(highest - lowest))
    resolution = 4 * float(np.spacing(max(np.abs(lowest).max(), np.abs(highest).max())))
    edge = 2.0 ** math.ceil(math.log2(max(extent, resolution, LEAST_EXTENT)))
    while True:
        corner = np.floor(lowest / (edge / 2)) * (edge / 2)
        if np.all(highest < corner + edge):
            return Cube(float(corner[0]), float(corner[1]), float(corner[2]), edge)
        edge *= 2
