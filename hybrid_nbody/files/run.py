"""Reading the output of a run lazily, even while it is running: ``open_run("output/plummer")``."""

import difflib
import operator
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.finding import find_trajectory
from hybrid_nbody.files.hdf5 import Rows
from hybrid_nbody.files.listing import DIAGNOSTICS
from hybrid_nbody.files.source import open_source
from hybrid_nbody.files.stored_config import config_of
from hybrid_nbody.files.tables import pandas_of, xarray_of
from hybrid_nbody.files.views import Array, Diagnostics, Frame, run_in_words

if TYPE_CHECKING:
    import pandas
    import xarray

Frames = int | slice
"""A frame or several; negative ones count from the end."""


def open_run(path: str | Path) -> "Run":
    """Open a run for analysis; it may still be running.

    Parameters
    ----------
    path : str or Path
        The run's directory, or its trajectory file.

    Returns
    -------
    Run
        Its list of parts and its diagnostics have been read. Use it in a ``with`` statement or call
        ``close()``.

    Raises
    ------
    InputError
        There is nothing at `path`, or a directory that holds no run.
    FileError
        The file is foreign, damaged, unreadable or written by a newer program.

    Examples
    --------
    >>> with open_run("output/plummer") as run:
    ...     radius = np.linalg.norm(run.positions(-1), axis=1)
    ...     error = run.diagnostics.relative_energy_error
    """
    return Run(find_trajectory(path))


class DamageWarning(UserWarning):
    """A part of a trajectory is damaged or gone; the rest can be read."""


