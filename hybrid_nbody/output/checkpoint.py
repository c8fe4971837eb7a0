"""Writing checkpoints: the complete state in global order, sealed by a digest."""

import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py

from hybrid_nbody.files.checkpoint import USER_BLOCK, checkpoint_path, checkpoints, seal, verify
from hybrid_nbody.files.names import CHECKPOINT
from hybrid_nbody.output import hdf5
from hybrid_nbody.parallel.rows import write_slabs
from hybrid_nbody.simulation.model import Role, fields_of

SAVED_ROLES = (Role.FRAME, Role.STATIC, Role.INTERNAL)
"""Together they are the complete state."""


def save(folder: Path, model, header: dict, keep: int, communicator) -> Path:
    """Write a checkpoint, verify it, put it in place, then drop all but the newest `keep`.

    The root holds one slab of another rank's rows at a time, whatever the number of bodies.
    Collective.

    Raises
    ------
    FileError
        On the root, if writing or reading back failed; earlier checkpoints are untouched.
    """
    path = checkpoint_path(folder, model.step)
    part = path.with_suffix(".h5.part")
    file = None
    with _removed_on_failure(part, communicator):
        if communicator.is_root:
            with hdf5.file_errors(path, "writing the checkpoint"):
                file = _create(part, model, header)
        for field in fields_of(model, *SAVED_ROLES):
            write_slabs(
                field,
                communicator,
                lambda start, rows, name=field.name: _put(file, path, name, start, rows),
            )
        if communicator.is_root:
            _put_in_place(file, part, path)
            _prune(path, keep)
    return path


@contextmanager
def _removed_on_failure(part, communicator):
    """Take the half-written file away if the block fails."""
    try:
        yield
    except BaseException:
        if communicator.is_root:
            with suppress(OSError):
                part.unlink()
        raise


def _prune(path, keep):
    """Drop all but the newest `keep` checkpoints up to the one just written; later ones are damaged: left alone."""
    written = [other for other in checkpoints(path.parent) if other <= path]
    for old in written[keep:]:
        with hdf5.file_errors(old, "removing"):
            old.unlink(missing_ok=True)


def _create(part, model, header):
    fields = fields_of(model, *SAVED_ROLES)
    file = h5py.File(part, "w", userblock_size=USER_BLOCK)
    hdf5.reserve(file, sum(field.total_bytes for field in fields))
    state = {"scalars": json.dumps(model.scalars()), "step": model.step, "time": model.time}
    hdf5.write_header(file, CHECKPOINT, header | state)
    for field in fields:
        hdf5.fixed(file, field)
    return file


def _put(file, path, name, start, rows):
    with hdf5.file_errors(path, f"writing {name}"):
        file[name][start : start + len(rows)] = rows


def _put_in_place(file, part, path):
    with hdf5.file_errors(path, "writing the checkpoint"):
        file.close()
        with open(part, "rb+") as handle:
            handle.write(seal(part))
            handle.flush()
            os.fsync(handle.fileno())
        verify(part)
        os.replace(part, path)
        hdf5.sync_folder(path.parent)
