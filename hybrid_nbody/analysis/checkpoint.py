"""Opening a checkpoint: the digest first, HDF5 after."""

import hashlib
from pathlib import Path

import h5py

from hybrid_nbody.analysis.hdf5 import CHECKPOINT, check_format, check_regular_file, open_hdf5, reading
from hybrid_nbody.errors import FileError

MAGIC = b"hybrid_nbody checkpoint, sha256 "
USER_BLOCK = 512
"""Bytes before HDF5's own. They hold MAGIC and the SHA-256, in hexadecimal digits, of every byte behind them."""

READ_BYTES = 4 << 20


def open_checkpoint(path) -> h5py.File:
    """Open a checkpoint whose every byte is as it was written.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    h5py.File
        Open for reading, without a lock.

    Raises
    ------
    FileError
        It is missing, not a checkpoint, damaged, or written by a newer program.
    """
    with reading(path):
        check_regular_file(path)
        _check_digest(Path(path))  # before HDF5 sees the file: damaged tables can make its library search for ever
    file = open_hdf5(path)
    try:
        check_format(file, path, CHECKPOINT)
    except BaseException:
        file.close()
        raise
    return file


def _check_digest(path):
    total = hashlib.sha256()
    with open(path, "rb") as file:
        block = file.read(USER_BLOCK)
        if not block.startswith(MAGIC):
            raise FileError(f"{path}: not a checkpoint of hybrid_nbody, or its beginning is damaged")
        while piece := file.read(READ_BYTES):
            total.update(piece)
    if block != (MAGIC + total.hexdigest().encode() + b"\n").ljust(USER_BLOCK, b"\0"):
        raise FileError(f"{path}: damaged: its contents do not match its digest")
