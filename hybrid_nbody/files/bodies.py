"""Reading bodies from a CSV table, a NumPy archive, a trajectory or a checkpoint."""

import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.bodies_csv import read_csv, short
from hybrid_nbody.files.checkpoint import HEAD_BYTES, looks_like_checkpoint, open_checkpoint
from hybrid_nbody.files.hdf5 import SIGNATURE, check_regular_file, open_hdf5, reading
from hybrid_nbody.files.names import TRAJECTORY_FILE, UTF_16
from hybrid_nbody.files.run import open_run
from hybrid_nbody.files.seals import is_sealed
from hybrid_nbody.files.untrusted import check_unpacked

Array = NDArray[Any]

DAMAGED_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    OSError,
    KeyError,
    RuntimeError,
    MemoryError,
    OverflowError,
)
"""Exceptions of zipfile and NumPy for archives that are damaged or not theirs."""

ARRAYS = ("position", "velocity", "mass", "id")
"""Arrays of bodies in an archive; ``id`` is optional."""

IGNORED = ("activity_map",)
"""Arrays that our exports hold beside the bodies."""


@dataclass(frozen=True, eq=False)
class BodiesTable:
    """Bodies in the order of their file.

    Attributes
    ----------
    position : ndarray
        (N, 3) float64, in the units of length.
    velocity : ndarray
        (N, 3) float64, in the units of velocity.
    mass : ndarray
        (N,) float64, in the units of mass; none is negative.
    id : ndarray or None
        (N,) int64, or None if the file has no identities.
    """

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    mass: NDArray[np.float64]
    id: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.mass)

    def __repr__(self) -> str:
        return f"BodiesTable of {len(self)} bodies, total mass {self.mass.sum():g}"


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
    path = Path(path)
    try:
        with reading(path):
            return _checked(path, _reader_for(path, seed)(path))
    except FileError as error:
        raise InputError(str(error)) from error


def _reader_for(path: Path, seed: int) -> Callable[[Path], BodiesTable]:
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
        return _read_last_frame
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


def _read_csv(path: Path, seed: int) -> BodiesTable:
    table, identities = read_csv(path, seed)
    return BodiesTable(table[:, 0:3].copy(), table[:, 3:6].copy(), table[:, 6].copy(), identities)


# --- NumPy ----------------------------------------------------------------------------------------


def _read_npz(path: Path) -> BodiesTable:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return BodiesTable(**_arrays_of(path, archive))
    except DAMAGED_ARCHIVE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, OverflowError):
            reason = "the shape of an array is larger than any memory"
        if "allow_pickle" in reason:
            reason = "it holds Python objects, which are not read for safety"
        raise InputError(f"{path}: not a readable NumPy archive ({reason})") from error


def _arrays_of(path: Path, archive: Any) -> dict[str, Array]:
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
    return {name: archive[name] for name in archive.files if name in ARRAYS}


def _members_of(archive: Any) -> list[str]:
    """Return the names in the archive of what holds the arrays of bodies."""
    return [name for name in archive.zip.namelist() if name.removesuffix(".npy") in ARRAYS]


# --- HDF5 -----------------------------------------------------------------------------------------


def _read_checkpoint(path: Path) -> BodiesTable:
    with open_checkpoint(path) as file:
        _check_holds(path, file, "bodies/position", "bodies/velocity", "bodies/mass")
        _check_packed(path, file)
        arrays = {name: file[f"bodies/{name}"][:] for name in ARRAYS if f"bodies/{name}" in file}
        return BodiesTable(**arrays)


def _read_last_frame(path: Path) -> BodiesTable:
    with open_run(path) as run:
        if not run.number_of_bodies:
            raise InputError(f"{path}: a run of model '{run.model}' holds no bodies")
        if not run.number_of_frames:
            raise InputError(f"{path}: no complete frame in this trajectory")
        with open_hdf5(path) as file:
            _check_packed(path, file, run.number_of_frames)
        return BodiesTable(run.positions(-1), run.velocities(-1), run.mass, run.id)


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


# --- checks of every table ------------------------------------------------------------------------


def _checked(path: Path, table: BodiesTable) -> BodiesTable:
    """Return the table in float64 and C order, or raise an InputError that names the fault."""
    position = _as_numbers(path, "position", table.position)
    count = len(position) if position.ndim else 0
    _check_shape(path, "position", position, (count, 3))
    if not count:
        raise InputError(f"{path}: no bodies in it; at least one is needed")
    velocity = _as_numbers(path, "velocity", table.velocity)
    mass = _as_numbers(path, "mass", table.mass)
    _check_shape(path, "velocity", velocity, (count, 3))
    _check_shape(path, "mass", mass, (count,))
    if mass.min() < 0:
        raise InputError(f"{path}: mass[{mass.argmin()}] is negative (got {mass.min():g})")
    return BodiesTable(position, velocity, mass, _as_identities(path, table.id, count))


def _check_shape(path: Path, name: str, values: Array, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        bodies = f"for the {shape[0]} bodies of position" if name != "position" else "for N bodies"
        wanted = "(N, 3)" if name == "position" else shape
        raise InputError(
            f"{path}: {name} has the shape {values.shape}; {bodies} it must be {wanted}"
        )


def _as_numbers(path: Path, name: str, values: ArrayLike) -> NDArray[np.float64]:
    found = np.asarray(values)
    if found.dtype.kind not in "iuf":
        raise InputError(f"{path}: {name} holds {found.dtype}, not numbers")
    with np.errstate(over="ignore"):
        numbers = np.asarray(found, dtype=np.float64, order="C")
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        index = ", ".join(map(str, bad[0]))
        raise InputError(f"{path}: {name}[{index}] is not finite (got {numbers[tuple(bad[0])]})")
    return numbers


def _as_identities(path: Path, values: ArrayLike | None, count: int) -> NDArray[np.int64] | None:
    if values is None:
        return None
    found = np.asarray(values)
    if found.dtype.kind not in "iu":
        raise InputError(f"{path}: id holds {found.dtype}, not whole numbers")
    _check_shape(path, "id", found, (count,))
    if len(np.unique(found)) != count:
        raise InputError(f"{path}: id names some bodies twice")
    return found.astype(np.int64)
