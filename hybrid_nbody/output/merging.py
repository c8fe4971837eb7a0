"""Merging the parts of a trajectory: many small ones become one."""

from collections.abc import Sequence
from pathlib import Path

from hybrid_nbody.files.listing import Listing
from hybrid_nbody.files.parts import Part, paths_of
from hybrid_nbody.output.part import merged, read_contents, write_part

PART_BYTES = 64 << 20
"""Bytes that are written without a pause; a part of that size is not merged any more."""

MERGED_PARTS = 16
"""Fewest parts that are put together into one."""


def parts_to_merge(sizes: Sequence[int]) -> int:
    """Return how many parts at the end are to be merged: 0, or `MERGED_PARTS` and more.

    A part joins those after it if it is at most twice as large as all of them together: so the
    number of parts, and how often a frame is written, grow like the logarithm of their number.
    """
    total = 0
    count = 0
    for size in reversed(sizes):
        if size >= PART_BYTES or total >= PART_BYTES or (count and size > 2 * total):
            break
        total += size
        count += 1
    return count if count >= MERGED_PARTS else 0


def size_of(trajectory: Path, part: Part) -> int:
    """Return the bytes of a part; those that ranks have shared stay as they are."""
    path = paths_of(trajectory, part.entries)[0]
    small = part.entries.pieces == 1 and path.exists()
    return path.stat().st_size if small else PART_BYTES


def whole_of(trajectory: Path, parts: Sequence[Part], listing: Listing) -> Part:
    """Write what several parts of a listing hold into one, and return it; they stay as they are.

    Raises
    ------
    FileError
        One of them is damaged, or the whole cannot be written.
    """
    contents = [read_contents(trajectory, part, listing.variables) for part in parts]
    first = parts[0].entries.first
    return write_part(trajectory, first, merged(contents, listing.variables), listing)
