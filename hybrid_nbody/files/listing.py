"""What ``trajectory.h5`` says: the parts of a trajectory, their steps, and all diagnostics."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.hdf5 import (
    attribute,
    attributes,
    check_format,
    check_kind,
    check_regular_file,
    reading,
)
from hybrid_nbody.files.names import HEAD, PART, TRAJECTORY
from hybrid_nbody.files.parts import (
    EntryRange,
    Part,
    chain,
    head_path,
    heads_in,
    parts_folder,
    paths_of,
    series_of,
    with_gaps,
)
from hybrid_nbody.files.seals import open_sealed, stated_digest
from hybrid_nbody.files.untrusted import check_own_items

DIAGNOSTICS = "diagnostics/"
"""Prefix of the names of the data sets of diagnostics."""

ANOTHER_PART = "another part than the one that belongs here"

OF_HEAD = "head"
"""Attribute of a part: the digest of the head to which it belongs."""

LISTED = "parts"
"""Attribute of ``trajectory.h5`` that lists the parts."""

CLOCK = ("step", "time")
"""Data sets that frames and rows of diagnostics have beside their values."""


@dataclass(frozen=True)
class Variable:
    """One data set of a trajectory, of which each frame or row of diagnostics has a value.

    Attributes
    ----------
    name : str
        Path of the data set, such as ``bodies/position``.
    shape : tuple of int
        Shape of the value of one frame or row; of the whole data set, if all frames share it.
    dtype : numpy.dtype
        Type of its numbers.
    units, description : str
        Written beside the data set.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    units: str
    description: str

    @property
    def row_bytes(self) -> int:
        """Return the bytes of the value of one frame."""
        return int(np.prod(self.shape, dtype=int)) * self.dtype.itemsize


@dataclass(frozen=True)
class Variables:
    """All data sets of a trajectory.

    Attributes
    ----------
    shared : tuple of Variable
        Those that all frames share, such as masses.
    frames : tuple of Variable
        Those that each frame has.
    diagnostics : tuple of Variable
        Those that each row of diagnostics has, step and time left out.
    """

    shared: tuple[Variable, ...]
    frames: tuple[Variable, ...]
    diagnostics: tuple[Variable, ...]


Table = Mapping[str, NDArray[Any]]
"""Columns of rows, one array a data set, all of one length."""


@dataclass(frozen=True)
class Listing:
    """The contents of a trajectory, but for its fields.

    Attributes
    ----------
    header : mapping
        Attributes of the file.
    variables : Variables
        Its data sets.
    first : int
        Number of the first entry.
    head : str
        Digest of the file with what all frames share.
    parts : tuple of Part
        In the order of their entries.
    frames : mapping
        Columns ``step`` and ``time`` of the frames.
    rows : mapping
        The diagnostics: a column for each data set, by its name.
    damage : tuple of str
        What is lost, in lines for a person.
    """

    header: Mapping[str, Any]
    variables: Variables
    first: int
    head: str
    parts: tuple[Part, ...]
    frames: Table
    rows: Table
    damage: tuple[str, ...] = field(default=())

    @property
    def next_entry(self) -> int:
        """Return the number of the entry that comes after those listed."""
        return self.parts[-1].entries.stop if self.parts else self.first

    def with_part(self, part: Part, frames: Table, rows: Table) -> "Listing":
        """Return the listing with one more part at its end."""
        return replace(
            self,
            parts=(*self.parts, part),
            frames=joined([self.frames, frames], CLOCK_COLUMNS),
            rows=joined([self.rows, rows], columns_of(self.variables)),
        )


Columns = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""The shape of a value of each column, and its type."""

CLOCK_COLUMNS: Columns = {"step": ((), np.dtype("i8")), "time": ((), np.dtype("f8"))}


def columns_of(variables: Variables) -> Columns:
    """Return the columns of the diagnostics."""
    measured = {column.name: (column.shape, column.dtype) for column in variables.diagnostics}
    return {**CLOCK_COLUMNS, **measured}


def empty(columns: Columns) -> Table:
    """Return a table without rows."""
    return {name: np.empty((0, *shape), dtype) for name, (shape, dtype) in columns.items()}


def joined(tables: Sequence[Table], columns: Columns) -> Table:
    """Return tables one after the other; NaN where one does not have a column."""
    return {
        name: np.concatenate([_column(table, name, shape, dtype) for table in tables])
        for name, (shape, dtype) in columns.items()
    }


def _column(table: Table, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if name in table:
        return table[name]
    return np.full((len(table["step"]), *shape), np.nan, dtype)


def first_rows(table: Table, count: int) -> Table:
    """Return the first rows of a table."""
    return {name: column[:count] for name, column in table.items()}


# --- reading --------------------------------------------------------------------------------------


def load_listing(path: Path) -> Listing:
    """Return the listing of a trajectory: that of the file, and the parts written since.

    Parameters
    ----------
    path : Path
        ``trajectory.h5``, which may be damaged or gone: then the parts that are whole are listed.

    Raises
    ------
    FileError
        It is of a later format, or neither it nor the head of the parts can be read.
    """
    while True:
        stamp = _stamp(path)
        listing = _load_now(path, stamp)
        if listing is not None and stamp == _stamp(path):
            return listing


def _stamp(path: Path) -> tuple[int, int]:
    """Return what tells a file from the one that replaces it; zeros if there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_ino, found.st_mtime_ns


def _load_now(path: Path, stamp: tuple[int, int]) -> Listing | None:
    """Return the listing; None if a run that goes on has replaced the file while it was read."""
    folder = parts_folder(path)
    try:
        listing = read_listing(path)
    except FileError as error:
        if stamp != _stamp(path):
            return None
        listing = _listing_of_head(path, error)
        found = with_gaps(series_of(folder, listing.first), listing.first)
    else:
        listing = replace(listing, damage=tuple(_lost(path, listing.parts)))
        found = chain(series_of(folder, listing.first), listing.next_entry)
    for entries in found:
        listing = _with_found(listing, path, entries)
    return listing


