"""Turning a trajectory of format version 1, one HDF5 file, into one of sealed parts."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.files.hdf5 import SIGNATURE
from hybrid_nbody.files.listing import (
    CLOCK,
    CLOCK_COLUMNS,
    DIAGNOSTICS,
    Listing,
    Table,
    Variable,
    Variables,
    columns_of,
    empty,
)
from hybrid_nbody.files.parts import head_path, parts_folder
from hybrid_nbody.files.single_file import SingleFile
from hybrid_nbody.output.cutting import remove_unlisted
from hybrid_nbody.output.listing import write_head, write_listing
from hybrid_nbody.output.merging import PART_BYTES
from hybrid_nbody.output.part import Contents, only_rows, write_part
from hybrid_nbody.output.sealing import raw_data


def is_single_file(path: Path) -> bool:
    """Return whether a trajectory is one of format version 1."""
    with file_errors(path, "reading"), open(path, "rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


def convert(path: Path) -> None:
    """Replace a trajectory of format version 1 by one of sealed parts with the same contents.

    The file is replaced last: until then it is as it was.

    Raises
    ------
    FileError
        It is damaged, or something cannot be written.
    """
    source = SingleFile(path)
    try:
        _convert(path, source)
    finally:
        source.close()


def _convert(path: Path, source: SingleFile) -> None:
    variables = _variables(source)
    with file_errors(path, "making the folder of its parts"):
        parts_folder(path).mkdir(exist_ok=True)
    frames = empty(CLOCK_COLUMNS)
    header = source.attributes()
    listing = Listing(header, variables, 0, "", (), frames, empty(columns_of(variables)))
    remove_unlisted(path, listing)
    shared = {
        field.name: raw_data(source.read(field.name, slice(None))) for field in variables.shared
    }
    listing = replace(listing, head=write_head(head_path(path, 0), header, variables, shared))
    for contents in _contents(source, variables):
        part = write_part(path, listing.next_entry, contents, listing)
        listing = listing.with_part(part, contents.frames, contents.rows)
    write_listing(path, listing)


def _contents(source: SingleFile, variables: Variables) -> Iterator[Contents]:
    """Yield the contents of the parts: the diagnostics, then frames."""
    rows = {
        name: source.read(DIAGNOSTICS + name, slice(0, source.number_of_rows))
        for name in columns_of(variables)
    }
    if source.number_of_rows:
        yield only_rows(rows, variables)
    frame_bytes = sum(field.row_bytes for field in variables.frames)
    together = max(1, PART_BYTES // max(1, frame_bytes))
    for first in range(0, source.number_of_frames, together):
        yield _frames(
            source, variables, slice(first, min(first + together, source.number_of_frames))
        )


def _frames(source: SingleFile, variables: Variables, which: slice) -> Contents:
    fields = {field.name: [source.read(field.name, which)] for field in variables.frames}
    clock: Table = {name: source.read(name, which) for name in CLOCK}
    return Contents(clock, fields, empty(columns_of(variables)))


def _variables(source: SingleFile) -> Variables:
    """Return the data sets of a file, of which only the shapes say what they are."""
    clock = {*CLOCK, *(DIAGNOSTICS + name for name in CLOCK)}
    names = [name for name in source.shapes if name not in clock]
    rows = [name for name in names if name.startswith(DIAGNOSTICS)]
    shared = [name for name in names if name not in rows and name not in source.fields]
    return Variables(
        shared=tuple(_variable(source, name, source.shapes[name]) for name in shared),
        frames=tuple(_variable(source, name, source.shapes[name][1:]) for name in source.fields),
        diagnostics=tuple(_variable(source, name, source.shapes[name][1:]) for name in rows),
    )


def _variable(source: SingleFile, name: str, shape: tuple[int, ...]) -> Variable:
    meaning = source.attributes_of(name)
    dtype = np.dtype(source.read(name, slice(0, 0)).dtype)
    units = str(meaning.get("units", ""))
    description = str(meaning.get("description", ""))
    return Variable(name.removeprefix(DIAGNOSTICS), shape, dtype, units, description)
