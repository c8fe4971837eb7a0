"""Writing ``trajectory.h5``, the list of the parts of a trajectory, and the head of the parts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import h5py
import numpy as np

from hybrid_nbody.files.listing import (
    CLOCK,
    DIAGNOSTICS,
    LISTED,
    Listing,
    Variable,
    Variables,
    parts_as_text,
)
from hybrid_nbody.files.names import HEAD, TRAJECTORY
from hybrid_nbody.files.parts import PARTS_FOLDER, Part, head_path, names_of, share_of
from hybrid_nbody.files.sealed import clock_meaning
from hybrid_nbody.output import hdf5
from hybrid_nbody.output.sealing import RawData, raw_data, write_sealed


def write_listing(path: Path, listing: Listing) -> None:
    """Replace ``trajectory.h5``, by a file in which other programs see all frames as one array.

    Raises
    ------
    FileError
        It cannot be written; the earlier one stays.
    """
    data = {
        **{name: raw_data(column) for name, column in listing.frames.items()},
        **{DIAGNOSTICS + name: raw_data(column) for name, column in listing.rows.items()},
    }
    write_sealed(path, "trajectory", data, partial(_describe_listing, listing))


def _describe_listing(listing: Listing, file: h5py.File) -> None:
    """Add the attributes, and the fields as virtual data sets over the parts."""
    hdf5.write_header(file, TRAJECTORY, {**listing.header, LISTED: parts_as_text(listing)})
    variables = listing.variables
    for name in CLOCK:
        meaning = clock_meaning(name, listing.header)
        hdf5.write_attributes(file[name], meaning)
        hdf5.write_attributes(file[DIAGNOSTICS + name], meaning)
    head = head_path(Path(), listing.first).name
    for shared in variables.shared:
        everything = tuple(slice(0, size) for size in shared.shape)
        _add_virtual(file, shared, shared.shape, [(head, everything)])
        _describe(file[shared.name], shared, "shared")
    for field in variables.frames:
        _add_virtual(file, field, _all_frames(listing, field), _sources(listing.parts, field))
        _describe(file[field.name], field, "frame")
    for column in variables.diagnostics:
        _describe(file[DIAGNOSTICS + column.name], column, "row")


def _all_frames(listing: Listing, field: Variable) -> tuple[int, ...]:
    return (len(listing.frames["step"]), *field.shape)


Where = tuple[slice, ...]
"""A part of a data set."""


def _sources(parts: tuple[Part, ...], field: Variable) -> Iterator[tuple[str, Where]]:
    """Yield each file that holds some frames of a field, and what it holds of all of them."""
    first = 0
    for part in parts:
        frames = slice(first, first + part.frames)
        first += part.frames
        for piece, name in enumerate(names_of(part.entries) if part.frames else []):
            rows = share_of(field.shape[0], piece, part.entries.pieces)
            yield name, (frames, rows, *(slice(0, size) for size in field.shape[1:]))


def _add_virtual(
    file: h5py.File,
    variable: Variable,
    shape: tuple[int, ...],
    sources: Iterable[tuple[str, Where]],
) -> None:
    """Add a data set of a shape, made of data sets of the same name in other files."""
    layout = h5py.VirtualLayout(shape, variable.dtype)
    for name, where in sources:
        sizes = tuple(piece.stop - piece.start for piece in where)
        if all(sizes):
            path = f"{PARTS_FOLDER}/{name}"
            layout[where] = h5py.VirtualSource(path, variable.name, sizes)
    missing = np.nan if variable.dtype.kind == "f" else -1
    file.create_virtual_dataset(variable.name, layout, fillvalue=missing)


def _describe(dataset: h5py.Dataset, variable: Variable, kind: str) -> None:
    hdf5.describe(dataset, variable.units, variable.description)
    hdf5.write_attributes(dataset, {"one_value_per": kind})


def write_head(
    path: Path,
    header: Mapping[str, object],
    variables: Variables,
    shared: Mapping[str, RawData],
) -> str:
    """Write what all frames share, and the meaning of what they hold; return its digest.

    Raises
    ------
    FileError
        It cannot be written.
    """
    fields = {field.name: _nothing(field) for field in variables.frames}
    columns = {DIAGNOSTICS + column.name: _nothing(column) for column in variables.diagnostics}
    return write_sealed(
        path, "head", {**shared, **fields, **columns}, _describe_head(header, variables)
    )


def _nothing(variable: Variable) -> RawData:
    """Return the data of a variable without a frame or row."""
    return raw_data(np.empty((0, *variable.shape), variable.dtype))


def _describe_head(
    header: Mapping[str, object], variables: Variables
) -> Callable[[h5py.File], None]:
    def describe(file: h5py.File) -> None:
        hdf5.write_header(file, HEAD, header)
        for shared in variables.shared:
            _describe(file[shared.name], shared, "shared")
        for field in variables.frames:
            _describe(file[field.name], field, "frame")
        for column in variables.diagnostics:
            _describe(file[DIAGNOSTICS + column.name], column, "row")

    return describe
