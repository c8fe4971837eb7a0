"""The fields to be exported, from the frames of a trajectory or from a checkpoint."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import h5py
import numpy as np

from hybrid_nbody.analysis.export.units import Units, units_in
from hybrid_nbody.analysis.presentation import ComputedField, Exports, PresentedModel, presented
from hybrid_nbody.analysis.volume import BLOCK_BYTES
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.cells import Volume, volume_of
from hybrid_nbody.files.checkpoint import (
    HEAD_BYTES,
    check_shares,
    looks_like_checkpoint,
    open_checkpoint,
)
from hybrid_nbody.files.finding import find_trajectory
from hybrid_nbody.files.hdf5 import attributes, reading
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.files.views import Array
from hybrid_nbody.progress import OnProgress, counted, counter, no_step


@dataclass(frozen=True, eq=False)
class FrameField:
    """One field of all frames, read a few rows at a time.

    Attributes
    ----------
    shape : tuple of int
        Of one frame: (N, 3), (nz, ny, nx), (nz, ny, nx, 3) or, of a map, (D, D).
    dtype : numpy.dtype
    units : str
    part : callable
        ``part(frame, rows)`` returns the rows of a slice of a frame.
    step : callable
        Called after each block of `blocks`.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    units: str
    part: Callable[[int, slice], Array]
    step: Callable[[], None] = no_step

    @property
    def bytes(self) -> int:
        """Of one frame."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))

    @property
    def starts(self) -> range:
        """Return the first row of each block."""
        return range(0, self.shape[0], max(1, BLOCK_BYTES * self.shape[0] // max(1, self.bytes)))

    def blocks(self, frame: int) -> Iterator[tuple[int, Array]]:
        """Yield each block of a frame and its first row; a block has `BLOCK_BYTES` or one row."""
        starts = self.starts
        for first in counted(starts, self.step):
            yield first, self.part(frame, slice(first, min(first + starts.step, self.shape[0])))


@dataclass(frozen=True, eq=False)
class Source:
    """The fields of a run, and the frames of them to be exported.

    Attributes
    ----------
    path : Path
        The file that it is read from.
    title : str
        The title of the run.
    time : ndarray
        The times of all frames: (T,) float64.
    step : ndarray
        Their steps: (T,) int64.
    fields : dict of str to FrameField
        Fields that change, such as the positions of bodies.
    constants : dict of str to ndarray
        Fields that do not, such as the masses of bodies: (N,).
    maps : dict of str to FrameField
        Maps, which belong neither to bodies nor to cells.
    volume : Volume or None
        Positions of the cells of a grid; None for bodies.
    frames : tuple of int
        The frames that are exported.
    whole : bool
        Whether these are all frames, in arrays with an axis of frames in front.
    intact : callable
        Returns those of some frames that can be read, and warns of the others.
    units : Units or None
        Sizes of the units; None if the run has not said any.
    """

    path: Path
    title: str
    time: Array
    step: Array
    fields: dict[str, FrameField]
    constants: dict[str, Array] = field(default_factory=dict)
    maps: dict[str, FrameField] = field(default_factory=dict)
    volume: Volume | None = None
    frames: tuple[int, ...] = ()
    whole: bool = False
    intact: Callable[[Iterable[int]], list[int]] = list
    units: Units | None = None

    @property
    def of_bodies(self) -> bool:
        """Return whether bodies, and not the cells of a grid, are exported."""
        return self.volume is None

    def choose(self, frame: int | Literal["all"]) -> "Source":
        """Return the source with the frames to be exported.

        Parameters
        ----------
        frame : int or "all"
            Negative frames count from the end.

        Raises
        ------
        InputError
            There is no such frame.
        """
        count = len(self.time)
        if frame == "all":
            return replace(self, frames=tuple(self.intact(range(count))), whole=True)
        if not -count <= frame < count:
            raise InputError(
                f"{self.path}: no frame {frame}; there are {count}, "
                f"0 to {count - 1} or {-count} to -1"
            )
        return replace(self, frames=(frame % count,))

    def watched(self, progress: OnProgress | None) -> "Source":
        """Return the source with `progress` called after each block of the chosen frames."""
        blocks = sum(len(field.starts) for field in (self.fields | self.maps).values())
        step = counter(progress, blocks * len(self.frames))
        fields, maps = (
            {name: replace(field, step=step) for name, field in group.items()}
            for group in (self.fields, self.maps)
        )
        return replace(self, fields=fields, maps=maps)


@contextmanager
def open_source(path: str | Path, models: Mapping[str, PresentedModel]) -> Iterator[Source]:
    """Open a run's directory, a trajectory or a checkpoint for export, without reading frames.

    Parameters
    ----------
    path : str or Path
    models : mapping of str to PresentedModel
        The models by name; they say which data are exported.

    Raises
    ------
    InputError
        There is nothing at `path`, or nothing that can be exported.
    FileError
        The file is foreign, damaged, unreadable or written by a newer program.
    """
    path = find_trajectory(path)
    if _is_checkpoint(path):
        with open_checkpoint(path) as file:
            with reading(path):
                source = _of_checkpoint(path, file, models)
            yield source
    else:
        with open_run(path) as run:
            yield _of_run(run, presented(models, run.model).exports)


def _is_checkpoint(path: Path) -> bool:
    with reading(path):
        if not path.is_file():
            return False  # open_run says what it is
        with open(path, "rb") as file:
            return looks_like_checkpoint(file.read(HEAD_BYTES))


# --- a trajectory ---------------------------------------------------------------------------------


def _of_run(run: Run, exports: Exports) -> Source:
    if not run.number_of_frames:
        raise InputError(
            f"{run.path}: no complete frame in it; a checkpoint of the run can be exported instead"
        )
    stored = {name: field.in_frames for name, field in exports.fields.items()}
    stored |= exports.stored_in(run)
    fields = _fields_of_run(run, stored)
    if not fields:
        raise _nothing_to_export(run.path, run.model)
    shape = next(iter(fields.values())).shape[:3]
    computed = exports.computed(run)
    return Source(
        run.path,
        run.title,
        run.time,
        run.step,
        fields | {name: _computed(field, shape) for name, field in computed.items()},
        {name: run.constant(stored) for name, stored in exports.constants.items()},
        _fields_of_run(run, exports.maps),
        volume_of(run, stored[next(iter(fields))]) if exports.on_grid else None,
        intact=run.intact_frames,
        units=units_in(run.attributes),
    )


def _computed(field: ComputedField, shape: tuple[int, ...]) -> FrameField:
    """Return a field that is computed for every stored cell."""
    return FrameField(shape, np.dtype(field.dtype), field.units, field.part)


def _nothing_to_export(path: Path, model: str) -> InputError:
    return InputError(f"{path}: a run of model '{model}' holds no fields that can be exported")


def _fields_of_run(run: Run, names: Mapping[str, str]) -> dict[str, FrameField]:
    """Return the fields that the frames of a run hold."""
    return {
        name: _field_of_run(run, stored) for name, stored in names.items() if stored in run.fields
    }


def _field_of_run(run: Run, name: str) -> FrameField:
    sample = run.part(name, 0, (slice(0, 0),))
    return FrameField(
        run.shape(name)[1:],
        sample.dtype,
        run.units(name),
        lambda frame, rows: run.part(name, frame, (rows,)),
    )


# --- a checkpoint ---------------------------------------------------------------------------------


def _of_checkpoint(path: Path, file: h5py.File, models: Mapping[str, PresentedModel]) -> Source:
    found = attributes(file)
    model = str(found.get("model", ""))
    exports = presented(models, model).exports
    if not exports.fields:
        raise _nothing_to_export(path, model)
    _check_at_centres(path, file, exports)
    return Source(
        path,
        str(found.get("title", "")),
        np.array([found["time"]], dtype=np.float64),
        np.array([found["step"]], dtype=np.int64),
        _fields_of_checkpoint(path, file, exports),
        {name: file[stored][:] for name, stored in exports.constants.items()},
        volume=_volume_of_checkpoint(file, exports) if exports.on_grid else None,
        units=units_in(found),
    )


def _fields_of_checkpoint(path: Path, file: h5py.File, exports: Exports) -> dict[str, FrameField]:
    return {
        name: _field_of_checkpoint(path, [file[part] for part in field.in_checkpoint])
        for name, field in exports.fields.items()
    }


def _volume_of_checkpoint(file: h5py.File, exports: Exports) -> Volume:
    """Return the positions of all cells of a grid."""
    first = next(iter(exports.fields.values()))
    cells = file[first.in_checkpoint[0]].shape[::-1]
    x, y, z = (np.arange(number, dtype=np.int64) for number in cells)
    return Volume(cells, (x, y, z), True)


def _check_at_centres(path: Path, file: h5py.File, exports: Exports) -> None:
    """Raise `InputError` if velocities are stored at the faces of cells, not at their centres."""
    shapes = {file[field.in_checkpoint[0]].shape for field in exports.fields.values()}
    if exports.on_grid and len(shapes) > 1:
        raise InputError(
            f"{path}: a checkpoint of the staggered grid, whose velocities are at faces of cells; "
            "export a frame of the trajectory"
        )


def _field_of_checkpoint(path: Path, parts: list[h5py.Dataset]) -> FrameField:
    """Return the field of one data set, or of one a component."""
    shape = parts[0].shape if len(parts) == 1 else (*parts[0].shape, len(parts))

    def part(frame: int, rows: slice) -> Array:
        with reading(path):
            found = [values[rows] for values in parts]
            check_shares(path, parts[0].file)
        return found[0] if len(found) == 1 else np.stack(found, axis=-1)

    if any(values.shape != parts[0].shape for values in parts):
        raise FileError(f"{path}: damaged; the components of a field differ in shape")
    units = str(attributes(parts[0]).get("units", ""))
    return FrameField(shape, parts[0].dtype, units, part)
