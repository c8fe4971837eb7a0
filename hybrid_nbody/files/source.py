"""What reads a trajectory: its sealed parts, or the one file of format version 1."""

from pathlib import Path

from hybrid_nbody.files.hdf5 import SIGNATURE, reading
from hybrid_nbody.files.names import TRAJECTORY_FILE
from hybrid_nbody.files.parts import heads_in, parts_folder
from hybrid_nbody.files.sealed import SealedTrajectory
from hybrid_nbody.files.seals import SEAL_BYTES, first_bytes, is_sealed
from hybrid_nbody.files.single_file import SingleFile


def open_source(path: Path) -> SealedTrajectory | SingleFile:
    """Return what reads a trajectory."""
    with reading(path):
        head = first_bytes(path, SEAL_BYTES) if path.is_file() else b""
    has_parts = path.name == TRAJECTORY_FILE and bool(heads_in(parts_folder(path)))
    if is_sealed(head, "trajectory") or (has_parts and not head.startswith(SIGNATURE)):
        return SealedTrajectory(path)
    return SingleFile(path)
