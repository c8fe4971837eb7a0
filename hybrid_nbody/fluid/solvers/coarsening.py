"""The coarser grids of multigrid: restriction and prolongation along one axis at a time.

A coarser axis has half the cells, rounded up, of one common length: of an odd number it makes cells
of less than twice the length. Grids so stay uniform, any number of cells can be halved, and all
converge alike. A sum of cells that only the last coarse cell treats differently (leaving it half as
long, or half as long again) costs a factor of two.

Ranks own the coarse planes whose centres lie in their own fine planes. No coarse cell is longer
than two fine ones, so that one halo plane is enough in both directions.
"""

from typing import NamedTuple

import numpy as np

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.parallel.exchange.halo import FullGrid

Cells = tuple[int, int, int]

MOST_STRETCHED = 1.4
"""An axis is left as it is where its spacing is more than this many times the smallest: it lags
behind the others."""

TAPS = 3
"""Most fine cells in a coarse one."""


class Averaging(NamedTuple):
    """The fine cells that a coarse one covers.

    Attributes
    ----------
    cells : (3, m) array of uint32
        The cells.
    weight : (3, m) array
        Which part of the coarse cell each covers.
    """

    cells: np.ndarray
    weight: np.ndarray


class Interpolation(NamedTuple):
    """The two coarse cells between whose centres a fine one lies.

    Attributes
    ----------
    lower, upper : (n,) array of uint32
        The cells.
    lower_weight, upper_weight : (n,) array
        Of their values.
    """

    lower: np.ndarray
    upper: np.ndarray
    lower_weight: np.ndarray
    upper_weight: np.ndarray


def grid_sizes(cells: Cells, periodic: tuple[bool, bool, bool]) -> list[Cells]:
    """Return the cells (nx, ny, nz) of all grids, from `cells` down to a single cell."""
    sizes = [cells]
    while max(sizes[-1]) > 1:
        sizes.append(_coarser(sizes[-1], cells, periodic))
    return sizes


def _coarser(cells: Cells, finest: Cells, periodic: tuple[bool, bool, bool]) -> Cells:
    """Return the cells of the next grid."""
    spacings = [whole / number for whole, number in zip(finest, cells, strict=True)]
    longest = MOST_STRETCHED * min(
        spacing for spacing, number in zip(spacings, cells, strict=True) if number > 1
    )
    axes = zip(cells, spacings, periodic, strict=True)
    x, y, z = (_halved(n, wraps) if spacing <= longest else n for n, spacing, wraps in axes)
    return x, y, z


def _halved(number: int, wraps: bool) -> int:
    """Return half of a number of cells.

    On a periodic axis it is even, so that no two neighbours are of one colour.
    """
    half = -(-number // 2)
    return half + half % 2 if wraps and half > 1 else half


def cells_kept_complete(backend: Backend, halo: Halo) -> int:
    """Return up to how many cells ranks keep a coarse grid complete, on each; collective.

    To relax so many takes no longer than a message.
    """
    own = backend.message_cells
    if isinstance(halo, FullGrid) or not halo.shared:
        return own
    return min(halo.communicator.gather(own))


def centre_planes(fine: int, coarse: int) -> np.ndarray:
    """Return the fine plane in which the centre of each of `coarse` planes lies."""
    return (2 * np.arange(coarse) + 1) * fine // (2 * coarse)


def averaging(fine: int, coarse: int) -> Averaging:
    """Return how `coarse` cells average `fine` ones: by the lengths that they have in common."""
    cell = np.arange(coarse)
    index = cell * fine // coarse + np.arange(TAPS)[:, None]
    common = np.minimum((index + 1) * coarse, (cell + 1) * fine) - np.maximum(
        index * coarse, cell * fine
    )
    last = -(-(cell + 1) * fine // coarse) - 1
    return Averaging(np.minimum(index, last).astype(np.uint32), np.maximum(common, 0) / fine)


def interpolation(fine: int, coarse: int, periodic: bool, sign: int) -> Interpolation:
    """Return how `fine` cells lie between `coarse` ones, whose index may be -1 or `coarse`.

    They are those only where the axis is periodic. Behind a wall is a ghost: `sign` times the cell
    at the wall.
    """
    location = (2 * np.arange(fine) + 1) * coarse - fine  # 2 * coarse * fine is the whole axis
    lower = location // (2 * fine)
    part = location % (2 * fine) / (2 * fine)
    weights = [1.0 - part, part]
    cells = [lower, lower + 1]
    if not periodic:
        inside = [np.clip(cell, 0, coarse - 1) for cell in cells]
        weights = [
            np.where(i == c, w, sign * w) for i, c, w in zip(inside, cells, weights, strict=True)
        ]
        cells = inside
    return Interpolation(*cells, *weights)


def couplings(number: int, spacing: float, periodic: bool, sign: int) -> np.ndarray:
    """Return (3, number) factors of the previous cell, the next one and the cell itself.

    The first two, less the third, make the second difference along an axis. A wall is where the
    factor of a neighbour is 0; its ghost is `sign` times the cell.
    """
    factors = np.array([1.0, 1.0, 2.0])[:, None] * np.ones(number) / spacing**2
    if periodic and number == 1:
        return np.zeros((3, 1))
    if not periodic:
        factors[2, 0] -= sign * factors[0, 0]
        factors[2, -1] -= sign * factors[1, -1]
        factors[0, 0] = factors[1, -1] = 0.0
    return factors
