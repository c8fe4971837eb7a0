"""Obstacles in a fluid: solid shapes, their motion, and what they leave open of a staggered grid.

Lengths are in units of the box, whose longest edge has length 1; cell (i, j, k) spans x from i h to
(i + 1) h, y and z alike, where h = 1 / max(cells). NumPy and, for meshes, Numba on the host.
"""

from hybrid_nbody.fluid.obstacles.base import Obstacle
from hybrid_nbody.fluid.obstacles.mesh import Mesh
from hybrid_nbody.fluid.obstacles.openings import Openings, openings
from hybrid_nbody.fluid.obstacles.shapes import Box, Cylinder, Sphere

__all__ = ["Box", "Cylinder", "Mesh", "Obstacle", "Openings", "Sphere", "openings"]
