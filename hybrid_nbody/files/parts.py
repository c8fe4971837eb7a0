"""The parts of a trajectory: sealed files, each with some frames and rows of diagnostics.

A frame or a row of diagnostics is an **entry**; entries are counted in the order in which they were
written. A part holds consecutive entries and has their numbers in its name. It never changes once
it has that name: parts are added, and replaced by one that holds the same entries, or fewer at the
end.

``trajectory.h5`` lists the parts up to some entry. What follows is found by the names of the files,
so that a run that was killed before it brought the list up to date has lost nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PARTS_FOLDER = "trajectory"
"""Name of the folder of the parts, in the directory of a run."""

NAME = re.compile(r"part-(\d{10})-(\d{10})(?:\.(\d+)of(\d+))?\.h5")

HEAD_NAME = re.compile(r"head-(\d{10})\.h5")


@dataclass(frozen=True, order=True)
class EntryRange:
    """Consecutive entries of a trajectory, which are one part.

    Attributes
    ----------
    first, stop : int
        Number of the first, and of the one after the last.
    pieces : int
        Number of its files: one, or one from each rank with a share of the rows of every field.
    """

    first: int
    stop: int
    pieces: int = 1


@dataclass(frozen=True)
class Part:
    """One part, as the list in ``trajectory.h5`` has it.

    Attributes
    ----------
    entries : EntryRange
        The entries in it.
    frames, rows : int
        How many of them are frames, and how many are rows of diagnostics.
    digests : tuple of str
        SHA-256 of the contents of each of its files, in hexadecimal digits.
    """

    entries: EntryRange
    frames: int
    rows: int
    digests: tuple[str, ...]


def names_of(entries: EntryRange) -> list[str]:
    """Return the names of the files of a part."""
    stem = f"part-{entries.first:010d}-{entries.stop - 1:010d}"
    if entries.pieces == 1:
        return [f"{stem}.h5"]
    return [f"{stem}.{piece + 1}of{entries.pieces}.h5" for piece in range(entries.pieces)]


def entries_of(name: str) -> EntryRange | None:
    """Return the part to which a file of a name belongs; None if it is no name of a part."""
    found = NAME.fullmatch(name)
    return EntryRange(int(found[1]), int(found[2]) + 1, int(found[4] or 1)) if found else None


def share_of(rows: int, piece: int, pieces: int) -> slice:
    """Return the rows that a piece of a part holds: all pieces hold about as many."""
    return slice(rows * piece // pieces, rows * (piece + 1) // pieces)


def parts_folder(trajectory: Path) -> Path:
    """Return the folder of the parts of a trajectory."""
    return trajectory.parent / PARTS_FOLDER


def paths_of(trajectory: Path, entries: EntryRange) -> list[Path]:
    """Return the paths of the files of a part."""
    return [parts_folder(trajectory) / name for name in names_of(entries)]


def head_path(trajectory: Path, first: int) -> Path:
    """Return the path of what all frames share, from entry `first` on."""
    return parts_folder(trajectory) / f"head-{first:010d}.h5"


def heads_in(folder: Path) -> list[int]:
    """Return the first entry of each series of parts in a folder, in their order."""
    if not folder.is_dir():
        return []
    found = (HEAD_NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(name[1]) for name in found if name)


def series_of(folder: Path, first: int) -> list[EntryRange]:
    """Return the parts of the series that begins with entry `first`, in their order."""
    end = min((head for head in heads_in(folder) if head > first), default=None)
    found = parts_in(folder)
    return [part for part in found if part.first >= first and (end is None or part.first < end)]


def parts_in(folder: Path) -> list[EntryRange]:
    """Return the parts in a folder of which no file is missing, in their order."""
    if not folder.is_dir():
        return []
    found = Counter(entries_of(path.name) for path in folder.iterdir())
    return sorted(
        entries for entries, files in found.items() if entries and files == entries.pieces
    )


def files_in(folder: Path) -> list[tuple[EntryRange, Path]]:
    """Return every file of a part in a folder, with its part, even one that lacks others."""
    found = ((entries_of(path.name), path) for path in folder.iterdir())
    return [(entries, path) for entries, path in found if entries is not None]


def chain(found: Iterable[EntryRange], first: int) -> Iterator[EntryRange]:
    """Yield parts that follow each other without a gap, from entry `first` on.

    Where several begin at one entry, parts are being merged or cut: the longest holds all that the
    others do.
    """
    longest = {entries.first: entries for entries in sorted(found)}
    while first in longest:
        yield longest[first]
        first = longest[first].stop


def with_gaps(found: Sequence[EntryRange], first: int) -> Iterator[EntryRange]:
    """Yield parts as `chain` does, and after a gap go on with the next part there is."""
    while True:
        for entries in chain(found, first):
            yield entries
            first = entries.stop
        later = [entries.first for entries in found if entries.first > first]
        if not later:
            return
        first = min(later)
