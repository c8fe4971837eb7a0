"""Opening a checkpoint: the digest first, HDF5 after."""

from pathlib import Path

import h5py

from hybrid_nbody.files.hdf5 import check_format, check_regular_file, open_hdf5, reading
from hybrid_nbody.files.names import CHECKPOINT, check_seal


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
        check_seal(Path(path))
    file = open_hdf5(path)
    try:
        check_format(file, path, CHECKPOINT)
    except BaseException:
        file.close()
        raise
    return file
