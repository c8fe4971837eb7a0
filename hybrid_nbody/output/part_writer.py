"""Writing the parts of a trajectory behind the steps, in a thread of its own."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.hdf5 import reading
from hybrid_nbody.files.listing import Listing, columns_of, empty
from hybrid_nbody.files.parts import EntryRange, Part, parts_folder, paths_of
from hybrid_nbody.files.seals import stated_digest
from hybrid_nbody.output.batch import Batch, Entry, bytes_of, number_of, on_host
from hybrid_nbody.output.listing import write_listing
from hybrid_nbody.output.merging import PART_BYTES, parts_to_merge, size_of, whole_of
from hybrid_nbody.output.part import Values, contents_of, write_part
from hybrid_nbody.output.sealing import remove_files
from hybrid_nbody.output.sharing import OtherRanks
from hybrid_nbody.output.waits import DiskWaits

PAUSE = 2.0
"""Least seconds between two parts: what comes sooner waits, and shares a part."""

EVENT_SECONDS = 0.02
"""Seconds within which a step's diagnostics and frame follow each other."""

MOST_BYTES = 512 << 20
"""Bytes of frames that wait in memory; beyond them the run waits for the disk."""

LISTING_SHARE = 0.005
"""Largest share of the time that goes into ``trajectory.h5``: one that takes longer to write is
written less often."""

Action = Callable[[], None]
"""What is to be done once all before it is on the disk and listed."""


@dataclass(frozen=True)
class SharedFrame:
    """A frame that all ranks write, each its rows.

    Attributes
    ----------
    entries : EntryRange
        The part that it makes up.
    clock : mapping
        Its ``step`` and ``time``.
    """

    entries: EntryRange
    clock: Values


