"""The cavity of input/cavity.yaml at Re 100 against Ghia, Ghia and Shin (1982)."""

from pathlib import Path

import numpy as np
import pytest
from support.ranks import alone, communicator

from hybrid_nbody import Simulation

__all__ = ["alone", "communicator"]

CAVITY = Path(__file__).parents[2] / "input" / "cavity.yaml"
CELLS = 32

ALONG_X = [
    (0.0625, -0.04192),
    (0.1719, -0.10150),
    (0.2813, -0.15662),
    (0.4531, -0.21090),
    (0.6172, -0.13641),
    (0.7344, 0.00332),
    (0.8516, 0.23151),
    (0.9531, 0.68717),
]
"""Height, and the velocity along x on the vertical line through the centre."""

ALONG_Y = [
    (0.0625, 0.09233),
    (0.1563, 0.16077),
    (0.2344, 0.17527),
    (0.5000, 0.05454),
    (0.8047, -0.24533),
    (0.8594, -0.22445),
    (0.9531, -0.08864),
]
"""Places along x, and the velocity along y on the horizontal line through the centre."""


def on_line(values, places, at_start, at_end):
    """Return the values of cells at places between two walls."""
    cells = (np.arange(CELLS) + 0.5) / CELLS
    return np.interp(places, [0.0, *cells, 1.0], [at_start, *values, at_end])


def test_a_driven_cavity_is_that_of_ghia(alone):
    few = {
        "grid.cells": [CELLS, CELLS, 4],
        "time.dt": 0.08,
        "time.end": 9.6,
        "solver.tolerance": 1e-4,
        "output.planes": None,
        "compute.backend": "cpu",
        "compute.threads": 1,
    }
    with Simulation(CAVITY, few, communicator=alone) as simulation:
        simulation.run()
        plane = simulation.velocity[1]
    middle = CELLS // 2
    u = plane[:, middle - 1 : middle + 1, 0].mean(axis=1)
    v = plane[middle - 1 : middle + 1, :, 1].mean(axis=0)
    heights, expected = np.transpose(ALONG_X)
    np.testing.assert_allclose(on_line(u, heights, 0.0, 1.0), expected, rtol=0, atol=0.01)
    places, expected = np.transpose(ALONG_Y)
    np.testing.assert_allclose(on_line(v, places, 0.0, 0.0), expected, rtol=0, atol=0.01)
    assert u.min() == pytest.approx(-0.2109, abs=0.01)
