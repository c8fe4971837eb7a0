"""The order in which sources are summed: along a space-filling curve, so that neighbours share a chunk."""

BITS = 21
"""Cells along an axis are numbered with this many bits; three axes fill an int64."""


def morton_keys(xp, position):
    """Return the Morton (Z-order) key of each position within their common bounding cube.

    Parameters
    ----------
    xp : module
        NumPy or CuPy, whichever made `position`.
    position : (N, 3) array of float64

    Returns
    -------
    (N,) array of int64
    """
    corner = position.min(axis=0)
    extent = xp.maximum((position - corner).max(), 1e-300)
    cell = ((position - corner) * ((2.0**BITS - 1) / extent)).astype(xp.int64)
    return _spread(cell[:, 0]) | _spread(cell[:, 1]) << 1 | _spread(cell[:, 2]) << 2


def _spread(cell):
    """Move bit k of each 21-bit number to bit 3 k."""
    cell = (cell | cell << 32) & 0x1F00000000FFFF
    cell = (cell | cell << 16) & 0x1F0000FF0000FF
    cell = (cell | cell << 8) & 0x100F00F00F00F00F
    cell = (cell | cell << 4) & 0x10C30C30C30C30C3
    return (cell | cell << 2) & 0x1249249249249249


def sort_along_curve(xp, state) -> None:
    """Set ``state.order`` to the order of the present positions along the Morton curve, and ``state.place`` with it."""
    state.order[:] = xp.argsort(morton_keys(xp, state.position), kind="stable")
    find_places(xp, state)


def find_places(xp, state) -> None:
    """Set ``state.place`` from ``state.order``."""
    place = xp.empty_like(state.order)
    place[state.order] = xp.arange(len(place), dtype=place.dtype)
    state.place[:] = place[state.own]
