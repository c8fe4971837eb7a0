"""Bodies from an archive of NumPy: in place where it is not compressed, else read as a whole."""

import math
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.bodies_csv import short
from hybrid_nbody.files.stored_bodies import Array, Column, Columns, columns_of
from hybrid_nbody.files.untrusted import DAMAGED_ARCHIVE, check_unpacked

ARRAYS = ("position", "velocity", "mass", "id")
"""Arrays of bodies in an archive; ``id`` is optional."""

IGNORED = ("activity_map",)
"""Arrays that our exports hold beside the bodies."""

LOCAL_HEADER = 30
"""Bytes before the name of a member of a zip archive; the last four are lengths of two texts."""

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
"""What reads the header of an array, by its version."""

CHUNK = 1 << 20
"""Bytes that are read at a time to check them."""


@dataclass(frozen=True)
class Place:
    """Where an array of an archive is in its file.

    Attributes
    ----------
    offset : int
        Of the first number, in bytes.
    shape : tuple of int
    dtype : numpy.dtype
    """

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def read(self, path: Path, rows: slice) -> Array:
        """Return some rows; fewer where the file ends."""
        row = math.prod(self.shape[1:])
        start = self.offset + rows.start * row * self.dtype.itemsize
        count = (rows.stop - rows.start) * row
        numbers = np.fromfile(path, self.dtype, count, offset=start)
        return numbers.reshape(rows.stop - rows.start, *self.shape[1:])


def read_npz(path: Path) -> tuple[Columns, Mapping[str, Place] | None]:
    """Return the arrays of bodies in an archive, and where they are.

    That is None, and the arrays are in memory, where one of them is compressed or in another order
    than that of C.

    Raises
    ------
    InputError
        The archive is damaged or foreign.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            _check_names(path, archive)
            places = _places_of(file, archive)
            if places is not None:
                return columns_of_places(path, places), places
            return columns_of({name: archive[name] for name in _present(archive)}), None
    except DAMAGED_ARCHIVE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, OverflowError):
            reason = "the shape of an array is larger than any memory"
        if "allow_pickle" in reason:
            reason = "it holds Python objects, which are not read for safety"
        raise InputError(f"{path}: not a readable NumPy archive ({reason})") from error


def _check_names(path: Path, archive: Any) -> None:
    for name in ARRAYS[:3]:
        if name not in archive.files:
            raise InputError(
                f"{path}: no array '{name}'; there are {short(', '.join(archive.files)) or 'none'}"
            )
    if {"time", "step"} <= set(archive.files):
        raise InputError(
            f"{path}: it holds many frames; export one: "
            "hybrid-nbody export … --format npz --frame N"
        )
    for name in archive.files:
        if name not in (*ARRAYS, *IGNORED):
            raise InputError(
                f"{path}: unknown array '{short(name)}'; known are position, velocity, mass, id"
            )
    members = [archive.zip.getinfo(name) for name in _members_of(archive)]
    unpacked = sum(member.file_size for member in members)
    check_unpacked(path, unpacked, sum(member.compress_size for member in members))


def _present(archive: Any) -> list[str]:
    """Return the names of the arrays of bodies in an archive."""
    return [name for name in archive.files if name in ARRAYS]


def _members_of(archive: Any) -> list[str]:
    """Return the names in the archive of what holds the arrays of bodies."""
    return [name for name in archive.zip.namelist() if name.removesuffix(".npy") in ARRAYS]


def columns_of_places(path: Path, places: Mapping[str, Place]) -> Columns:
    """Return the arrays at some places of a file."""
    return {
        name: Column(place.shape, place.dtype, partial(place.read, path))
        for name, place in places.items()
    }


def _places_of(file: BinaryIO, archive: Any) -> dict[str, Place] | None:
    """Return where the arrays of bodies are, after checking their digests; None as `read_npz`."""
    members = [archive.zip.getinfo(name) for name in _members_of(archive)]
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        return None
    places = {}
    for member in members:
        _check_digest(archive.zip, member)
        place = _place_of(file, member)
        if place is None:
            return None
        places[member.filename.removesuffix(".npy")] = place
    return places if sorted(places) == sorted(_present(archive)) else None


def _check_digest(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Read a member to its end, where its digest is compared."""
    with archive.open(member) as stream:
        while stream.read(CHUNK):
            pass


def _place_of(file: BinaryIO, member: zipfile.ZipInfo) -> Place | None:
    """Return where an array is; None if only NumPy can tell."""
    file.seek(member.header_offset)
    lengths = struct.unpack("<2H", file.read(LOCAL_HEADER)[-4:])
    start = member.header_offset + LOCAL_HEADER + sum(lengths)
    file.seek(start)
    read_header = HEADERS.get(npy.read_magic(file))
    if read_header is None:
        return None
    shape, in_columns, dtype = read_header(file)
    held = start + member.file_size - file.tell()
    plain = not in_columns and dtype.kind in "iuf" and len(shape) > 0
    if plain and held == math.prod(shape) * dtype.itemsize:
        return Place(file.tell(), shape, dtype)
    return None
