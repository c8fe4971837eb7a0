"""The trajectory of a run: frames and diagnostics, written behind the steps in sealed parts."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.downloads import Download
from hybrid_nbody.errors import DamagedFileError, FileError, HybridNBodyError
from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.files.listing import (
    CLOCK_COLUMNS,
    Listing,
    Table,
    Variables,
    columns_of,
    empty,
    joined,
    load_listing,
)
from hybrid_nbody.files.names import TRAJECTORY_FILE
from hybrid_nbody.files.parts import (
    EntryRange,
    head_path,
    parts_folder,
    parts_in,
    paths_of,
)
from hybrid_nbody.output.batch import Entry, number_of, on_host
from hybrid_nbody.output.conversion import convert, is_single_file
from hybrid_nbody.output.cutting import cut, remove_unlisted
from hybrid_nbody.output.listing import write_head, write_listing
from hybrid_nbody.output.part import (
    Series,
    Values,
    contents_of,
    only_rows,
    write_part,
    write_piece,
)
from hybrid_nbody.output.part_writer import PartWriter
from hybrid_nbody.output.piece_writer import PieceWriter
from hybrid_nbody.output.sealing import RawData
from hybrid_nbody.output.sharing import (
    OtherRanks,
    all_on_root,
    begin_on_root,
    is_shared,
    own_share,
)
from hybrid_nbody.output.variables import continued, variables_of
from hybrid_nbody.output.waits import DiskWaits
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.simulation.model import FRAME_ROLES, SHARED_ROLES, Model, fields_of
from hybrid_nbody.simulation.snapshots import Snapshots

NAME = TRAJECTORY_FILE


class Trajectory:
    """The frames and diagnostics of one run.

    What is to be written is copied, and threads write it while the steps go on. The root writes
    small frames, for which other ranks send it their rows; of large ones every rank writes a share.

    Parameters
    ----------
    path : Path
        ``trajectory.h5``; the parts are in a folder beside it.
    communicator : Communicator
        Every rank calls every method together, but for `cut` and `abandon`.
    say : callable
        Told on the root, in a line, of what a person should know.

    Attributes
    ----------
    others : OtherRanks
        Waits for the files of other ranks.
    """

    def __init__(self, path: Path, communicator: Communicator, say: Callable[[str], None] = print):
        self.path = path
        self.communicator = communicator
        self.say = say
        self._writer: PartWriter | None = None  # on the root, while the trajectory is open
        self.others = OtherRanks()
        self._waits = DiskWaits(say)
        self._pieces = PieceWriter(self._waits)
        self._last_action: Future[object] | None = None  # on other ranks
        self._last_frame = -1
        self._last_row = -1
        self._head = ""  # its digest

    # --- opening ----------------------------------------------------------------------------------

    def create(self, model: Model, header: Mapping[str, object]) -> None:
        """Begin a trajectory, and write what all its frames share."""
        first = self.communicator.on_root(lambda: _free_entry(self.path))
        self._begin(model, _empty_listing(model, header, first))

    def begin_series(self, model: Model, header: Mapping[str, object], earlier: Listing) -> None:
        """Begin a trajectory with frames of other fields, and with the diagnostics of an earlier.

        The parts of both are in one folder: those of the new one come after those of the earlier.
        """
        listing = _empty_listing(model, header, earlier.next_entry)
        self._begin(model, listing, joined([earlier.rows], columns_of(listing.variables)))

    def _begin(self, model: Model, listing: Listing, rows: Table | None = None) -> None:
        fields = fields_of(model, *SHARED_ROLES)
        pieces = {field.name: all_on_root(field, self.communicator).rows() for field in fields}
        self.communicator.only_on_root(lambda: self._begin_files(listing, pieces, rows))
        self._tell_start()

    def _begin_files(
        self, listing: Listing, shared: Mapping[str, NDArray[Any]], rows: Table | None
    ) -> None:
        folder = parts_folder(self.path)
        with file_errors(folder, "making the folder"):
            folder.mkdir(exist_ok=True)
        remove_unlisted(self.path, listing)
        data = {
            name: RawData(values.shape, values.dtype, [values]) for name, values in shared.items()
        }
        head = head_path(self.path, listing.first)
        digest = write_head(head, listing.header, listing.variables, data)
        listing = replace(listing, head=digest)
        if rows is not None and len(rows["step"]):
            listing = self._with_rows(listing, rows)
        write_listing(self.path, listing)
        self._start_writer(listing)

    def _with_rows(self, listing: Listing, rows: Table) -> Listing:
        """Return a listing with one part more, which holds rows of diagnostics."""
        contents = only_rows(rows, listing.variables)
        part = write_part(self.path, listing.next_entry, contents, listing)
        return listing.with_part(part, contents.frames, contents.rows)

    def reopen(
        self, model: Model, header: Mapping[str, object], without: Collection[str] = ()
    ) -> None:
        """Open the trajectory of a resumed run and remove all that comes after the step of `model`.

        A diagnostic that it does not hold yet is NaN in the rows so far; one that the model does
        not know is NaN from here on.

        Parameters
        ----------
        model : Model
            At the state to go on from.
        header : mapping
            New attributes of the file.
        without : collection of str
            `cutting.FRAMES` or `cutting.DIAGNOSTICS`, of which that of this very step is removed.

        Raises
        ------
        DamagedFileError
            On every rank, if it is no trajectory of `model`, or nothing of it can be read.
        FileError
            On every rank, if a file cannot be read or written for another reason.
        """
        self.communicator.only_on_root(lambda: self._reopen(model, header, without))
        self._tell_start()

    def _reopen(self, model: Model, header: Mapping[str, object], without: Collection[str]) -> None:
        listing = self.cut(model.step, without)
        variables = continued(listing.variables, variables_of(model), self.path)
        rows = joined([listing.rows], columns_of(variables))
        listing = replace(listing, header=header, variables=variables, rows=rows, damage=())
        write_listing(self.path, listing)
        self._start_writer(listing)

    def cut(self, step: int, without: Collection[str] = ()) -> Listing:
        """Remove all that comes after a step, and return what is left; for the root alone.

        Raises
        ------
        DamagedFileError
            Nothing of the trajectory can be read.
        FileError
            A file cannot be written.
        """
        try:
            if self.path.exists() and is_single_file(self.path):
                convert(self.path)
            listing = load_listing(self.path)
        except FileError as error:
            raise DamagedFileError(str(error)) from error
        for line in listing.damage:
            self.say(f"warning: {line}")
        return cut(self.path, listing, step, without, lambda line: self.say(f"warning: {line}"))

    def _start_writer(self, listing: Listing) -> None:
        self._last_frame = _last_step(listing.frames)
        self._last_row = _last_step(listing.rows)
        self._head = listing.head
        self._writer = PartWriter(self.path, listing, self.others, self._waits)

    def _tell_start(self) -> None:
        """Let all ranks know what the root has opened."""
        start = (self._head, self._last_frame, self._last_row)
        self._head, self._last_frame, self._last_row = self.communicator.broadcast(start)

    # --- writing ----------------------------------------------------------------------------------

    def write_frame(self, model: Model) -> None:
        """Add the current state as a frame, unless the last frame is of this step."""
        self.copy_frame(model)()

    def copy_frame(self, model: Model) -> Callable[[], None]:
        """Begin a copy of the current state; return what adds it as a frame, once.

        Both are collective. Nothing is added if the last frame is of this step.
        """
        if self._last_frame == model.step:
            return _nothing
        self._last_frame = model.step
        clock = _clock(model)
        fields = fields_of(model, *FRAME_ROLES)
        if is_shared(fields, self.communicator):
            shares = {field.name: own_share(field, self.communicator) for field in fields}
            variables = variables_of(model)
            return lambda: self._share_frame(clock, shares, variables)
        begun = {field.name: begin_on_root(field, self.communicator) for field in fields}
        return lambda: self._add_frame(clock, begun)

    def copy_frames(self, snapshots: Snapshots) -> Callable[[int], None]:
        """Begin to bring copies of the state to the host; return what adds the first of them.

        For the only rank of a run, at steps after that of the last frame.

        Returns
        -------
        callable
            Given how many, adds them as frames, once.
        """
        self._last_frame = int(snapshots.steps[-1])
        bring = snapshots.model.backend.hand_over
        begun = {name: bring(copies) for name, copies in snapshots.frames.items()}
        clock = {"step": snapshots.steps, "time": snapshots.times}
        return lambda number: self._add_frames({**clock, **begun}, number)

    def _add_frames(self, frames: Entry, number: int) -> None:
        """Add the first of several frames."""
        if number < number_of(frames):
            frames = {name: values[:number] for name, values in on_host(frames).items()}
        if number:
            self.communicator.only_on_root(lambda: self._add(frames, is_frame=True))

    def _add_frame(self, clock: Values, begun: Mapping[str, Callable[[], Download]]) -> None:
        """Let the root write the rows of all ranks."""
        values = {name: on_root() for name, on_root in begun.items()}
        self.communicator.only_on_root(lambda: self._add({**clock, **values}, is_frame=True))

    def _share_frame(self, clock: Values, shares: Entry, variables: Variables) -> None:
        """Let every rank write a share of the rows of a frame."""
        entries = self.communicator.on_root(lambda: self._shared_entries(clock))
        path = paths_of(self.path, entries)[self.communicator.rank]
        series = Series(variables, self._head)
        write = partial(_write_share, path, entries.first, {**clock, **shares}, series)
        self._together(lambda: self._pieces.add(write))

    def _shared_entries(self, clock: Values) -> EntryRange:
        assert self._writer is not None  # between opening and closing
        return self._writer.share_frame(clock, self.communicator.size)

    def write_diagnostics(self, model: Model, values: Mapping[str, ArrayLike]) -> None:
        """Add a row of diagnostics, which all ranks know, unless the last row is of this step."""
        if self._last_row == model.step:
            return
        self._last_row = model.step
        row = {name: np.asarray(value, np.float64) for name, value in values.items()}
        clock = _clock(model)
        self.communicator.only_on_root(lambda: self._add({**clock, **row}, is_frame=False))

    def _add(self, values: Entry, is_frame: bool) -> None:
        assert self._writer is not None  # between opening and closing
        self._writer.add(values, is_frame)

    def then(self, write: Callable[[], None], keep: int | None = None) -> None:
        """Let `write`, of which every rank has its own, follow what was added so far.

        The root calls it once all of that is on the disk and listed. With `keep`, it does so for
        the oldest and the newest `keep` of those that are not begun; other ranks call all of
        theirs.

        Raises
        ------
        FileError
            On every rank, if something could not be written on any.
        """
        self._together(lambda: self._take(write, keep))

    def _take(self, write: Callable[[], None], keep: int | None) -> None:
        if self._writer is not None:
            self._writer.then(write, keep)
        else:
            self._last_action = self._pieces.add(write)

    def wait_for_actions(self) -> None:
        """Return once all that `then` was given is done; raises `FileError` as `then`."""
        self._together(self._wait_for_last_action)
        self.communicator.only_on_root(self._wait_for_writer)

    def _wait_for_last_action(self) -> None:
        if self._last_action is not None:
            self._pieces.wait_for(self._last_action)

    def _wait_for_writer(self) -> None:
        """Wait for the root's actions, which wait for those of other ranks."""
        if self._writer is not None:
            self._writer.wait_for_actions()

    def flush(self) -> None:
        """Return once all that was added is on the disk; raises `FileError` if that failed."""
        self._together(self._pieces.flush)
        self.communicator.only_on_root(self._flush)

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Write what is left; raises `FileError` on every rank if that failed on any.

        An error of another type is that of one rank alone, which calls `abandon`.
        """
        try:
            self._together(self._pieces.close)
        except HybridNBodyError:
            self.communicator.only_on_root(self._close_writer)
            raise
        self.communicator.only_on_root(self._close_writer)

    def abandon(self) -> None:
        """Write what this rank can without the others, after an error; raises `FileError`."""
        self.others.give_up()
        try:
            self._pieces.close()
        finally:
            self._close_writer()

    def _together(self, action: Callable[[], object]) -> None:
        """Run `action` on every rank; where it fails on one, wait for none of its files."""
        try:
            self.communicator.together(action)
        except FileError:
            self.others.give_up()
            raise

    def _close_writer(self) -> None:
        """Close the writer, once: one whose end was interrupted is closed by the next call."""
        if self._writer is None:
            return
        try:
            self._writer.close()
        except Exception:
            self._writer = None
            raise
        self._writer = None


def _empty_listing(model: Model, header: Mapping[str, object], first: int) -> Listing:
    variables = variables_of(model)
    rows = empty(columns_of(variables))
    return Listing(header, variables, first, "", (), empty(CLOCK_COLUMNS), rows)


def _free_entry(path: Path) -> int:
    """Return the number of an entry after all parts that there are, of whatever trajectory."""
    return max((entries.stop for entries in parts_in(parts_folder(path))), default=0)


def _write_share(path: Path, first: int, values: Entry, series: Series) -> None:
    """Write a rank's share of a frame once it is on the host."""
    contents = contents_of([on_host(values)], [], series.variables)
    write_piece(path, first, contents, series)


def _nothing() -> None:
    """Add no frame."""


def _clock(model: Model) -> Values:
    """Return step and time of the current state, as a frame or row holds them."""
    return {"step": np.array(model.step), "time": np.array(model.time)}


def _last_step(table: Table) -> int:
    return int(table["step"][-1]) if len(table["step"]) else -1
