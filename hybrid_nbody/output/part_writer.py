"""Writing the parts of a trajectory behind the steps, in a thread of its own."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.listing import Listing
from hybrid_nbody.files.parts import Part, part_path, parts_folder
from hybrid_nbody.output.listing import write_listing
from hybrid_nbody.output.part import (
    Values,
    contents_of,
    merged,
    read_contents,
    write_part,
)
from hybrid_nbody.output.sealing import remove_files

PAUSE = 0.5
"""Least seconds between two parts: what comes sooner waits, and shares a part."""

EVENT_SECONDS = 0.02
"""Seconds within which a step's diagnostics and frame follow each other."""

PART_BYTES = 64 << 20
"""Bytes that are written without that pause; a part of that size is not merged any more."""

MOST_BYTES = 512 << 20
"""Bytes of frames that wait in memory; beyond them the run waits for the disk."""

LISTING_SHARE = 0.1
"""Most of the time that goes into ``trajectory.h5``: the longer it takes, the rarer it is."""

MERGED_PARTS = 8
"""Fewest parts that are put together into one."""


@dataclass
class Batch:
    """Frames and rows of diagnostics that go into one part.

    Attributes
    ----------
    frames, rows : list of mapping
        Their values.
    size : int
        Bytes of them.
    """

    frames: list[Values] = field(default_factory=list)
    rows: list[Values] = field(default_factory=list)
    size: int = 0

    def __bool__(self) -> bool:
        return bool(self.frames or self.rows)

    def add(self, values: Values, is_frame: bool) -> None:
        """Add a frame or a row of diagnostics."""
        (self.frames if is_frame else self.rows).append(values)
        self.size += bytes_of(values)


def bytes_of(values: Values) -> int:
    """Return the bytes of the values of a frame or row."""
    return sum(value.nbytes for value in values.values())


class PartWriter:
    """Takes frames and rows of diagnostics, and writes them while the run goes on.

    Parameters
    ----------
    path : Path
        ``trajectory.h5``.
    listing : Listing
        What there is so far.
    on_wait : callable
        Called the first time that the run has to wait for the disk.

    Attributes
    ----------
    listing : Listing
        What has been written.
    """

    def __init__(self, path: Path, listing: Listing, on_wait: Callable[[], None]):
        self.path = path
        self.listing = listing
        self._on_wait = on_wait
        self._changed = threading.Condition()
        self._batch = Batch()
        self._busy = False
        self._urgent = False
        self._closing = False
        self._waited = False
        self._error: Exception | None = None
        self._listed = listing
        self._sealed_at = -PAUSE
        self._list_again_at = 0.0
        self._thread = threading.Thread(target=self._work, name="part writer", daemon=True)
        self._thread.start()

    # --- called by the run ------------------------------------------------------------------------

    def add(self, values: Values, is_frame: bool) -> None:
        """Take a frame or a row of diagnostics; wait if too many are waiting already.

        Raises
        ------
        FileError
            An earlier one could not be written.
        """
        size = bytes_of(values)
        with self._changed:
            if not self._has_space(size):
                self._tell_of_waiting()
                self._changed.wait_for(lambda: self._has_space(size))
            self._check()
            self._batch.add(values, is_frame)
            self._changed.notify_all()

    def flush(self) -> None:
        """Return once all that was added is on the disk and listed.

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
        waiting = self._batch.size
        return bool(self._error) or not waiting or waiting + size <= MOST_BYTES

    def _tell_of_waiting(self) -> None:
        if not self._waited:
            self._waited = True
            self._on_wait()

    def _check(self) -> None:
        if self._error:
            raise self._error

    # --- the thread -------------------------------------------------------------------------------

    def _work(self) -> None:
        """Write until the writer is closed, or something cannot be written."""
        try:
            while batch := self._next_batch():
                self._write(batch)
            self._list()
        except Exception as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _next_batch(self) -> Batch | None:
        """Return what is to be written next, once it is time; None at the end."""
        with self._changed:
            while True:
                self._changed.wait_for(self._has_work, self._seconds_to_list())
                if self._batch:
                    return self._take_batch()
                if self._closing:
                    return None
                self._list()
                self._urgent = False
                self._changed.notify_all()

    def _has_work(self) -> bool:
        return bool(self._batch) or self._urgent or self._closing

    def _take_batch(self) -> Batch:
        """Wait a little for more, then return all there is."""
        pause = self._sealed_at + PAUSE - time.monotonic()
        self._changed.wait_for(self._is_due, max(pause, EVENT_SECONDS))
        batch = self._batch
        self._batch = Batch()
        self._changed.notify_all()
        return batch

    def _is_due(self) -> bool:
        return self._urgent or self._closing or self._batch.size >= PART_BYTES

    def _write(self, batch: Batch) -> None:
        variables = self.listing.variables
        contents = contents_of(batch.frames, batch.rows, variables)
        part = write_part(self.path, self.listing.next_entry, contents, variables)
        self.listing = self.listing.with_part(part, contents.frames, contents.rows)
        self._sealed_at = time.monotonic()
        self._merge()
        if self._seconds_to_list() == 0.0:
            self._list()

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
        """Put the last parts together if there are many small ones."""
        last = parts_to_merge([self._size(part) for part in self.listing.parts])
        if not last:
            return
        parts = self.listing.parts[-last:]
        variables = self.listing.variables
        try:
            contents = [read_contents(self.path, part, variables) for part in parts]
        except FileError:
            return  # damaged on the disk: what reads them says so, and the others stay as they are
        whole = merged(contents, variables)
        part = write_part(self.path, parts[0].entries.first, whole, variables)
        self.listing = replace(self.listing, parts=(*self.listing.parts[:-last], part))
        self._list()
        old = [part_path(self.path, merged_part.entries) for merged_part in parts]
        remove_files(parts_folder(self.path), old)

    def _size(self, part: Part) -> int:
        path = part_path(self.path, part.entries)
        return path.stat().st_size if path.exists() else PART_BYTES


def parts_to_merge(sizes: Sequence[int]) -> int:
    """Return how many parts at the end are to be merged: 0, or `MERGED_PARTS` and more.

    A part joins those after it if it is at most twice as large as all of them together: so the
    number of parts, and how often a frame is written, grow like the logarithm of their number.
    """
    total = 0
    count = 0
    for size in reversed(sizes):
        if size >= PART_BYTES or total >= PART_BYTES or (count and size > 2 * total):
            break
        total += size
        count += 1
    return count if count >= MERGED_PARTS else 0
