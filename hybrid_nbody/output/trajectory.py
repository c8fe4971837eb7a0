"""Writing ``trajectory.h5``: frames and rows of diagnostics, flushed one by one."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.errors import DamagedFileError, FileError
from hybrid_nbody.files.atomic import reason, system_error
from hybrid_nbody.files.hdf5 import open_hdf5, reading
from hybrid_nbody.files.names import TRAJECTORY, TRAJECTORY_FILE
from hybrid_nbody.output import hdf5
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import write_slabs
from hybrid_nbody.simulation.model import Model, Quantity, Role, fields_of

NAME = TRAJECTORY_FILE

FRAME_ROLES = (Role.FRAME, Role.SHOWN)
"""Roles of the fields that make up a frame."""

FRAMES = ""
"""Prefix of the names of the data sets of frames."""

DIAGNOSTICS = "diagnostics/"
"""Prefix of the names of the data sets of diagnostics."""

UNREADABLE = (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError, IndexError)
"""Exceptions of h5py for damaged tables."""

BYTES_PER_DIAGNOSTICS_ROW = 64 << 10
"""Bytes reserved for a row of diagnostics: a new chunk of every data set."""


class Trajectory:
    """The frames and diagnostics of one run.

    The root alone holds the file; other ranks send it their rows in slabs
    (`hybrid_nbody.parallel.rows`), so that its memory does not grow with the number of bodies of
    the others. The ``step`` of a row is written last: readers count rows by it.

    Parameters
    ----------
    path : Path
        The file.
    communicator : Communicator
        Every rank calls every method together.
    """

    def __init__(self, path: Path, communicator: Communicator):
        self.path = path
        self.communicator = communicator
        self.file: Any = None  # an h5py.File, on the root, while it is open
        self._datasets: dict[str, h5py.Dataset] = {}  # of frames and diagnostics, on the root
        self._unmeasured: list[str] = []  # data sets of diagnostics that the model does not know

    # --- opening ----------------------------------------------------------------------------------

    def create(self, model: Model, header: Mapping[str, object]) -> None:
        """Create the file with the data sets that `model` needs, and write its static fields."""
        self.communicator.on_root(lambda: self._create(model, header))
        for field in fields_of(model, Role.STATIC):
            write_slabs(field, self.communicator, partial(self._write_static, field.name))
        self._flush()

    def _create(self, model: Model, header: Mapping[str, object]) -> None:
        with hdf5.writing(self.path, "creating the file"):
            self.file = h5py.File(self.path, "w")
            hdf5.write_header(self.file, TRAJECTORY, header)
            for group in (self.file, self.file.create_group("diagnostics")):
                _create_clock(group)
            self._create_static(model)
            self._create_growing(model)

    def _create_static(self, model: Model) -> None:
        fields = fields_of(model, Role.STATIC)
        hdf5.reserve(self.file, sum(field.total_bytes for field in fields))
        for field in fields:
            hdf5.fixed(self.file, field)

    def _create_growing(self, model: Model) -> None:
        for field in fields_of(model, *FRAME_ROLES):
            dataset = hdf5.growing(self.file, field.name, field.shape, field.dtype)
            hdf5.describe(dataset, field.units, field.description)
        for name, quantity in model.quantities.items():
            self._create_diagnostic(name, quantity)

    def _create_diagnostic(self, name: str, quantity: Quantity) -> h5py.Dataset:
        dataset = hdf5.growing(self.file, DIAGNOSTICS + name, _row_shape(quantity), "f8")
        hdf5.describe(dataset, quantity.units, quantity.description)
        return dataset

    def reopen(
        self, model: Model, header: Mapping[str, object], without: Collection[str] = ()
    ) -> None:
        """Open the file of a resumed run and remove every row after the step of `model`.

        A diagnostic that the file does not hold yet gets a data set, NaN in the rows so far; one
        that the model does not know gets NaN from here on.

        Parameters
        ----------
        model : Model
            At the state to go on from.
        header : mapping
            New attributes of the file.
        without : collection of str
            `FRAMES` or `DIAGNOSTICS`, of which the row of this very step is removed, too.

        Raises
        ------
        DamagedFileError
            On every rank, if the file is not a complete trajectory of `model`.
        FileError
            On every rank, if the file cannot be opened for another reason.
        """
        self.communicator.on_root(lambda: self._reopen(model, header, without))

    def _reopen(self, model: Model, header: Mapping[str, object], without: Collection[str]) -> None:
        self.file = self._open()
        with self._closed_if_damaged():
            self._check_holds(model)
            self._add_missing(model)
            hdf5.write_attributes(self.file, header)
            self._cut(model.step, without)
            self.file.flush()

    def cut(self, step: int, without: Collection[str] = ()) -> None:
        """Remove every row after a step from a file that is not open; errors as in `reopen`."""
        self.communicator.on_root(lambda: self._cut_and_close(step, without))

    def _cut_and_close(self, step: int, without: Collection[str]) -> None:
        self.file = self._open()
        with self._closed_if_damaged():
            self._cut(step, without)
        self.close()

    def _cut(self, step: int, without: Collection[str]) -> None:
        for prefix in (FRAMES, DIAGNOSTICS):
            self._remove_rows_after(step - (prefix in without), prefix)

    @contextmanager
    def _closed_if_damaged(self) -> Iterator[None]:
        """Turn what HDF5 raises on damaged tables into an error that names the file."""
        try:
            yield
        except UNREADABLE as error:
            with suppress(*UNREADABLE):
                self.file.close()
            self.file = None
            raise DamagedFileError(
                f"{self.path}: not a complete trajectory of ours ({error})"
            ) from error

    def _open(self) -> h5py.File:
        """Open the file; damage is told apart from failures of the operating system."""
        try:
            if self.path.stat().st_size == 0:  # HDF5 would start a new file
                raise DamagedFileError(f"{self.path}: an empty file")
            return h5py.File(self.path, "r+")
        except OSError as error:
            if system_error(error):
                raise FileError(f"{self.path}: opening the file failed: {reason(error)}") from error
            raise DamagedFileError(f"{self.path}: {_damage(error)}") from error

    def _check_holds(self, model: Model) -> None:
        """Raise KeyError if a data set has rows of another shape, or one of frames is missing."""
        shapes = {field.name: field.shape for field in fields_of(model, *FRAME_ROLES)}
        for name, quantity in model.quantities.items():
            if DIAGNOSTICS + name in self.file:
                shapes[DIAGNOSTICS + name] = _row_shape(quantity)
        for name, shape in shapes.items():
            found = self.file[name].shape[1:]
            if found != shape:
                raise KeyError(f"{name} has rows of shape {found}, not {shape}")

    def _add_missing(self, model: Model) -> None:
        """Create the data sets of diagnostics that the file does not hold yet, NaN so far."""
        rows = len(self.file[f"{DIAGNOSTICS}step"])
        for name, quantity in model.quantities.items():
            if DIAGNOSTICS + name not in self.file:
                hdf5.reserve(self.file, BYTES_PER_DIAGNOSTICS_ROW + 8 * rows * quantity.components)
                dataset = self._create_diagnostic(name, quantity)
                dataset.resize(rows, axis=0)
                dataset[...] = np.nan
        known = {f"/{DIAGNOSTICS}{name}" for name in ("step", "time", *model.quantities)}
        datasets = self._growing_datasets(DIAGNOSTICS)
        self._unmeasured = [found.name for found in datasets if found.name not in known]

    def take_diagnostics(self, path: Path, model: Model) -> None:
        """Copy the diagnostics that another trajectory holds into this new one.

        Raises
        ------
        FileError
            On every rank, if the other one cannot be read.
        """
        self.communicator.on_root(lambda: self._take_diagnostics(path, model))

    def _take_diagnostics(self, path: Path, model: Model) -> None:
        with open_hdf5(path) as source, reading(path):
            names = [DIAGNOSTICS + name for name in ("time", *model.quantities, "step")]
            rows = len(source[f"{DIAGNOSTICS}step"])
            hdf5.reserve(self.file, BYTES_PER_DIAGNOSTICS_ROW + len(names) * 24 * rows)
            for name in names:
                self.file[name].resize(rows, axis=0)
                self.file[name][...] = source[name][:rows] if name in source else np.nan
        self._flush()

    def _remove_rows_after(self, step: int, prefix: str) -> None:
        """Remove the rows after a step from the data sets of frames or of diagnostics."""
        rows = int(np.searchsorted(self.file[f"{prefix}step"][:], step, side="right"))
        for dataset in self._growing_datasets(prefix):
            if len(dataset) < rows:
                raise ValueError(f"{dataset.name} has {len(dataset)} rows instead of {rows}")
            dataset.resize(rows, axis=0)

    def _growing_datasets(self, prefix: str) -> list[h5py.Dataset]:
        """Return the data sets that get a row with each frame or with each row of diagnostics."""
        found: list[h5py.Dataset] = []

        def visit(name: str, item: Any) -> None:
            grows = isinstance(item, h5py.Dataset) and item.maxshape[0] is None
            if grows and name.startswith(DIAGNOSTICS) == (prefix == DIAGNOSTICS):
                found.append(item)

        self.file.visititems(visit)
        return found

    # --- writing ----------------------------------------------------------------------------------

    def write_frame(self, model: Model) -> None:
        """Add the current state as a frame, unless the last frame is of this step."""
        fields = fields_of(model, *FRAME_ROLES)
        row = self._new_row(FRAMES, model, sum(field.total_bytes for field in fields))
        if row is None:
            return
        for field in fields:
            self._resize(field.name, row)
            write_slabs(field, self.communicator, partial(self._write_in_row, field.name, row))
        self._finish_row(FRAMES, row, model)

    def write_diagnostics(self, model: Model, values: Mapping[str, ArrayLike]) -> None:
        """Add a row of diagnostics, which all ranks know, unless the last row is of this step."""
        row = self._new_row(DIAGNOSTICS, model, BYTES_PER_DIAGNOSTICS_ROW)
        if row is None:
            return
        if self.communicator.is_root:
            for name, value in values.items():
                self._append(DIAGNOSTICS + name, row, value)
            for name in self._unmeasured:
                self._append(name, row, np.nan)
        self._finish_row(DIAGNOSTICS, row, model)

    def _new_row(self, prefix: str, model: Model, size: int) -> int | None:
        """Return the number of the next row after reserving `size` bytes; None if it is there."""
        return self.communicator.on_root(lambda: self._reserve_row(prefix, model.step, size))

    def _reserve_row(self, prefix: str, step: int, size: int) -> int | None:
        steps = self.file[f"{prefix}step"]
        if len(steps) and steps[-1] == step:
            return None
        hdf5.reserve(self.file, size)
        return len(steps)

    def _finish_row(self, prefix: str, row: int, model: Model) -> None:
        """Write the time and the step of a row, which completes it, and flush the file."""
        if self.communicator.is_root:
            self._append(f"{prefix}time", row, model.time)
            self._append(f"{prefix}step", row, model.step)
        self._flush()

    def _append(self, name: str, row: int, value: ArrayLike) -> None:
        with hdf5.writing(self.path, f"writing {name}"):
            dataset = self._dataset(name)
            dataset.resize(row + 1, axis=0)
            dataset[row] = value

    def _resize(self, name: str, row: int) -> None:
        """Extend a table to hold row `row`, which a killed writer may have left without a step."""
        if self.communicator.is_root:
            with hdf5.writing(self.path, f"writing {name}"):
                self._dataset(name).resize(row + 1, axis=0)

    def _dataset(self, name: str) -> h5py.Dataset:
        """Return a data set that stays open: a write that fails when it is closed is not told."""
        if name not in self._datasets:
            self._datasets[name] = self.file[name]
        return self._datasets[name]

    def _write_static(self, name: str, start: int, rows: NDArray[Any]) -> None:
        with hdf5.writing(self.path, f"writing {name}"):
            hdf5.write_rows(self.file[name], start, rows)

    def _write_in_row(self, name: str, row: int, start: int, rows: NDArray[Any]) -> None:
        with hdf5.writing(self.path, f"writing {name}"):
            self._dataset(name)[row, start : start + len(rows)] = rows

    def _flush(self) -> None:
        if self.communicator.is_root:
            with hdf5.writing(self.path, "flushing"):
                self.file.flush()

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            with hdf5.writing(self.path, "closing"):
                self.file.flush()
                self._datasets = {}
                self.file.close()
            self.file = None


def _create_clock(group: h5py.Group) -> None:
    """Create the data sets of the steps and times of rows."""
    steps = hdf5.growing(group, "step", (), "i8")
    hdf5.describe(steps, "1", "steps since the initial state")
    times = hdf5.growing(group, "time", (), "f8")
    hdf5.describe(times, "time", "simulated time")


def _damage(error: Exception) -> str:
    """Return in plain words why HDF5 cannot open a file."""
    if "truncated file" in str(error):
        return "truncated: its end is missing"
    if "signature not found" in str(error):
        return "not an HDF5 file any more"
    return "damaged: HDF5 cannot open it"


def _row_shape(quantity: Quantity) -> tuple[int, ...]:
    """Return the shape of one row of a diagnostic."""
    return (quantity.components,) if quantity.components > 1 else ()
