"""Writing the parts of a trajectory: some frames and rows of diagnostics in a sealed file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.hdf5 import reading
from hybrid_nbody.files.listing import (
    ANOTHER_PART,
    CLOCK_COLUMNS,
    DIAGNOSTICS,
    OF_HEAD,
    Listing,
    Table,
    Variable,
    Variables,
    columns_of,
    empty,
    first_rows,
    joined,
    read_part,
)
from hybrid_nbody.files.names import PART
from hybrid_nbody.files.parts import EntryRange, Part, paths_of
from hybrid_nbody.files.seals import open_sealed
from hybrid_nbody.output import hdf5
from hybrid_nbody.output.sealing import RawData, raw_data, write_sealed

Values = Mapping[str, NDArray[Any]]
"""The values of a frame, or of a row of diagnostics, with its ``step`` and ``time``.

Those of several frames have one axis more, in front.
"""


@dataclass(frozen=True)
class Contents:
    """The frames and rows of diagnostics that go into a part.

    Attributes
    ----------
    frames : mapping
        Columns ``step`` and ``time`` of the frames.
    fields : mapping of str to list of ndarray
        The values of each field, one piece or more.
    rows : mapping
        The diagnostics, a column for each.
    """

    frames: Table
    fields: Mapping[str, Sequence[NDArray[Any]]]
    rows: Table

    @property
    def number(self) -> int:
        """Return the number of entries."""
        return len(self.frames["step"]) + len(self.rows["step"])


def contents_of(frames: Sequence[Values], rows: Sequence[Values], variables: Variables) -> Contents:
    """Return the contents of a part that holds some frames and rows of diagnostics."""
    return Contents(
        frames=_clocks(frames),
        fields={
            field.name: [_as_several(frame[field.name], field) for frame in frames]
            for field in variables.frames
        },
        rows=_table(rows, columns_of(variables)),
    )


def _clocks(frames: Sequence[Values]) -> Table:
    """Return steps and times of frames as columns."""
    clocks = [{name: np.atleast_1d(frame[name]) for name in CLOCK_COLUMNS} for frame in frames]
    return joined([empty(CLOCK_COLUMNS), *clocks], CLOCK_COLUMNS)


def _as_several(values: NDArray[Any], field: Variable) -> NDArray[Any]:
    """Return the values of one frame as those of several; others as they are."""
    return values[None] if values.ndim == len(field.shape) else values


def only_rows(rows: Table, variables: Variables) -> Contents:
    """Return the contents of a part that holds diagnostics and no frame."""
    return replace(contents_of([], [], variables), rows=rows)


def _table(found: Sequence[Values], columns: Mapping[str, Any]) -> Table:
    """Return values as columns, NaN where one is not known."""
    return {
        name: np.array(
            [values[name] if name in values else np.full(shape, np.nan) for values in found], dtype
        ).reshape(len(found), *shape)
        for name, (shape, dtype) in columns.items()
    }


class Series(NamedTuple):
    """What the parts of a trajectory have in common.

    Attributes
    ----------
    variables : Variables
        The data sets.
    head : str
        The digest of the head, by which a part of another run is known.
    """

    variables: Variables
    head: str


def write_part(trajectory: Path, first: int, contents: Contents, listing: Listing) -> Part:
    """Write a part of a listed trajectory that begins with entry `first`.

    Raises
    ------
    FileError
        It cannot be written.
    """
    entries = EntryRange(first, first + contents.number)
    (path,) = paths_of(trajectory, entries)
    series = Series(listing.variables, listing.head)
    digest = write_piece(path, first, contents, series)
    return Part(entries, len(contents.frames["step"]), len(contents.rows["step"]), (digest,))


def write_piece(path: Path, first: int, contents: Contents, series: Series) -> str:
    """Write one file of a part that begins with entry `first`; return its digest.

    Raises
    ------
    FileError
        It cannot be written.
    """
    fields = {field.name: _field_data(field, contents) for field in series.variables.frames}
    columns = {name: raw_data(column) for name, column in contents.frames.items()}
    rows = {DIAGNOSTICS + name: raw_data(column) for name, column in contents.rows.items()}
    describe = partial(_describe, first, series.head)
    return write_sealed(path, "part", {**columns, **fields, **rows}, describe)


def _field_data(field: Variable, contents: Contents) -> RawData:
    """Return the data of a field: of each frame all rows, or those that a rank writes."""
    pieces = contents.fields[field.name]
    of_a_frame = pieces[0].shape[1:] if pieces else field.shape
    return RawData((len(contents.frames["step"]), *of_a_frame), field.dtype, pieces)


def _describe(first: int, head: str, file: h5py.File) -> None:
    hdf5.write_header(file, PART, {"first_entry": first, OF_HEAD: head})


def merged(found: Sequence[Contents], variables: Variables) -> Contents:
    """Return the contents of several parts, one after the other."""
    if not found:
        return contents_of([], [], variables)
    return Contents(
        frames=joined([one.frames for one in found], CLOCK_COLUMNS),
        fields={
            field.name: [piece for one in found for piece in one.fields[field.name]]
            for field in variables.frames
        },
        rows=joined([one.rows for one in found], columns_of(variables)),
    )


def read_contents(trajectory: Path, part: Part, variables: Variables) -> Contents:
    """Return what a part holds.

    Raises
    ------
    FileError
        It is damaged.
    """
    found, frames, rows = read_part(trajectory, part.entries)
    paths = paths_of(trajectory, part.entries)
    if found != part:
        raise FileError(f"{paths[0]}: {ANOTHER_PART}")
    pieces = [_read_fields(path, variables) for path in paths]
    fields = {
        field.name: [np.concatenate([piece[field.name] for piece in pieces], axis=1)]
        for field in variables.frames
    }
    return Contents(frames, fields, rows)


def _read_fields(path: Path, variables: Variables) -> dict[str, NDArray[Any]]:
    """Return what one file of a part holds of each field."""
    with open_sealed(path, "part") as file, reading(path):
        return {field.name: file[field.name][:] for field in variables.frames}


def first_of(contents: Contents, frames: int) -> Contents:
    """Return the first frames of a part that has been read, without its diagnostics."""
    return Contents(
        frames=first_rows(contents.frames, frames),
        fields={name: [pieces[0][:frames]] for name, pieces in contents.fields.items()},
        rows=first_rows(contents.rows, 0),
    )
