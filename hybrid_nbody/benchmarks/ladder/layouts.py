"""How the bodies of a GPU rung lie in memory: one class a layout, named after what its kernels take.

Each holds float32 arrays of `padded` bodies on the device, those beyond the problem's without mass.
"""

import numpy as np


def padded_rows(backend, problem, padded: int):
    """Return x, y, z, vx, vy, vz, mass as the rows of a (7, padded) array of float32 on the host."""
    rows = np.zeros((7, padded), np.float32)
    rows[:3, : problem.number] = problem.position.T
    rows[6, : problem.number] = problem.mass
    return rows


class Structs:
    """An array of structs {x, y, z, vx, vy, vz, mass}."""

    drift = "drift_structs"

    def __init__(self, backend, problem, padded):
        self.bodies = backend.upload(padded_rows(backend, problem, padded).T)
        self.buffers = self.moving = (self.bodies,)

    def result(self, download):
        """Return positions and velocities, two (padded, 3) arrays on the host."""
        bodies = download(self.bodies)
        return bodies[:, :3], bodies[:, 3:6]


class Arrays:
    """A struct of arrays: x, y, z, vx, vy, vz, mass, each by itself."""

    drift = "drift_arrays"

    def __init__(self, backend, problem, padded):
        self.rows = backend.upload(padded_rows(backend, problem, padded))
        self.buffers = tuple(self.rows)
        self.moving = self.buffers[:6]

    def result(self, download):
        """Return positions and velocities, two (padded, 3) arrays on the host."""
        rows = download(self.rows)
        return rows[:3].T, rows[3:6].T


class Vectors3:
    """Arrays of float3 for positions and velocities, and one of masses."""

    drift = "drift_float3"

    def __init__(self, backend, problem, padded):
        rows = padded_rows(backend, problem, padded)
        self.buffers = tuple(backend.upload(part) for part in (rows[:3].T, rows[3:6].T, rows[6]))
        self.moving = self.buffers[:2]

    def result(self, download):
        """Return positions and velocities, two (padded, 3) arrays on the host."""
        return download(self.buffers[0]), download(self.buffers[1])


class Vectors4:
    """Arrays of float4 for positions, with the mass in the 4th component, and velocities."""

    drift = "drift_float4"

    def __init__(self, backend, problem, padded):
        rows = padded_rows(backend, problem, padded)
        position = np.vstack([rows[:3], rows[6:]]).T
        velocity = np.zeros((padded, 4), np.float32)
        self.buffers = self.moving = (backend.upload(position), backend.upload(velocity))

    def result(self, download):
        """Return positions and velocities, two (padded, 3) arrays on the host."""
        return download(self.buffers[0])[:, :3], download(self.buffers[1])[:, :3]
