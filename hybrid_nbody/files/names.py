"""What our files are called, outside and inside, and how a checkpoint is sealed; writers and readers share it."""

import codecs
import hashlib
from pathlib import Path

from hybrid_nbody.errors import FileError

TRAJECTORY = "hybrid_nbody trajectory"
CHECKPOINT = "hybrid_nbody checkpoint"
EXPORT = "hybrid_nbody export"

TRAJECTORY_FILE = "trajectory.h5"
"""The name of the trajectory in the directory of a run."""

CHECKPOINT_FILES = "checkpoint-*.h5"
"""The names of checkpoints there; the star stands for the number of the step."""

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How text begins that is full of zeros: without it, zeros mean that a file is no text."""

FORMAT_VERSION = 1
"""The layout that is written, and the newest that is read."""

USER_BLOCK = 512
"""Bytes of a checkpoint before HDF5's own, which it leaves alone: the seal."""

SEAL_START = b"hybrid_nbody checkpoint, sha256 "

READ_BYTES = 4 << 20
"""Bytes read at a time to compute a digest."""


def seal(path: Path) -> bytes:
    """Return the user block that belongs to a checkpoint: the SHA-256 of every byte behind it."""
    total = hashlib.sha256()
    with open(path, "rb") as file:
        file.seek(USER_BLOCK)
        while piece := file.read(READ_BYTES):
            total.update(piece)
    return (SEAL_START + total.hexdigest().encode() + b"\n").ljust(USER_BLOCK, b"\0")


def check_seal(path: Path) -> None:
    """Check that every byte of a checkpoint is as it was written, before HDF5 sees it: damaged tables can make it hang.

    Raises
    ------
    FileError
        If the file is not a checkpoint of ours, or is damaged.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as file:
        block = file.read(USER_BLOCK)
    if not block.startswith(SEAL_START):
        raise FileError(f"{path}: not a checkpoint of hybrid_nbody, or its beginning is damaged")
    if block != seal(path):
        raise FileError(f"{path}: damaged: its contents do not match its digest")
