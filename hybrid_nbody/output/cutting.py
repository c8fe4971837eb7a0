"""Cutting a trajectory back to a checkpoint: nothing is removed before the rest is listed."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.listing import Listing, Table, first_rows
from hybrid_nbody.files.parts import files_in, head_path, heads_in, parts_folder
from hybrid_nbody.output.listing import write_listing
from hybrid_nbody.output.part import Contents, first_of, merged, read_contents, write_part
from hybrid_nbody.output.sealing import remove_files

FRAMES = "frames"
DIAGNOSTICS = "diagnostics"
"""What can be removed at the very step of a cut."""


def cut(
    path: Path,
    listing: Listing,
    step: int,
    without: Collection[str],
    warn: Callable[[str], None],
) -> Listing:
    """Remove all frames and rows of diagnostics after a step, and return what is left.

    Parameters
    ----------
    path : Path
        ``trajectory.h5``.
    listing : Listing
        What the trajectory holds.
    step : int
        The last step that stays.
    without : collection of str
        `FRAMES` or `DIAGNOSTICS`, of which that of this very step is removed, too.
    warn : callable
        Told of a part that has to be cut and is damaged.

    Raises
    ------
    FileError
        A file cannot be written or removed.
    """
    frames = _kept(listing.frames, step - (FRAMES in without))
    rows = _kept(listing.rows, step - (DIAGNOSTICS in without))
    whole = _whole_parts(listing, frames, rows)
    kept = replace(
        listing,
        parts=listing.parts[:whole],
        frames=first_rows(listing.frames, sum(part.frames for part in listing.parts[:whole])),
        rows=first_rows(listing.rows, sum(part.rows for part in listing.parts[:whole])),
    )
    left = frames - len(kept.frames["step"])
    rest = merged(_cut_parts(path, listing, whole, left, warn), listing.variables)
    rest = replace(rest, rows=_between(listing.rows, len(kept.rows["step"]), rows))
    if rest.number:
        part = write_part(path, kept.next_entry, rest, listing)
        kept = kept.with_part(part, rest.frames, rest.rows)
    write_listing(path, kept)
    remove_unlisted(path, kept)
    return kept


def _kept(table: Table, step: int) -> int:
    """Return the number of rows up to a step."""
    return int(np.searchsorted(table["step"], step, side="right"))


def _whole_parts(listing: Listing, frames: int, rows: int) -> int:
    """Return how many parts at the beginning stay as they are."""
    for number, part in enumerate(listing.parts):
        frames -= part.frames
        rows -= part.rows
        if frames < 0 or rows < 0:
            return number
    return len(listing.parts)


def _between(table: Table, first: int, stop: int) -> Table:
    """Return some consecutive rows of a table."""
    return {name: column[first:stop] for name, column in table.items()}


def _cut_parts(
    path: Path, listing: Listing, whole: int, left: int, warn: Callable[[str], None]
) -> list[Contents]:
    """Return the first `left` frames of the parts that do not stay as they are."""
    found: list[Contents] = []
    for part in listing.parts[whole:]:
        frames = min(part.frames, left)
        left -= frames
        if frames == 0:
            continue
        try:
            found.append(first_of(read_contents(path, part, listing.variables), frames))
        except FileError as error:
            warn(f"{error}; the {frames} frames in it are lost")
    return found


def remove_unlisted(path: Path, listing: Listing) -> None:
    """Remove the parts that a trajectory does not list, and those of later series.

    Parts before its first entry belong to trajectories that have been put aside.
    """
    listed = {part.entries for part in listing.parts}
    folder = parts_folder(path)
    others = [
        file
        for entries, file in files_in(folder)
        if entries.first >= listing.first and entries not in listed
    ]
    heads = [head_path(path, first) for first in heads_in(folder) if first > listing.first]
    remove_files(folder, [*others, *heads, *folder.glob("*.part")])
