"""Reading bodies from a CSV table, a NumPy archive, a trajectory or a checkpoint."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.bodies_csv import read_csv
from hybrid_nbody.files.bodies_npz import ARRAYS, Place, columns_of_places, read_npz
from hybrid_nbody.files.checkpoint import (
    HEAD_BYTES,
    check_shares,
    looks_like_checkpoint,
    open_checkpoint,
    open_state,
)
from hybrid_nbody.files.hdf5 import SIGNATURE, check_regular_file, open_hdf5, reading
from hybrid_nbody.files.names import TRAJECTORY_FILE, UTF_16
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.files.seals import is_sealed
from hybrid_nbody.files.stored_bodies import (
    Array,
    BodiesTable,
    Column,
    Columns,
    Reopened,
    StoredBodies,
    columns_of,
)
from hybrid_nbody.files.thinning import chosen_bodies
from hybrid_nbody.files.untrusted import check_unpacked


@dataclass(frozen=True)
class BodiesFile:
    """A file that was whole when it was opened, and of which each rank reads its own rows.

    Attributes
    ----------
    path : Path
    number : int
        Bodies in it.
    reopened : callable
        See `StoredBodies`.
    """

    path: Path
    number: int
    reopened: Reopened

    def rows(self, first: int, last: int) -> BodiesTable:
        """Return the bodies first … last - 1.

        Raises
        ------
        InputError
            The file is gone or has been damaged since.
        """
        with _input_errors(self.path), ExitStack() as opened:
            return StoredBodies(self.path, self.reopened(self.path, opened)).rows(first, last)

    def masses(self) -> NDArray[np.float64]:
        """Return the masses of all bodies; raises as `rows`."""
        with _input_errors(self.path), ExitStack() as opened:
            mass = self.reopened(self.path, opened)["mass"]
            return np.asarray(mass.read(slice(0, self.number)), "f8")


def read_bodies(path: str | Path, seed: int = 1) -> BodiesTable:
    """Read bodies from a file whose format is found from its contents, whatever its name.

    Parameters
    ----------
    path : str or Path
        A CSV table with the header row ``x,y,z,vx,vy,vz,m`` (columns in any order, perhaps ``id``
        besides, ``#`` lines are comments), or one of bodies in a plane in the course's format, see
        `hybrid_nbody.files.bodies_csv.read_csv`; a NumPy ``.npz`` archive of ``position`` (N, 3),
        ``velocity`` (N, 3), ``mass`` (N,) and perhaps ``id`` (N,), where the ``activity_map`` of
        our exports is ignored; a trajectory, whose last frame is read; or a checkpoint.
    seed : int, optional
        Seed of the random numbers for empty cells of a table in the course's format.

    Returns
    -------
    BodiesTable
        At least one body; all numbers are finite.

    Raises
    ------
    InputError
        The file is missing, unreadable or foreign, or a value in it is impossible; the message
        names the location.
    """
    with open_bodies(path, seed) as stored:
        table = stored.rows(0, stored.number)
        stored.check_identities()
        return table


@contextmanager
def open_bodies(path: str | Path, seed: int = 1, frame: int = -1) -> Iterator[StoredBodies]:
    """Open a file of bodies, to read some of its rows at a time.

    Parameters and errors are those of `read_bodies`, the errors of reading rows included; of a
    trajectory `frame` is read, by default the last.
    """
    path = Path(path)
    with _input_errors(path), ExitStack() as opened:
        yield _reader_for(path, seed, frame)(path, opened)


@contextmanager
def _input_errors(path: Path) -> Iterator[None]:
    """Turn every error of a bad file into an InputError."""
    try:
        with reading(path):
            yield
    except FileError as error:
        raise InputError(str(error)) from error


def _reader_for(path: Path, seed: int, frame: int) -> Callable[[Path, ExitStack], StoredBodies]:
    trajectory = path / TRAJECTORY_FILE
    if trajectory.is_file():
        raise InputError(
            f"{path}: a directory, not a file; to take the last frame of its run name {trajectory}"
        )
    check_regular_file(path)
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise InputError(f"{path}: an empty file, no bodies in it")
    if head.startswith(b"\x93NUMPY"):
        raise InputError(
            f"{path}: a single NumPy array; save position, velocity and mass together with "
            "numpy.savez"
        )
    if head.startswith(b"PK"):
        return _read_npz
    if looks_like_checkpoint(head):
        return _read_checkpoint
    if head.startswith(SIGNATURE) or is_sealed(head, "trajectory"):
        return partial(_read_frame, frame=frame)
    if _is_binary(head):
        raise InputError(f"{path}: no text; neither a CSV table, nor HDF5, nor a NumPy archive")
    return partial(_read_csv, seed=seed)


def _is_binary(head: bytes) -> bool:
    """Return whether the start of a file is not text: it has zeros or many control bytes."""
    if head.startswith(UTF_16):
        return False
    control = sum(byte < 32 and byte not in b"\t\n\r\f" for byte in head)
    return b"\0" in head or 10 * control > len(head)


# --- CSV ------------------------------------------------------------------------------------------


def _read_csv(path: Path, opened: ExitStack, seed: int) -> StoredBodies:
    table, identities = read_csv(path, seed)
    named = {} if identities is None else {"id": identities}
    arrays = {"position": table[:, 0:3], "velocity": table[:, 3:6], "mass": table[:, 6], **named}
    return StoredBodies(path, columns_of(arrays))


# --- NumPy ----------------------------------------------------------------------------------------


def _read_npz(path: Path, opened: ExitStack) -> StoredBodies:
    columns, places = read_npz(path)
    reopened = None if places is None else partial(_reopened_npz, places=places)
    return StoredBodies(path, columns, reopened)


def _reopened_npz(path: Path, opened: ExitStack, places: Mapping[str, Place]) -> Columns:
    return columns_of_places(path, places)


# --- HDF5 -----------------------------------------------------------------------------------------


def _read_checkpoint(path: Path, opened: ExitStack) -> StoredBodies:
    file = opened.enter_context(open_checkpoint(path))
    _check_holds(path, file, "bodies/position", "bodies/velocity", "bodies/mass")
    _check_packed(path, file)
    return StoredBodies(path, _columns_of_checkpoint(path, file), _reopened_checkpoint)


def _reopened_checkpoint(path: Path, opened: ExitStack) -> Columns:
    return _columns_of_checkpoint(path, opened.enter_context(open_state(path)))


def _columns_of_checkpoint(path: Path, file: h5py.File) -> Columns:
    """Return the arrays of bodies in a checkpoint."""
    found = {name: file[f"bodies/{name}"] for name in ARRAYS if f"bodies/{name}" in file}
    for name, item in found.items():
        if not isinstance(item, h5py.Dataset):
            raise TypeError(f"bodies/{name} is no data set")

    def checked(column: Column) -> Column:
        def read(rows: slice) -> Array:
            values = column.read(rows)
            check_shares(path, file)
            return values

        return replace(column, read=read)

    return {name: checked(column) for name, column in columns_of(found).items()}


def _read_frame(path: Path, opened: ExitStack, frame: int) -> StoredBodies:
    run = opened.enter_context(open_run(path))
    if not run.number_of_bodies:
        raise InputError(f"{path}: a run of model '{run.model}' holds no bodies")
    if not run.number_of_frames:
        raise InputError(f"{path}: no complete frame in this trajectory")
    _check_frames_are_whole(path, run)
    with open_hdf5(path) as file:
        _check_packed(path, file, run.number_of_frames)
    place = frame % run.number_of_frames  # a run that goes on has another last frame later
    return StoredBodies(path, _columns_of_frame(run, place), partial(_reopened_frame, frame=place))


def _check_frames_are_whole(path: Path, run: Run) -> None:
    """Refuse frames that hold some bodies or fields: a run would start from others than it means.

    Raises
    ------
    InputError
        They do.
    """
    faults = [
        f"no {name}" for name in ("position", "velocity") if f"bodies/{name}" not in run.fields
    ]
    if chosen := chosen_bodies(run.config):
        faults.append(f"not all bodies ({chosen})")
    if faults:
        raise InputError(
            f"{path}: its frames hold {faults[0]}, as output.trajectory of that run says; take one "
            "of its checkpoints, which hold everything"
        )


def _reopened_frame(path: Path, opened: ExitStack, frame: int) -> Columns:
    return _columns_of_frame(opened.enter_context(open_run(path)), frame)


def _columns_of_frame(run: Run, frame: int) -> Columns:
    """Return the arrays of bodies in a frame of a run."""
    return {
        "position": _column_of_frame(run, "bodies/position", frame),
        "velocity": _column_of_frame(run, "bodies/velocity", frame),
        "mass": _constant_column(run, "bodies/mass"),
        "id": _constant_column(run, "bodies/id"),
    }


def _column_of_frame(run: Run, name: str, frame: int) -> Column:
    def read(rows: slice) -> Array:
        return run.part(name, frame, (rows,))

    return Column(run.shape(name)[1:], read(slice(0, 0)).dtype, read)


def _constant_column(run: Run, name: str) -> Column:
    def read(rows: slice) -> Array:
        return run.constant(name, rows)

    return Column(run.shape(name), read(slice(0, 0)).dtype, read)


def _check_packed(path: Path, file: h5py.File, frames: int = 1) -> None:
    """Check that the arrays of bodies, of one of some frames, are no bomb."""
    found = [file[f"bodies/{name}"] for name in ARRAYS if f"bodies/{name}" in file]
    arrays = [item for item in found if isinstance(item, h5py.Dataset)]
    packed = _stored_bytes(path, arrays)
    check_unpacked(path, sum(item.nbytes for item in arrays) // frames, packed // frames)


def _stored_bytes(path: Path, arrays: list[h5py.Dataset]) -> int:
    """Return the bytes that arrays take in their file and in the files that they are made of."""
    virtual = [item for item in arrays if item.is_virtual]
    names = {str(source.file_name) for item in virtual for source in item.virtual_sources()}
    sources = [path.parent / name for name in names]
    own = sum(int(item.id.get_storage_size()) for item in arrays)
    return own + sum(source.stat().st_size for source in sources if source.is_file())


def _check_holds(path: Path, file: h5py.File, *names: str) -> None:
    for name in names:
        if name not in file:
            raise InputError(
                f"{path}: no data set '{name}' in it; it holds no complete set of bodies"
            )
