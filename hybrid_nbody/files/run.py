"""The output of a finished, stopped or still running run, read lazily: ``run = open_run("output/plummer")``."""

import difflib
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import yaml

from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.diagnostics import Diagnostics
from hybrid_nbody.files.hdf5 import WatchedFile, attributes, check_format, patiently, reading
from hybrid_nbody.files.names import TRAJECTORY, TRAJECTORY_FILE


def open_run(path) -> "Run":
    """Open a run for analysis; it may still be running.

    Parameters
    ----------
    path : str or Path
        The run's directory, or its trajectory file.

    Returns
    -------
    Run
        Nothing but the number of frames has been read yet. Use it in a ``with`` statement or call
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


def find_trajectory(path) -> Path:
    """Return the trajectory file of a run's directory, or the file itself.

    Raises
    ------
    InputError
        There is nothing at `path`, or a directory that holds no run.
    FileError
        The directory cannot be read.
    """
    path = Path(path)
    with reading(path):
        if not path.exists():
            raise InputError(f"{path}: no such file or directory")
        if not path.is_dir():
            return path
        if not (path / TRAJECTORY_FILE).exists():
            raise InputError(f"{path}: no {TRAJECTORY_FILE} here; {_holdings(path)}")
    return path / TRAJECTORY_FILE


def _holdings(directory, shown=4):
    names = sorted(entry.name for entry in directory.iterdir() if not entry.name.startswith("."))
    if not names:
        return "the directory is empty"
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"it holds only {', '.join(names[:shown])}{more}"


class Run:
    """The output of one run. Made by `open_run`.

    Arrays are read from the file when they are asked for and not kept: hold on to what you use
    often. In a run that is still being written only complete frames and rows are seen; `refresh`
    looks for new ones.

    Attributes
    ----------
    path : Path
        The trajectory file.
    number_of_frames : int
        Complete frames in the file when it was opened or last refreshed.
    diagnostics : Diagnostics
        The time series, as arrays.
    """

    def __init__(self, path):
        self.path = Path(path)
        self._source = WatchedFile(path)
        self.refresh()

    def refresh(self) -> "Run":
        """Look again at a run that is still being written, and return it.

        Raises
        ------
        FileError
            The file is gone or can no longer be read.
        """
        try:
            with reading(self.path):
                patiently(self.path, lambda: self._count(self._source.open()))
        except BaseException:
            self.close()
            raise
        return self

    def _count(self, file):
        check_format(file, self.path, TRAJECTORY)
        self._shapes = _shapes_of(file)
        # What is stored frame by frame has a time axis, an axis of bodies or cells, and one more.
        is_field = {
            name: len(shape) >= 3 and not name.startswith("diagnostics/")
            for name, shape in self._shapes.items()
        }
        self._fields = sorted(filter(is_field.get, self._shapes))
        # A writer may be stopped between two data sets (/step and /time are its last): only what
        # all have counts.
        self.number_of_frames = self._common_length(["time", "step", *self._fields])
        rows = sorted(name for name in self._shapes if name.startswith("diagnostics/"))
        count = self._common_length(["diagnostics/time", "diagnostics/step", *rows])
        self.diagnostics = Diagnostics(
            self._read, [name.removeprefix("diagnostics/") for name in rows], count
        )

    def _common_length(self, names):
        return min((self._shapes.get(name) or (0,))[0] for name in names)

    def close(self):
        """Close the file; closing twice is fine."""
        self._source.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    @property
    def time(self) -> np.ndarray:
        """The times of the frames: (T,) float64, in the units of time."""
        return self._of_frames("time", np.float64)

    @property
    def step(self) -> np.ndarray:
        """The steps of the frames: (T,) int64."""
        return self._of_frames("step", np.int64)

    def _of_frames(self, name, dtype):
        # A run that has just begun may not have its data sets yet.
        count = self.number_of_frames
        return self._read(name, slice(0, count)) if count else np.empty(0, dtype)

    @property
    def mass(self) -> np.ndarray:
        """The masses of the bodies: (N,) float64, in the units of mass."""
        return self._read("bodies/mass", slice(None))

    @property
    def id(self) -> np.ndarray:
        """The identities of the bodies: (N,) int64."""
        return self._read("bodies/id", slice(None))

    @property
    def number_of_bodies(self) -> int:
        """N, the number of bodies; zero for a model without bodies."""
        return (self._shapes.get("bodies/mass") or (0,))[0]

    def positions(self, frame) -> np.ndarray:
        """Read the positions of all bodies in one frame or in a slice of frames.

        Parameters
        ----------
        frame : int or slice
            Negative frames count from the end. Nothing but the frames asked for is read.

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

    def velocities(self, frame) -> np.ndarray:
        """Read the velocities of all bodies; as `positions`, in the units of velocity."""
        return self.field("bodies/velocity", frame)

    @property
    def fields(self) -> list[str]:
        """The names of what is stored frame by frame, such as ``bodies/position``."""
        return list(self._fields)

    def field(self, name, frame) -> np.ndarray:
        """Read any field in one frame or in a slice of frames; parameters and errors as in `positions`."""
        if isinstance(frame, slice):
            return self._read_slice(name, frame)
        return self._read(name, self._index(frame))

    def part(self, name, frame, where) -> np.ndarray:
        """Read a part of a field in one frame: ``where`` has an int or a slice, not negative, for its leading axes."""
        return self._read(name, (self._index(frame), *where))

    def shape(self, name) -> tuple[int, ...]:
        """Return the shape of a data set as it stands in the file: frames first; errors as in `units`."""
        self._check_name(name)
        return self._shapes[name]

    def _index(self, frame):
        index = operator.index(frame)
        count = self.number_of_frames
        if not count:
            raise IndexError(f"frame {index}: {self.path} has no complete frame yet")
        if not -count <= index < count:
            raise IndexError(
                f"frame {index}: {self.path} has {count} frames, 0 to {count - 1} or {-count} to -1"
            )
        return index % count

    def _read_slice(self, name, frames):
        wanted = range(self.number_of_frames)[frames]
        if not wanted:
            return self._read(name, slice(0, 0))
        forward = wanted if wanted.step > 0 else wanted[::-1]  # HDF5 reads forwards only
        found = self._read(name, slice(forward[0], forward[-1] + 1, forward.step))
        return found if wanted.step > 0 else found[::-1]

    def frames(self, which=slice(None)) -> Iterator["Frame"]:
        """Go through the frames one at a time; no more than one is in memory unless the caller keeps it.

        Parameters
        ----------
        which : slice, optional
            Which frames, for instance ``slice(None, None, 10)``; all by default.

        Yields
        ------
        Frame
            Its arrays are read when they are asked for.
        """
        times = self.time
        steps = self.step
        for index in range(len(times))[which]:
            yield Frame(self, index, float(times[index]), int(steps[index]))

    @property
    def attributes(self) -> dict:
        """What the run noted about itself: program_version, title, model, ranks, backend, …"""
        file = self._source.handle
        with reading(self.path):
            return attributes(file)

    @property
    def title(self) -> str:
        """The title given in the configuration."""
        return str(self.attributes.get("title", ""))

    @property
    def model(self) -> str:
        """The model that was run, such as ``nbody``."""
        return str(self.attributes.get("model", "unknown"))

    @property
    def config(self) -> dict:
        """The resolved configuration of the run.

        Raises
        ------
        FileError
            The stored text is not YAML.
        """
        try:
            found = yaml.load(str(self.attributes.get("config", "{}")), Loader=_Loader)
        except yaml.YAMLError as error:
            raise FileError(f"{self.path}: the configuration stored in it is not YAML") from error
        return found if isinstance(found, dict) else {}

    def units(self, name) -> str:
        """Return the units of a data set: ``run.units("bodies/position")`` or ``run.units("total_energy")``.

        Raises
        ------
        InputError
            There is no such data set.
        """
        return str(self._attributes_of(name).get("units", ""))

    def description(self, name) -> str:
        """Say in a line what a data set holds; names and errors as in `units`."""
        return str(self._attributes_of(name).get("description", ""))

    def _attributes_of(self, name):
        known = (f"{group}{name}" for group in ("", "diagnostics/", "bodies/", "fluid/"))
        full = next((full for full in known if full in self._shapes), name)
        self._check_name(full)
        with reading(self.path):
            return patiently(self.path, lambda: attributes(self._source.handle[full]))

    def _read(self, name, rows):
        self._check_name(name)
        return self._source.read(name, rows)

    def _check_name(self, name):
        self._source.check_open()
        if name not in self._shapes:
            raise InputError(
                f"{self.path}: no data set '{name}' in this run of model '{self.model}'{self._hint(name)}"
            )

    def _hint(self, name):
        near = difflib.get_close_matches(name, self._shapes, 1)
        return f"; did you mean '{near[0]}'?" if near else ""

    def __repr__(self):
        if not self._source.is_open:
            return f"Run {self.path} (closed)"
        lines = [f"Run '{self.title}' of model {self.model} in {self.path}"]
        if self.number_of_bodies:
            lines.append(f"  bodies       {self.number_of_bodies}")
        fluid = [name for name in self._fields if name.startswith("fluid/")]
        lines += [f"  {name[6:]:<12} {self._shapes[name][1:]} a frame" for name in fluid]
        lines.append(f"  frames       {self.number_of_frames}{self._span()}")
        lines.append(
            f"  diagnostics  {self.diagnostics.number_of_rows} rows of {', '.join(self.diagnostics) or 'nothing'}"
        )
        return "\n".join(lines)

    def _span(self):
        times = self.time
        steps = self.step
        return (
            f", time {times[0]:g} to {times[-1]:g}, step {steps[0]} to {steps[-1]}"
            if len(times)
            else ""
        )


@dataclass(frozen=True, eq=False)
class Frame:
    """One frame of a run; its arrays are read when they are asked for.

    Attributes
    ----------
    index : int
        Its place among the frames.
    time : float
        In the units of time.
    step : int
        Steps taken since the initial state.
    """

    run: Run
    index: int
    time: float
    step: int

    @property
    def positions(self) -> np.ndarray:
        """(N, 3) float64, in the units of length."""
        return self.run.positions(self.index)

    @property
    def velocities(self) -> np.ndarray:
        """(N, 3) float64, in the units of velocity."""
        return self.run.velocities(self.index)

    def field(self, name) -> np.ndarray:
        """Any field of the frame by its name, see `Run.fields`."""
        return self.run.field(name, self.index)

    def __repr__(self):
        return f"Frame {self.index}: time {self.time:g}, step {self.step}"


def _shapes_of(file):
    shapes = {}
    file.visititems(
        lambda name, node: (
            shapes.update({name: node.shape}) if isinstance(node, h5py.Dataset) else None
        )
    )
    return shapes


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number, as people write it; PyYAML asks for 1.0e-3."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)
