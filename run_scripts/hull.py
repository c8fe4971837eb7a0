"""Write the hull of a ship as an STL file, to be put into a fluid: `mesh: hull.stl`.

    python run_scripts/hull.py hull.stl

It is 0.5 long and lies along x about (0.5, 0.25, 0.25), its bow against a stream along x.
"""

import sys

import numpy as np

from hybrid_nbody.fluid.obstacles.stl import Triangles, write_stl

LENGTH, BEAM, DRAUGHT = 0.5, 0.09, 0.08
STATIONS, POINTS = 60, 32


def ring(along: float) -> Triangles:
    """Return the points of a cross-section from the bow (0) to the stern (1), shape (POINTS, 3)."""
    fullness = np.sqrt(np.sin(np.pi * along**0.8))
    angles = 2.0 * np.pi * np.arange(POINTS) / POINTS
    y = 0.5 * BEAM * fullness * np.cos(angles)
    z = 0.5 * DRAUGHT * fullness**0.5 * np.sin(angles)
    z = np.where(z > 0.0, 0.4 * z, z)  # low above the water
    x = np.full(POINTS, LENGTH * (along - 0.5))
    return np.stack((x, y, z), axis=1) + np.array([0.5, 0.25, 0.25])


def hull() -> Triangles:
    """Return its triangles, shape (n, 3, 3): strips between rings, and a fan at either end."""
    rings = [ring(along) for along in np.linspace(0.005, 0.995, STATIONS)]
    bow, stern = ring(0.0).mean(axis=0), ring(1.0).mean(axis=0)
    parts = [fan(bow, rings[0][::-1]), fan(stern, rings[-1])]
    for front, back in zip(rings[:-1], rings[1:], strict=True):
        front_next, back_next = np.roll(front, -1, axis=0), np.roll(back, -1, axis=0)
        parts.append(np.stack((front, front_next, back), axis=1))
        parts.append(np.stack((front_next, back_next, back), axis=1))
    return np.concatenate(parts)


def fan(tip: Triangles, points: Triangles) -> Triangles:
    """Return the triangles from a tip to the edges of a ring."""
    tips = np.broadcast_to(tip, points.shape)
    return np.stack((tips, points, np.roll(points, -1, axis=0)), axis=1)


if __name__ == "__main__":
    write_stl(sys.argv[1], hull())
