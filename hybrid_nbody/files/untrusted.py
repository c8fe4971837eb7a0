"""Files that somebody else made: they may neither lead into other files nor fill the memory."""

import zipfile
import zlib
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import h5py

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.memory import available_memory

DAMAGED_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    OSError,
    KeyError,
    RuntimeError,
    MemoryError,
    OverflowError,
)
"""Exceptions of zipfile and NumPy for archives that are damaged or not theirs."""

MOST_RATIO = 100
"""Packed data may unpack to this many times its size; coordinates unpack to twice theirs."""

SMALL = 256 << 20
"""Bytes up to which data may unpack to any multiple of its size."""


def check_own_data(
    file: h5py.Group, path: str | Path, parts: Collection[str] = frozenset()
) -> None:
    """Check that all data sets of a file lie in this file, or in `parts` of it.

    Parameters
    ----------
    file : h5py.Group
        An open file, or a group of one.
    path : str or Path
        Its name in the message.
    parts : collection of str
        Names of files beside it of which virtual data sets may be made.

    Raises
    ------
    FileError
        One is virtual, has external storage or is a link to another file: whoever reads it would
        read a file that the author of this one has chosen.
    """

    links: list[tuple[str, str]] = []

    def visit_link(name: str, link: Any) -> None:
        if isinstance(link, h5py.ExternalLink):
            links.append((name, f"is a link to another file, {link.filename}"))

    try:
        file.visititems_links(visit_link)
    except SystemError as error:  # what h5py makes of damaged tables here
        raise OSError(f"the links in it cannot be followed ({error.__context__})") from error
    found = next(iter(links), None) or file.visititems(partial(_elsewhere, parts=parts))
    if found:
        raise FileError(
            f"{path}: {' '.join(found)}, which is not read for safety; copy the data into one file"
        )


def check_own_items(file: h5py.File, path: str | Path, names: Sequence[str]) -> None:
    """Check that some data sets and groups lie in this file; the others may not be read.

    Raises
    ------
    FileError
        As `check_own_data`.
    """
    for name in names:
        linked = not isinstance(file.get(name, getlink=True), h5py.HardLink)
        item = file[name] if not linked else None
        if isinstance(item, h5py.Group):
            check_own_data(item, path)
        elif linked or _elsewhere(name, item):
            raise FileError(f"{path}: {name} lies in another file, which is not read for safety")


def _elsewhere(
    name: str, item: Any, parts: Collection[str] = frozenset()
) -> tuple[str, str] | None:
    """Return the name of a data set whose data is not in its file, and where they are."""
    if isinstance(item, h5py.Dataset) and item.is_virtual:
        sources = {source.file_name for source in item.virtual_sources()}
        if not sources <= set(parts):
            return name, "is virtual, made of data sets of other files"
    if isinstance(item, h5py.Dataset) and item.external:
        return name, f"keeps its data in another file, {item.external[0][0]}"
    return None


def check_unpacked(path: str | Path, unpacked: int, packed: int) -> None:
    """Check, before anything is unpacked, that it is no bomb and fits into memory.

    Parameters
    ----------
    path : str or Path
        The file.
    unpacked, packed : int
        Bytes that the data has in memory, and in the file.

    Raises
    ------
    FileError
        It unpacks to more than `SMALL` bytes that are more than `MOST_RATIO` times as many as in
        the file, or more than the memory that is free.
    """
    size = f"{unpacked / 1e9:.3g} GB"
    if unpacked > SMALL and unpacked > MOST_RATIO * packed:
        raise FileError(
            f"{path}: {packed / 1e6:.3g} MB in it unpack to {size}; more than {MOST_RATIO} times "
            "as much is not unpacked for safety; save it without compression if you trust it"
        )
    free = available_memory()
    if unpacked > free:
        raise FileError(
            f"{path}: its arrays take {size} of memory, and {free / 1e9:.3g} GB are free"
        )