class PartWriter:
    """Takes frames and rows of diagnostics, and writes them while the run goes on.

    Parameters
    ----------
    path : Path
        ``trajectory.h5``.
    listing : Listing
        What there is so far.
    others : OtherRanks
        Waits for the files of other ranks.
    waits : DiskWaits
        How long the run has waited for the disk.

    Attributes
    ----------
    listing : Listing
        What has been written.
    """

    def __init__(self, path: Path, listing: Listing, others: OtherRanks, waits: DiskWaits):
        self.path = path
        self.listing = listing
        self._others = others
        self._waits = waits
        self._changed = threading.Condition()
        self._queue: deque[Batch | SharedFrame | Action] = deque()
        self._next_entry = listing.next_entry
        self._replaceable: deque[Action] = deque()  # of the queue, by newer ones
        self._actions = 0
        self._urgent = False
        self._closing = False
        self._error: Exception | None = None
        self._listed = listing
        self._sealed_at = -PAUSE
        self._list_again_at = 0.0
        self._fixed_parts = 0  # they are not merged any more
        self._thread = threading.Thread(target=self._work, name="part writer", daemon=True)
        self._thread.start()

    # --- called by the run ------------------------------------------------------------------------

    def add(self, values: Entry, is_frame: bool) -> None:
        """Take frames or a row of diagnostics; wait if too many are waiting already.

        Raises
        ------
        FileError
            An earlier one could not be written.
        """
        size = bytes_of(values)
        with self._changed:
            if not self._has_space(size):
                self._wait_until(lambda: self._has_space(size))
            self._check()
            batch = self._last_batch()
            is_new = not batch
            batch.add(values, is_frame)
            self._next_entry += number_of(values)
            if is_new or batch.size >= PART_BYTES:  # waking the thread for nothing takes 0.1 ms
                self._changed.notify_all()

    def _last_batch(self) -> Batch:
        """Return the batch at the end of the queue, a new one if there is none."""
        last = self._queue[-1] if self._queue else None
        if isinstance(last, Batch):
            return last
        batch = Batch()
        self._queue.append(batch)
        return batch

    def share_frame(self, clock: Values, ranks: int) -> EntryRange:
        """Return the part in which all ranks are to write a frame; it is listed when they have.

        Raises `FileError` as `add`.
        """
        with self._changed:
            self._check()
            entries = EntryRange(self._next_entry, self._next_entry + 1, ranks)
            self._queue.append(SharedFrame(entries, clock))
            self._next_entry += 1
            self._changed.notify_all()
            return entries

    def then(self, action: Action, keep: int | None = None) -> None:
        """Let the thread do something once all that was added is on the disk and listed.

        Of the actions with a `keep` that are not begun, only the oldest and the newest `keep` are
        left. Raises `FileError` as `add`.
        """
        with self._changed:
            self._check()
            self._queue.append(action)
            self._actions += 1
            if keep is not None:
                self._replaceable.append(action)
                self._drop_superseded(keep)
            self._changed.notify_all()

    def _drop_superseded(self, keep: int) -> None:
        """Take back actions that newer ones of their kind supersede.

        The oldest stays: its turn comes next, while a queue that is never empty would put off one
        that is always replaced for ever.
        """
        while len(self._replaceable) > keep + 1:
            self._take_back(self._replaceable[1])
            del self._replaceable[1]
            self._actions -= 1

    def _take_back(self, action: Action) -> None:
        """Remove an action; what was to be written before and after it goes into one part."""
        place = self._queue.index(action)
        del self._queue[place]
        before = self._queue[place - 1] if place else None
        after = self._queue[place] if place < len(self._queue) else None
        if isinstance(before, Batch) and isinstance(after, Batch):
            before.join(after)
            del self._queue[place]

    def wait_for_actions(self) -> None:
        """Return once all actions are done; raises `FileError` as `then`."""
        with self._changed:
            if self._actions:
                self._wait_until(lambda: bool(self._error) or not self._actions)
            self._check()

    def flush(self) -> None:
        """Return once all that was added is on the disk and listed, and all actions are done.

        Raises
        ------
        FileError
            It could not be written.
        """
        with self._changed:
            self._urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._error or not self._urgent)
            self._check()

    def close(self) -> None:
        """Write and list what is left, and end the thread; raises `FileError` as `flush`."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._check()

    def _has_space(self, size: int) -> bool:
        waiting = sum(batch.size for batch in self._queue if isinstance(batch, Batch))
        return bool(self._error) or not waiting or waiting + size <= MOST_BYTES

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for the disk; the lock is held before and after."""
        with self._waits.measure():
            self._changed.wait_for(condition)

    def _check(self) -> None:
        if self._error:
            raise self._error

    # --- the thread -------------------------------------------------------------------------------

    def _work(self) -> None:
        """Write until the writer is closed, or something cannot be written."""
        try:
            while not self._is_done():
                self._wait_for_work()
                self._write_next()
                if self._is_urgent() or self._seconds_to_list() == 0.0:
                    self._list()
                self._end_of_flush()
        except Exception as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _is_done(self) -> bool:
        with self._changed:
            return self._closing and not self._queue and self._listed is self.listing

    def _is_urgent(self) -> bool:
        with self._changed:
            return not self._queue and (self._urgent or self._closing)

    def _wait_for_work(self) -> None:
        """Wait until something is to be written or listed, and then a little for more of it."""
        with self._changed:
            self._changed.wait_for(self._has_work, self._seconds_to_list())
            pause = self._sealed_at + PAUSE - time.monotonic()
            if self._queue:
                self._changed.wait_for(self._is_due, max(pause, EVENT_SECONDS))

    def _has_work(self) -> bool:
        return bool(self._queue) or self._urgent or self._closing

    def _is_due(self) -> bool:
        if self._urgent or self._closing or len(self._queue) > 1:
            return True
        return not isinstance(self._queue[0], Batch) or self._queue[0].size >= PART_BYTES

    def _write_next(self) -> None:
        """Write what is first in the queue."""
        with self._changed:
            if not self._queue:
                return
            first = self._queue.popleft()
            if self._replaceable and self._replaceable[0] is first:
                self._replaceable.popleft()
            self._changed.notify_all()
        if isinstance(first, Batch):
            self._write_batch(first)
            self._merge()
        elif isinstance(first, SharedFrame):
            self._add_shared(first)
        else:
            self._do(first)

    def _do(self, action: Action) -> None:
        self._list()
        action()
        with self._changed:
            self._actions -= 1
            self._changed.notify_all()

    def _write_batch(self, batch: Batch) -> None:
        variables = self.listing.variables
        frames = [on_host(frame) for frame in batch.frames]
        contents = contents_of(frames, [on_host(row) for row in batch.rows], variables)
        part = write_part(self.path, self.listing.next_entry, contents, self.listing)
        self.listing = self.listing.with_part(part, contents.frames, contents.rows)
        self._sealed_at = time.monotonic()

    def _add_shared(self, frame: SharedFrame) -> None:
        """Wait until all ranks have written their rows of a frame."""
        paths = paths_of(self.path, frame.entries)
        self._others.wait_for(paths)
        with reading(paths[0]):
            digests = tuple(stated_digest(path, "part") for path in paths)
        table = {name: np.array([value]) for name, value in frame.clock.items()}
        none = empty(columns_of(self.listing.variables))
        self.listing = self.listing.with_part(Part(frame.entries, 1, 0, digests), table, none)

    def _end_of_flush(self) -> None:
        """Tell those that wait for a flush, if all is written and listed."""
        with self._changed:
            if not self._queue and self._listed is self.listing:
                self._urgent = False
                self._changed.notify_all()

    def _seconds_to_list(self) -> float | None:
        """Return the seconds until the listing should be written; None if it is up to date."""
        if self._listed is self.listing:
            return None
        return max(self._list_again_at - time.monotonic(), 0.0)

    def _list(self) -> None:
        """Bring ``trajectory.h5`` up to date."""
        if self._listed is self.listing:
            return
        start = time.monotonic()
        write_listing(self.path, self.listing)
        self._listed = self.listing
        end = time.monotonic()
        self._list_again_at = end + (end - start) / LISTING_SHARE

    def _merge(self) -> None:
        """Put the last parts together if there are many small ones.

        Those that cannot be read or written twice, as on a disk that is nearly full, stay as they
        are: nothing of them is lost.
        """
        fixed = self.listing.parts[: self._fixed_parts]
        parts = self.listing.parts[self._fixed_parts :]
        last = parts_to_merge([size_of(self.path, part) for part in parts])
        if not last:
            return
        old = parts[-last:]
        try:
            whole = whole_of(self.path, old, self.listing)
        except FileError:
            self._fixed_parts = len(self.listing.parts)
            return
        self.listing = replace(self.listing, parts=(*fixed, *parts[:-last], whole))
        self._list()
        files = [path for part in old for path in paths_of(self.path, part.entries)]
        remove_files(parts_folder(self.path), files)
