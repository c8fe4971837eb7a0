"""Bodies for figures: all of them, or evenly chosen ones where they are very many.

Figures then take as much memory for ten million bodies as for `MOST`. What they show of a million
bodies differs from what they would show of all by a thousandth. Images of the density count all
bodies, in pieces.
"""

from collections.abc import Iterator

import numpy as np

from hybrid_nbody.files.run import Run
from hybrid_nbody.files.thinning import chosen_bodies
from hybrid_nbody.files.views import Array

MOST = 1_000_000
"""Most bodies of a frame that a figure takes."""

ROWS = 1 << 18
"""Most rows that are read at once where not all are kept."""


def stride_of(run: Run) -> int:
    """Return how far the bodies that figures take are apart; 1 if they take all."""
    return max(1, -(-run.number_of_bodies // MOST))


def positions_of(run: Run, frame: int) -> Array:
    """Return the positions in a frame: (M, 3)."""
    if stride_of(run) == 1:
        return run.positions(frame)
    return _some_rows(run, "bodies/position", frame)


def velocities_of(run: Run, frame: int) -> Array:
    """Return the velocities in a frame: (M, 3)."""
    if stride_of(run) == 1:
        return run.velocities(frame)
    return _some_rows(run, "bodies/velocity", frame)


def masses_of(run: Run) -> Array:
    """Return the masses: (M,)."""
    stride = stride_of(run)
    if stride == 1:
        return run.mass
    pieces = [run.constant("bodies/mass", rows)[::stride].copy() for rows in _pieces(run)]
    return np.concatenate(pieces)


def pieces_of_positions(run: Run, frame: int) -> Iterator[Array]:
    """Yield the positions of all bodies in a frame, in pieces: (M, 3)."""
    for rows in _pieces(run):
        yield run.part("bodies/position", frame, (rows,))


def stored_bodies(run: Run) -> str:
    """Return in words how many bodies the frames hold, and which if not all of the run."""
    chosen = chosen_bodies(run.config)
    return f"{run.number_of_bodies} bodies" + (f" ({chosen})" if chosen else "")


def counted_bodies(run: Run) -> str:
    """Return in words how many bodies there are and which of them a figure shows."""
    stride = stride_of(run)
    return stored_bodies(run) + ("" if stride == 1 else f", 1 of {stride} drawn")


def _some_rows(run: Run, name: str, frame: int) -> Array:
    """Return the rows of a field in a frame that figures take."""
    stride = stride_of(run)
    pieces = [run.part(name, frame, (rows,))[::stride].copy() for rows in _pieces(run)]
    return np.concatenate(pieces)


def _pieces(run: Run) -> list[slice]:
    """Return slices of all bodies, each of which starts at a body that figures take."""
    stride = stride_of(run)
    length = max(1, ROWS // stride) * stride
    number = run.number_of_bodies
    return [slice(start, min(start + length, number)) for start in range(0, number, length)]
