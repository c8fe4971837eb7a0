"""``trajectory.h5``: frames and diagnostics, a row an event, flushed at each."""

from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np

from hybrid_nbody.errors import DamagedFileError, FileError
from hybrid_nbody.files.names import TRAJECTORY, TRAJECTORY_FILE
from hybrid_nbody.output import hdf5
from hybrid_nbody.parallel.rows import write_slabs
from hybrid_nbody.simulation.model import Role, fields_of

NAME = TRAJECTORY_FILE

FRAME_ROLES = (Role.FRAME, Role.SHOWN)
"""Roles of the fields of which a frame is made."""

UNREADABLE = (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError, IndexError)
"""What h5py raises on damaged tables."""

BYTES_PER_DIAGNOSTICS_ROW = 64 << 10
"""Room reserved for a row of diagnostics: a new chunk of every data set."""


class Trajectory:
    """The frames and diagnostics of one run.

    The root alone holds the file; other ranks send it their rows in slabs
    (`hybrid_nbody.parallel.rows`), so that its memory does not grow with the number of bodies of
    the others. The numbers ``step`` and ``time`` of a row are written last: a reader counts rows by
    them.

    Parameters
    ----------
    path : Path
        The file.
    communicator : Communicator
        Every method is collective.
    """

    def __init__(self, path: Path, communicator):
        self.path = path
        self.communicator = communicator
        self.file: h5py.File | None = None

    def create(self, model, header: dict) -> None:
        """Create the file with the data sets that `model` needs, and write its static fields."""
        self.communicator.on_root(lambda: self._create(model, header))
        for field in fields_of(model, Role.STATIC):
            write_slabs(
                field,
                self.communicator,
                lambda start, rows, name=field.name: self._put(name, start, rows),
            )
        self._flush()

    def _create(self, model, header):
        with hdf5.file_errors(self.path, "creating the file"):
            self.file = h5py.File(self.path, "w")
            hdf5.write_header(self.file, TRAJECTORY, header)
            for group in (self.file, self.file.create_group("diagnostics")):
                hdf5.growing(group, "step", (), "i8", "1", "steps since the initial state")
                hdf5.growing(group, "time", (), "f8", "time", "simulated time")
            static = fields_of(model, Role.STATIC)
            hdf5.reserve(self.file, sum(field.total_bytes for field in static))
            for field in static:
                hdf5.fixed(self.file, field)
            for field in fields_of(model, *FRAME_ROLES):
                hdf5.growing(
                    self.file, field.name, field.shape, field.dtype, field.units, field.description
                )
            for name, quantity in model.quantities.items():
                shape = _row_shape(quantity)
                hdf5.growing(
                    self.file["diagnostics"],
                    name,
                    shape,
                    "f8",
                    quantity.units,
                    quantity.description,
                )

    def reopen(self, model, header: dict) -> None:
        """Open the file of an earlier part of the run and cut off every row after the step of `model`.

        Raises
        ------
        FileError
            On every rank, if the file cannot be opened or is not a trajectory of `model`.
        """
        self.communicator.on_root(lambda: self._reopen(model, header))

    def _reopen(self, model, header):
        self.file = self._open()
        try:
            self._check_holds(model)
            hdf5.write_attributes(self.file, header)
            for prefix in ("", "diagnostics/"):
                rows = int(np.searchsorted(self.file[f"{prefix}step"][:], model.step, side="right"))
                for dataset in self._datasets_of_rows(prefix):
                    if len(dataset) < rows:
                        raise ValueError(
                            f"{dataset.name} has {len(dataset)} rows instead of {rows}"
                        )
                    dataset.resize(rows, axis=0)
            self.file.flush()
        except UNREADABLE as error:
            with suppress(*UNREADABLE):
                self.file.close()
            self.file = None
            raise DamagedFileError(
                f"{self.path}: not a complete trajectory of ours ({error})"
            ) from error

    def _open(self):
        """Open the file, and tell damage from what another process or the file system is the cause of."""
        try:
            if self.path.stat().st_size == 0:  # HDF5 would make a file of it
                raise DamagedFileError(f"{self.path}: an empty file")
            return h5py.File(self.path, "r+")
        except OSError as error:
            if hdf5.system_error(error):
                raise FileError(
                    f"{self.path}: opening the file failed: {hdf5.reason(error)}"
                ) from error
            raise DamagedFileError(f"{self.path}: {_damage(error)}") from error

    def _check_holds(self, model):
        """Raise KeyError if a data set that the next rows need is not there, or has another shape."""
        shapes = {field.name: field.shape for field in fields_of(model, *FRAME_ROLES)}
        shapes |= {
            f"diagnostics/{name}": _row_shape(quantity)
            for name, quantity in model.quantities.items()
        }
        for name, shape in shapes.items():
            if self.file[name].shape[1:] != shape:
                raise KeyError(f"{name} has rows of shape {self.file[name].shape[1:]}, not {shape}")

    def _datasets_of_rows(self, prefix):
        """Return the data sets that grow by a row an event: those of diagnostics, or those of frames."""
        found = []

        def visit(name, item):
            grows = isinstance(item, h5py.Dataset) and item.maxshape[0] is None
            if grows and name.startswith("diagnostics/") == bool(prefix):
                found.append(item)

        self.file.visititems(visit)
        return found

    def write_frame(self, model) -> None:
        """Add the present state as a frame, unless the last frame is of this step."""
        fields = fields_of(model, *FRAME_ROLES)
        row = self._new_row("", model, sum(field.total_bytes for field in fields))
        if row is None:
            return
        for field in fields:
            self._resize(field.name, row)
            write_slabs(
                field,
                self.communicator,
                lambda start, rows, name=field.name: self._put(name, start, rows, row),
            )
        self._finish_row("", row, model)

    def write_diagnostics(self, model, values) -> None:
        """Add a row of diagnostics, which every rank knows, unless the last row is of this step."""
        row = self._new_row("diagnostics/", model, BYTES_PER_DIAGNOSTICS_ROW)
        if row is None:
            return
        if self.communicator.is_root:
            for name, value in values.items():
                self._append(f"diagnostics/{name}", row, value)
        self._finish_row("diagnostics/", row, model)

    def _new_row(self, prefix, model, size):
        """Return the number of the next row, its room reserved; None if the present step has one."""
        return self.communicator.on_root(lambda: self._reserve_row(prefix, model.step, size))

    def _reserve_row(self, prefix, step, size):
        steps = self.file[f"{prefix}step"]
        if len(steps) and steps[-1] == step:
            return None
        hdf5.reserve(self.file, size)
        return len(steps)

    def _finish_row(self, prefix, row, model):
        """Number the row, which makes it count, and bring it to the disk."""
        if self.communicator.is_root:
            self._append(f"{prefix}time", row, model.time)
            self._append(f"{prefix}step", row, model.step)
        self._flush()

    def _append(self, name, row, value):
        with hdf5.file_errors(self.path, f"writing {name}"):
            dataset = self.file[name]
            dataset.resize(row + 1, axis=0)
            dataset[row] = value

    def _resize(self, name, row):
        """Make room for row number `row`; one that a killed writer left unnumbered is used again."""
        if self.communicator.is_root:
            with hdf5.file_errors(self.path, f"writing {name}"):
                self.file[name].resize(row + 1, axis=0)

    def _put(self, name, start, rows, row=None):
        """Write `rows` from `start` on into a static data set, or into row `row` of a growing one."""
        with hdf5.file_errors(self.path, f"writing {name}"):
            target = (
                np.s_[start : start + len(rows)]
                if row is None
                else np.s_[row, start : start + len(rows)]
            )
            self.file[name][target] = rows

    def _flush(self):
        if self.communicator.is_root:
            with hdf5.file_errors(self.path, "flushing"):
                self.file.flush()

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            with hdf5.file_errors(self.path, "closing"):
                self.file.close()
            self.file = None


def _damage(error):
    """Say in plain words why HDF5 cannot open a file."""
    if "truncated file" in str(error):
        return "truncated: its end is missing"
    return (
        "not an HDF5 file any more"
        if "signature not found" in str(error)
        else "damaged: HDF5 cannot open it"
    )


def _row_shape(quantity) -> tuple[int, ...]:
    """Return the shape of one row of a diagnostic."""
    return (quantity.components,) if quantity.components > 1 else ()
