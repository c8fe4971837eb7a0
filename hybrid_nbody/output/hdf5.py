"""Writing HDF5 files: headers, and the meaning of data sets."""

from collections.abc import Mapping
from typing import Any

import h5py

from hybrid_nbody import __version__
from hybrid_nbody.files.names import FORMAT_VERSION

LONGEST_FIXED_TEXT = 60_000
"""Bytes of the longest text that fits into the header of a data set or file."""

# --- headers --------------------------------------------------------------------------------------


def write_header(file: h5py.File, file_format: str, header: Mapping[str, object]) -> None:
    """Store the format of a file, its version and `header` as attributes of the file."""
    own = {"format": file_format, "format_version": FORMAT_VERSION, "program_version": __version__}
    write_attributes(file, own | dict(header))


def write_attributes(item: Any, values: Mapping[str, object]) -> None:
    """Store attributes of a file or data set, texts with a fixed length.

    HDF5 keeps texts of variable length in a heap, where one flipped bit can make a reader hang.
    Very long texts fit nowhere else.
    """
    attributes = item.attrs
    for name, value in values.items():
        if isinstance(value, str) and len(value.encode()) < LONGEST_FIXED_TEXT:
            fixed_length = h5py.string_dtype("utf-8", max(1, len(value.encode())))
            attributes.create(name, value.encode(), dtype=fixed_length)
        else:
            attributes[name] = value


# --- data sets ------------------------------------------------------------------------------------


def describe(dataset: h5py.Dataset, units: str, description: str) -> None:
    """Store the units and the meaning of a data set beside it."""
    write_attributes(dataset, {"units": units, "description": description})