class Run:
    """The output of one run, opened by `open_run`.

    Arrays are read at every access and not cached: keep those that you use often. Of a run in
    progress only complete frames and rows are seen; `refresh` looks for new ones.

    Attributes
    ----------
    path : Path
        The trajectory file.
    number_of_frames : int
        Number of complete frames when the run was opened or last refreshed.
    diagnostics : Diagnostics
        The time series, as arrays.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._is_open = True
        self._source = open_source(self.path)
        self._take_stock()

    def refresh(self) -> Self:
        """Look for new frames and rows, and return the run.

        Raises
        ------
        FileError
            The file is gone or cannot be read any more.
        """
        self._is_open = True
        try:
            self._source.refresh()
        except BaseException:
            self.close()
            raise
        self._take_stock()
        return self

    def _take_stock(self) -> None:
        """Note what the source holds by now, and warn of what it has lost."""
        self._count()
        for line in self._source.damage:
            warnings.warn(line, DamageWarning, stacklevel=4)

    def _count(self) -> None:
        source = self._source
        self._shapes = source.shapes
        self._fields = source.fields
        self.number_of_frames = source.number_of_frames
        rows = sorted(name for name in self._shapes if name.startswith(DIAGNOSTICS))
        of_a_row = {name.removeprefix(DIAGNOSTICS): self._shapes[name][1:] for name in rows}
        self.diagnostics = Diagnostics(self._read, of_a_row, source.number_of_rows)

    def close(self) -> None:
        """Close the files, if they are open."""
        self._is_open = False
        self._source.close()

    def _check_open(self) -> None:
        """Raise ValueError if the run has been closed."""
        if not self._is_open:
            raise ValueError(f"{self.path} is closed; open it again with open_run")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def damage(self) -> list[str]:
        """Return what is known to be lost of the run, in lines for a person."""
        return list(self._source.damage)

    @property
    def time(self) -> Array:
        """Return the times of the frames: (T,) float64, in the units of time."""
        return self._of_frames("time", np.float64)

    @property
    def step(self) -> Array:
        """Return the steps of the frames: (T,) int64."""
        return self._of_frames("step", np.int64)

    def _of_frames(self, name: str, dtype: DTypeLike) -> Array:
        # A run that has just begun may not have its data sets yet.
        count = self.number_of_frames
        return self._read(name, slice(0, count)) if count else np.empty(0, dtype)

    @property
    def mass(self) -> Array:
        """Return the masses of the bodies: (N,) float64, in the units of mass."""
        return self.constant("bodies/mass")

    @property
    def id(self) -> Array:
        """Return the identities of the bodies: (N,) int64."""
        return self.constant("bodies/id")

    @property
    def number_of_bodies(self) -> int:
        """N, the number of bodies; zero for a model without bodies."""
        return (self._shapes.get("bodies/mass") or (0,))[0]

    def positions(self, frame: Frames) -> Array:
        """Read the positions of all bodies in one frame or in a slice of frames.

        Parameters
        ----------
        frame : int or slice
            Negative frames count from the end. Only these frames are read.

        Returns
        -------
        ndarray
            (N, 3) float64 for one frame, (F, N, 3) for a slice, in the units of length.

        Raises
        ------
        IndexError
            There is no such frame.
        InputError
            The model has no bodies.
        FileError
            The file is damaged.
        """
        return self.field("bodies/position", frame)

    def velocities(self, frame: Frames) -> Array:
        """Read the velocities of all bodies, as `positions`, in the units of velocity."""
        return self.field("bodies/velocity", frame)

    def has(self, name: str) -> bool:
        """Return whether the file holds a data set."""
        return name in self._shapes

    def constant(self, name: str, rows: slice = slice(None)) -> Array:
        """Read rows of a data set that all frames share, such as ``bodies/mass``."""
        return self._read(name, rows)

    @property
    def fields(self) -> list[str]:
        """Return the names of the fields that each frame has, such as ``bodies/position``."""
        return list(self._fields)

    def field(self, name: str, frame: Frames) -> Array:
        """Read a field in one frame or in a slice of frames; see `positions`."""
        if isinstance(frame, slice):
            return self._read_slice(name, frame)
        return self._read(name, self._index(frame))

    def part(self, name: str, frame: int, where: tuple[int | slice, ...]) -> Array:
        """Read a part of a field in one frame; `where` indexes its first axes, not negatively."""
        return self._read(name, (self._index(frame), *where))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a data set in the file, frames first; errors as in `units`."""
        self._check_name(name)
        return self._shapes[name]

    def _index(self, frame: int) -> int:
        index = operator.index(frame)
        count = self.number_of_frames
        if not count:
            raise IndexError(f"frame {index}: {self.path} has no complete frame yet")
        if not -count <= index < count:
            raise IndexError(
                f"frame {index}: {self.path} has {count} frames, 0 to {count - 1} or {-count} to -1"
            )
        return index % count

    def _read_slice(self, name: str, frames: slice) -> Array:
        wanted = range(self.number_of_frames)[frames]
        if not wanted:
            return self._read(name, slice(0, 0))
        forward = wanted if wanted.step > 0 else wanted[::-1]  # HDF5 reads forwards only
        found = self._read(name, slice(forward[0], forward[-1] + 1, forward.step))
        return found if wanted.step > 0 else found[::-1]

    def frames(self, which: slice = slice(None)) -> Iterator[Frame]:
        """Yield the frames one at a time; their arrays are read when they are accessed.

        Parameters
        ----------
        which : slice, optional
            The frames, for instance ``slice(None, None, 10)``; all by default.
        """
        times = self.time
        steps = self.step
        for index in range(len(times))[which]:
            yield Frame(self, index, float(times[index]), int(steps[index]))

    def to_pandas(self, frame: int | None = None) -> "pandas.DataFrame":
        """Return the diagnostics as a table, or the bodies of a frame.

        Without `frame` there is a row for each time, which is the index, and a column for each
        quantity, or component of a vector, such as ``momentum_x``. With it there is a row for each
        body, by its id, with its mass and its fields in the frame.

        Raises
        ------
        InputError
            pandas is not installed, or the frames hold no bodies.
        IndexError
            There is no such frame.
        """
        return pandas_of(self, frame)

    def to_xarray(self) -> "xarray.Dataset":
        """Return fields, diagnostics and constants as labelled arrays, with units.

        Fields have the dimension ``time`` before those of a frame; they are read when their
        numbers are used, for which the run must be open. Diagnostics have ``diagnostics_time``.

        Raises
        ------
        InputError
            xarray is not installed.
        """
        return xarray_of(self)

    def intact_frames(self, frames: Iterable[int]) -> list[int]:
        """Return those of some frames that can be read; `DamageWarning` names the others.

        Raises `FileError` if none of them can be.
        """
        intact, faults = self._source.intact(frames)
        if faults and not intact:
            raise FileError("; ".join(faults))
        for fault in faults:
            warnings.warn(fault, DamageWarning, stacklevel=2)
        return intact

    def leave_out_damaged(self) -> bool:
        """Count damaged frames no longer, and return whether there were some; see above."""
        intact = self.intact_frames(range(self.number_of_frames))
        if len(intact) == self.number_of_frames:
            return False
        self._source.keep(intact)
        self._count()
        return True

    @property
    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the file: program_version, title, model, ranks, backend, …"""
        self._check_open()
        return self._source.attributes()

    @property
    def title(self) -> str:
        """Return the title given in the configuration."""
        return str(self.attributes.get("title", ""))

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return str(self.attributes.get("model", "unknown"))

    @property
    def config(self) -> dict[str, Any]:
        """Return the resolved configuration of the run.

        Raises
        ------
        FileError
            The stored text is not YAML.
        """
        try:
            return config_of(str(self.attributes.get("config", "{}")))
        except ValueError as error:
            raise FileError(f"{self.path}: {error}") from error

    def units(self, name: str) -> str:
        """Return the units of a data set.

        Parameters
        ----------
        name : str
            Its path, such as ``bodies/position``, or the last part, such as ``total_energy``.

        Raises
        ------
        InputError
            There is no such data set.
        """
        return str(self._attributes_of(name).get("units", ""))

    def description(self, name: str) -> str:
        """Return the description of a data set, a line; names and errors as in `units`."""
        return str(self._attributes_of(name).get("description", ""))

    def _attributes_of(self, name: str) -> dict[str, Any]:
        full = self._full_name(name)
        self._check_name(full)
        return self._source.attributes_of(full)

    def _full_name(self, name: str) -> str:
        """Return the path of a data set that may be given by the last part of it."""
        known = (name, f"{DIAGNOSTICS}{name}", *sorted(self._shapes))
        matches = (full for full in known if full in self._shapes and _ends_in(full, name))
        return next(matches, name)

    def _read(self, name: str, rows: Rows) -> Array:
        self._check_name(name)
        return self._source.read(name, rows)

    def _check_name(self, name: str) -> None:
        self._check_open()
        if name not in self._shapes:
            raise InputError(
                f"{self.path}: no data set '{name}' in this run of model '{self.model}'"
                f"{self._hint(name)}"
            )

    def _hint(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._shapes, 1)
        return f"; did you mean '{near[0]}'?" if near else ""

    def __repr__(self) -> str:
        if not self._is_open:
            return f"Run {self.path} (closed)"
        return run_in_words(self)


def _ends_in(full: str, name: str) -> bool:
    """Return whether a path is `name` or ends in it."""
    return full == name or full.endswith(f"/{name}")
