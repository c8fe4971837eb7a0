"""How wrong single precision gets the forces on bodies, from the chunks that these lie in.

A body is stored about the origin of its chunk, and rounded by up to 2^-24 of its distance from
there. Where a chunk holds several tight clumps, that may be much beside the distances within one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SAMPLE = 512
"""Bodies whose forces are computed twice."""

NEAR = 256
"""Bodies before one, and after it on the curve, whose rounding changes its force."""

FAR = 1024
"""Bodies that stand for all others in the size of a force."""


class Path(NamedTuple):
    """Bodies in the order in which they are summed in single precision.

    Attributes
    ----------
    position, origin : (N, 3) array of float64
        Of each body, and of the chunk that it lies in.
    mass : (N,) array of float64
    """

    position: NDArray[np.float64]
    origin: NDArray[np.float64]
    mass: NDArray[np.float64]

    def rounded(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the storage adds to the positions of some bodies."""
        offset = self.position[rows] - self.origin[rows]
        return offset.astype(np.float32) - offset


class ForceErrors(NamedTuple):
    """Errors of accelerations, relative to the rms of these.

    Attributes
    ----------
    median, most : float
        Exceeded by half of the bodies, and by one in a hundred.
    """

    median: float
    most: float


@np.errstate(all="ignore")  # the guard reports what is out of range
def force_errors(path: Path, softening: float) -> ForceErrors:
    """Return about how wrong single precision gets the accelerations, as far as storing does it.

    Parameters
    ----------
    path : Path
        All bodies, or those examined.
    softening : float
        In units of the positions.
    """
    number = len(path.mass)
    targets = np.unique(np.linspace(0, number - 1, min(SAMPLE, number)).astype(np.int64))
    errors = np.empty((len(targets), 3))
    forces = np.empty((len(targets), 3))
    for row, target in enumerate(targets.tolist()):
        near = np.arange(max(target - NEAR, 0), min(target + NEAR + 1, number))
        step = path.position[near] - path.position[target]
        wrong = step + (path.rounded(near) - path.rounded(np.array([target])))
        true = _acceleration(step, path.mass[near], softening)
        errors[row] = _acceleration(wrong, path.mass[near], softening) - true
        forces[row] = true + _from_afar(path, target, softening)
    size = np.sqrt(np.mean(np.sum(forces * forces, axis=1)))
    relative = np.linalg.norm(errors, axis=1) / size
    known = relative[np.isfinite(relative)]
    if not len(known):
        return ForceErrors(0.0, 0.0)
    return ForceErrors(float(np.median(known)), float(np.percentile(known, 99)))


def _from_afar(path: Path, target: int, softening: float) -> NDArray[np.float64]:
    """Return the acceleration of a body by those that are not near on the curve."""
    number = len(path.mass)
    rows = np.arange(0, number, -(-number // FAR))
    rows = rows[np.abs(rows - target) > NEAR]
    if not len(rows):
        return np.zeros(3)
    others = number - min(target + NEAR + 1, number) + max(target - NEAR, 0)
    step = path.position[rows] - path.position[target]
    return others / len(rows) * _acceleration(step, path.mass[rows], softening)


def _acceleration(
    step: NDArray[np.float64], mass: NDArray[np.float64], softening: float
) -> NDArray[np.float64]:
    """Return the acceleration by bodies, for G = 1; those at the place itself do nothing."""
    square = np.sum(step * step, axis=1) + softening * softening
    weight = np.divide(mass, square * np.sqrt(square), out=np.zeros_like(mass), where=square > 0)
    total: NDArray[np.float64] = weight @ step
    return total
