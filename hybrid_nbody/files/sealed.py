"""Reading a trajectory made of sealed parts: nothing is returned whose digest is not right."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.hdf5 import Rows, reading
from hybrid_nbody.files.listing import CLOCK, DIAGNOSTICS, Listing, Variable, load_listing
from hybrid_nbody.files.parts import Part, head_path, paths_of, share_of
from hybrid_nbody.files.seals import open_sealed

Found = TypeVar("Found")

OPEN_PARTS = 16
"""Parts that stay open, checked: frames are mostly read one after the other."""


class SealedTrajectory:
    """A trajectory of sealed parts, as `Run` reads it.

    Parameters
    ----------
    path : Path
        ``trajectory.h5``; it may be damaged or gone if its parts are there.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        Shape of every data set, frames first.
    fields : list of str
        Names of the data sets that each frame has.
    number_of_frames, number_of_rows : int
        Complete frames, and complete rows of diagnostics.
    damage : list of str
        What is known to be lost, in lines for a person.
    """

    def __init__(self, path: Path):
        self.path = path
        self._open: OrderedDict[tuple[Path, str], h5py.File] = OrderedDict()
        self._left_out: set[Part] = set()
        self.refresh()

    def refresh(self) -> None:
        """Look for new frames and rows.

        Raises
        ------
        FileError
            The trajectory is gone, or damaged beyond use.
        """
        self.listing = self._without_the_others(load_listing(self.path))
        variables = self.listing.variables
        frames = self.listing.frames["step"]
        rows = self.listing.rows
        self.number_of_frames = len(frames)
        self.number_of_rows = len(rows["step"])
        self.fields = sorted(field.name for field in variables.frames)
        self._ends = np.cumsum([part.frames for part in self.listing.parts], dtype=int)
        self.shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(CLOCK, frames.shape),
            **{shared.name: shared.shape for shared in variables.shared},
            **{field.name: (len(frames), *field.shape) for field in variables.frames},
            **{DIAGNOSTICS + name: column.shape for name, column in rows.items()},
        }

    def _without_the_others(self, listing: Listing) -> Listing:
        """Return a listing without the parts that are left out; their rows of diagnostics stay."""
        if not self._left_out:
            return listing
        is_kept = [part not in self._left_out for part in listing.parts]
        parts = list(compress(listing.parts, is_kept))
        of_each = np.repeat(is_kept, [part.frames for part in listing.parts])
        frames = {name: column[of_each] for name, column in listing.frames.items()}
        return replace(listing, parts=tuple(parts), frames=frames)

    @property
    def damage(self) -> list[str]:
        """See the class."""
        return list(self.listing.damage)

    def close(self) -> None:
        """Close the parts that are open."""
        while self._open:
            self._open.popitem()[1].close()

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the file."""
        return dict(self.listing.header)

    def attributes_of(self, name: str) -> dict[str, Any]:
        """Return units and description of a data set."""
        if name.removeprefix(DIAGNOSTICS) in CLOCK:
            return clock_meaning(name.removeprefix(DIAGNOSTICS), self.listing.header)
        found = self._variable(name)
        return {"units": found.units, "description": found.description}

    def _variable(self, name: str) -> Variable:
        variables = self.listing.variables
        if name.startswith(DIAGNOSTICS):
            short = name.removeprefix(DIAGNOSTICS)
            return next(column for column in variables.diagnostics if column.name == short)
        both = (*variables.shared, *variables.frames)
        return next(variable for variable in both if variable.name == name)

    # --- numbers ----------------------------------------------------------------------------------

    def read(self, name: str, rows: Rows) -> NDArray[Any]:
        """Read rows of a data set.

        Raises
        ------
        FileError
            The part that holds them is damaged or gone.
        """
        if name in CLOCK:
            return np.array(self.listing.frames[name][rows])
        if name.startswith(DIAGNOSTICS):
            return np.array(self.listing.rows[name.removeprefix(DIAGNOSTICS)][rows])
        if name in self.fields:
            return self._read_field(name, rows)
        head = head_path(self.path, self.listing.first)
        return self._read_from(head, "head", self.listing.head, name, rows)

    def _read_field(self, name: str, rows: Rows) -> NDArray[Any]:
        if isinstance(rows, slice):
            wanted = range(*rows.indices(self.number_of_frames))
            pieces = [self._read_frame(name, frame, ()) for frame in wanted]
            field = self._variable(name)
            return np.array(pieces, field.dtype).reshape(len(wanted), *field.shape)
        frame, *where = rows if isinstance(rows, tuple) else (rows,)
        assert isinstance(frame, int)  # `Run` asks for parts of one frame only
        return self._read_frame(name, frame, tuple(where))

    def intact(self, frames: Iterable[int]) -> tuple[list[int], list[str]]:
        """Return those of some frames that are whole, and a line for each part that is not."""
        intact: list[int] = []
        faults: dict[str, None] = {}
        for frame in frames:
            try:
                self._on_frame(frame, partial(self._check_now, frame))
            except FileError as error:
                faults[str(error)] = None
                continue
            intact.append(frame)
        return intact, list(faults)

    def keep(self, frames: Sequence[int]) -> None:
        """Leave out all parts but those of some frames, which are whole parts' frames.

        Parts that a run adds later stay.
        """
        kept = {self._part_of(frame)[0] for frame in frames}
        self._left_out |= {part for part in self.listing.parts if part.frames} - kept
        self.refresh()

    def _check_now(self, frame: int) -> None:
        part, _ = self._part_of(frame)
        for path, digest in zip(paths_of(self.path, part.entries), part.digests, strict=True):
            self._opened(path, "part", digest)

    def _read_frame(self, name: str, frame: int, where: tuple[int | slice, ...]) -> NDArray[Any]:
        return self._on_frame(frame, lambda: self._read_now(name, frame, where))

    def _on_frame(self, frame: int, action: Callable[[], Found]) -> Found:
        """Return what `action` does with a frame, once more if the parts are others by now."""
        try:
            return action()
        except FileError as error:
            part, first = self._part_of(frame)
            self.refresh()
            if frame >= self.number_of_frames:
                raise FileError(
                    f"{self.path}: it has {self.number_of_frames} frames by now, frame {frame} is "
                    "gone: the run was resumed from before it"
                ) from error
            if self._part_of(frame)[0] != part:  # a run that goes on has put parts together
                return self._on_frame(frame, action)
            raise FileError(f"{error}; {self._lost_with(part, first)}") from error

    def _read_now(self, name: str, frame: int, where: tuple[int | slice, ...]) -> NDArray[Any]:
        part, first = self._part_of(frame)
        if part.entries.pieces > 1:
            return self._read_shared(part, name, where)
        return self._read_piece(part, 0, name, (frame - first, *where))

    def _read_shared(self, part: Part, name: str, where: tuple[int | slice, ...]) -> NDArray[Any]:
        """Read rows of the one frame of a part whose rows are in several files."""
        total = self._variable(name).shape[0]
        rows, *rest = where or (slice(0, total),)
        number = not isinstance(rows, slice)
        wanted = rows if isinstance(rows, slice) else slice(rows, rows + 1)
        pieces = [
            self._read_piece(part, piece, name, (0, own, *rest))
            for piece, own in _overlaps(wanted, total, part.entries.pieces)
        ]
        found = np.concatenate(pieces)
        return np.asarray(found[0]) if number else found

    def _read_piece(self, part: Part, piece: int, name: str, rows: Rows) -> NDArray[Any]:
        path = paths_of(self.path, part.entries)[piece]
        return self._read_from(path, "part", part.digests[piece], name, rows)

    def _part_of(self, frame: int) -> tuple[Part, int]:
        """Return the part that holds a frame, and the first frame of that part."""
        number = int(np.searchsorted(self._ends, frame, side="right"))
        part = self.listing.parts[number]
        return part, int(self._ends[number]) - part.frames

    def _lost_with(self, part: Part, first: int) -> str:
        """Return which frames a part held, and what can still be done."""
        last = first + part.frames - 1
        times = self.listing.frames["time"]
        which = f"frame {first}" if first == last else f"frames {first} to {last}"
        span = f"{times[first]:g}" if first == last else f"{times[first]:g} to {times[last]:g}"
        return f"{which}, time {span}, cannot be read, the others can"

    def _read_from(self, path: Path, kind: str, digest: str, name: str, rows: Rows) -> NDArray[Any]:
        file = self._opened(path, kind, digest)
        with reading(path):
            return np.asarray(file[name][rows])

    def _opened(self, path: Path, kind: str, digest: str) -> h5py.File:
        """Return an open part or head, checked when it was opened.

        Another run in the same directory may have one of the same name.
        """
        place = (path, digest)
        if place not in self._open:
            self._open[place] = open_sealed(path, kind, digest)
        self._open.move_to_end(place)
        while len(self._open) > OPEN_PARTS:
            self._open.popitem(last=False)[1].close()
        return self._open[place]


def _overlaps(wanted: slice, total: int, pieces: int) -> Iterator[tuple[int, slice]]:
    """Yield the pieces that hold some of the wanted rows, and these, counted from their first.

    Without any wanted row the first piece is yielded, with none.
    """
    start, stop, step = wanted.indices(total)
    if start >= stop:
        yield 0, slice(0, 0)
        return
    for piece in range(pieces):
        own = share_of(total, piece, pieces)
        passed = max(own.start - start, 0)
        first = start + -(-passed // step) * step
        last = min(stop, own.stop)
        if first < last:
            yield piece, slice(first - own.start, last - own.start, step)


def clock_meaning(name: str, header: Mapping[str, object]) -> dict[str, str]:
    """Return units and description of steps or times, in a file with attributes `header`."""
    if name == "step":
        return {"units": "1", "description": "steps since the initial state"}
    return {"units": str(header.get("time_units", "time")), "description": "simulated time"}