def _lost(path: Path, parts: Sequence[Part]) -> Iterator[str]:
    """Yield a line for each file of a part that is not there, or by its seal is another one."""
    for part in parts:
        for file, digest in zip(paths_of(path, part.entries), part.digests, strict=True):
            try:
                with reading(file):
                    check_regular_file(file)
                    is_it = stated_digest(file, "part") == digest
            except FileError as error:
                yield f"{error}; its frames cannot be read, the others can"
            else:
                if not is_it:
                    yield f"{file}: {ANOTHER_PART}; its frames cannot be read, the others can"


def _with_found(listing: Listing, path: Path, entries: EntryRange) -> Listing:
    """Return a listing with a part that it does not know yet, or with the damage of the part."""
    try:
        return listing.with_part(*read_part(path, entries, listing.head))
    except FileError as error:
        lost = f"{error}; its frames and diagnostics are lost, the others can be read"
        return replace(listing, damage=(*listing.damage, lost))


def read_listing(path: Path) -> Listing:
    """Return what ``trajectory.h5`` says.

    Raises
    ------
    FileError
        It is missing, damaged, or of another or a later format.
    """
    with open_sealed(path, "trajectory") as file, reading(path):
        check_kind(file, path, TRAJECTORY)
        variables = _variables(file)
        check_own_items(file, path, (*CLOCK, "diagnostics"))
        header = attributes(file)
        listed = json.loads(header.pop(LISTED))
        return Listing(
            header=header,
            variables=variables,
            first=listed["first_entry"],
            head=listed["head"],
            parts=tuple(_part(*values) for values in listed["parts"]),
            frames={name: file[name][:] for name in CLOCK},
            rows={name: file[DIAGNOSTICS + name][:] for name in columns_of(variables)},
        )


def _listing_of_head(path: Path, error: FileError) -> Listing:
    """Return a listing without parts by the head of the newest series of them."""
    heads = heads_in(parts_folder(path))
    if not heads:
        raise error
    first = heads[-1]
    head = head_path(path, first)
    with open_sealed(head, "head") as file, reading(head):
        check_format(file, head, HEAD)
        variables = _variables(file)
        return Listing(
            header=attributes(file) | {"format": TRAJECTORY},
            variables=variables,
            first=first,
            head=stated_digest(head, "head"),
            parts=(),
            frames=empty(CLOCK_COLUMNS),
            rows=empty(columns_of(variables)),
            damage=(f"{error}; the parts in {head.parent} are listed instead",),
        )


def read_part(
    trajectory: Path, entries: EntryRange, head: str | None = None
) -> tuple[Part, Table, Table]:
    """Return a part as a listing has it, and the columns of its frames and diagnostics.

    Parameters
    ----------
    trajectory : Path
    entries : EntryRange
    head : str, optional
        The digest of the head to which the part must belong; a part that is listed is known by its
        own digest.

    Raises
    ------
    FileError
        One of its files is missing or damaged, or belongs to another run.
    """
    found = [_read_tables(path, entries, head) for path in paths_of(trajectory, entries)]
    frames, rows, _ = found[0]
    digests = tuple(digest for _, _, digest in found)
    return Part(entries, len(frames["step"]), len(rows["step"]), digests), frames, rows


def _read_tables(path: Path, entries: EntryRange, head: str | None) -> tuple[Table, Table, str]:
    """Return the columns of the frames and diagnostics in one file of a part, and its digest."""
    with open_sealed(path, "part") as file, reading(path):
        check_format(file, path, PART)
        _check_entries(path, entries, file)
        if head is not None and attribute(file, OF_HEAD, head) != head:
            raise FileError(f"{path}: a part of another run")
        frames = {name: file[name][:] for name in CLOCK}
        rows = {name: column[:] for name, column in file["diagnostics"].items()}
        return frames, rows, stated_digest(path, "part")


def _check_entries(path: Path, entries: EntryRange, file: h5py.File) -> None:
    """Check that a part is the one that its name says."""
    found = int(file.attrs["first_entry"])
    if found != entries.first:
        raise FileError(f"{path}: it holds what comes from entry {found} on: it was renamed")


def parts_as_text(listing: Listing) -> str:
    """Return the parts of a trajectory as its file lists them, in JSON."""
    parts = [
        (part.entries.first, part.entries.stop, part.frames, part.rows, part.digests)
        for part in listing.parts
    ]
    return json.dumps({"first_entry": listing.first, "head": listing.head, "parts": parts})


def _part(first: int, stop: int, frames: int, rows: int, digests: list[str]) -> Part:
    return Part(EntryRange(first, stop, len(digests)), frames, rows, tuple(digests))


def _variables(file: h5py.File) -> Variables:
    """Return the data sets of a trajectory or of the head of its parts."""
    found: dict[str, list[Variable]] = {"shared": [], "frame": [], "row": []}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and "one_value_per" in item.attrs:
            kind = str(attributes(item)["one_value_per"])
            found[kind].append(_variable(name, item, kind))

    file.visititems(visit)
    return Variables(*(tuple(found[kind]) for kind in ("shared", "frame", "row")))


def _variable(name: str, item: h5py.Dataset, kind: str) -> Variable:
    meaning = attributes(item)
    return Variable(
        name=name.removeprefix(DIAGNOSTICS),
        shape=item.shape if kind == "shared" else item.shape[1:],
        dtype=item.dtype,
        units=str(meaning["units"]),
        description=str(meaning["description"]),
    )
