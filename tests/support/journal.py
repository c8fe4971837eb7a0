"""A journal of what a run does to its files, and the states that a kill or a power cut can leave.

The journal holds the system calls by which `hybrid_nbody.output.sealing` and the modules above it
change files: create, write, sync, rename, remove. A **kill** leaves what a prefix of them made, the
last write perhaps in half. After a **power cut** what has been synced is there; of the rest any
part may be, in any order.
"""

import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from hybrid_nbody.output import sealing


@dataclass(frozen=True)
class Call:
    """One system call.

    Attributes
    ----------
    kind : str
        ``create``, ``write``, ``sync``, ``sync folder``, ``rename``, ``remove`` or ``folder``.
    path : str
        The file or folder, relative to that of the run.
    target : str
        The new name of a file that is renamed.
    offset : int
        Where a write begins.
    data : bytes
        What is written.
    """

    kind: str
    path: str
    target: str = ""
    offset: int = 0
    data: bytes = b""


@dataclass
class Journal:
    """The system calls of a run, in the order in which they were made.

    Attributes
    ----------
    folder : Path
        The run's directory.
    calls : list of Call
    """

    folder: Path
    calls: list[Call] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def add(self, kind, path, **details):
        """Note a call on a file of the run."""
        self.calls.append(Call(kind, self.name(path), **details))

    def name(self, path):
        """Return the path of a file relative to the folder of the run."""
        return str(Path(path).resolve().relative_to(self.folder.resolve()))

    def knows(self, path):
        """Return whether a file was made by a call in the journal: others are not sealed files."""
        name = self.name(path)
        return any(name in (call.path, call.target) for call in self.calls)

    def holds(self, path):
        """Return whether a file belongs to the run."""
        return Path(path).resolve().is_relative_to(self.folder.resolve())


class JournaledFile:
    """An open file whose writes are noted."""

    def __init__(self, journal, path, mode, **options):
        self.journal = journal
        self.path = path
        self.file = open(path, mode, **options)  # noqa: SIM115 - closed by its own block
        journal.add("create", path)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def fileno(self):
        return self.file.fileno()

    def seek(self, offset):
        return self.file.seek(offset)

    def write(self, data):
        with self.journal.lock:
            offset = self.file.tell()
            written = self.file.write(data)
            self.journal.add("write", self.path, offset=offset, data=bytes(data[:written]))
        return written


@contextmanager
def journaled(folder: Path) -> Iterator[Journal]:
    """Note what is done to the sealed files in a folder while the block runs."""
    journal = Journal(folder)
    unlink = Path.unlink
    mkdir = Path.mkdir
    fsync = os.fsync
    replace = os.replace

    def journaled_open(path, mode="r", **options):
        if "w" not in mode:
            return open(path, mode, **options)
        with journal.lock:
            return JournaledFile(journal, path, mode, **options)

    def journaled_sync(descriptor):
        with journal.lock:
            fsync(descriptor)
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            if journal.holds(path):
                journal.add("sync folder" if os.path.isdir(path) else "sync", path)

    def journaled_replace(source, target):
        with journal.lock:
            replace(source, target)
            if journal.holds(source) and journal.knows(source):
                journal.add("rename", source, target=journal.name(target))

    def journaled_unlink(path, missing_ok=False):
        with journal.lock:
            there = path.exists()
            unlink(path, missing_ok)
            if there and journal.holds(path) and journal.knows(path):
                journal.add("remove", path)

    def journaled_mkdir(path, *arguments, **options):
        with journal.lock:
            there = path.exists()
            mkdir(path, *arguments, **options)
            if not there and journal.holds(path) and path != journal.folder:
                journal.add("folder", path)

    with (
        mock.patch.object(sealing, "open", journaled_open, create=True),
        mock.patch.object(os, "fsync", journaled_sync),
        mock.patch.object(os, "replace", journaled_replace),
        mock.patch.object(Path, "unlink", journaled_unlink),
        mock.patch.object(Path, "mkdir", journaled_mkdir),
    ):
        yield journal


# ---- States --------------------------------------------------------------------------------------


@dataclass
class _File:
    """A file on the disk: what was written to it, and how much of that has been synced."""

    writes: list[Call] = field(default_factory=list)
    synced: int = 0

    def content(self, writes):
        size = max((call.offset + len(call.data) for call in writes), default=0)
        content = bytearray(size)
        for call in writes:
            content[call.offset : call.offset + len(call.data)] = call.data
        return bytes(content)


def killed(calls: list[Call], half: bool) -> dict[str, bytes]:
    """Return the files after some calls, the last of them a write of which half was done if asked.

    Folders have the content None.
    """
    names: dict[str, _File | None] = {}
    for number, call in enumerate(calls):
        if half and number == len(calls) - 1 and call.kind == "write":
            call = Call(call.kind, call.path, "", call.offset, call.data[: len(call.data) // 2])
        _apply(names, call)
    return {
        name: None if file is None else file.content(file.writes) for name, file in names.items()
    }


def _apply(names, call):
    """Do to the files what a call does."""
    if call.kind == "create":
        names[call.path] = _File()
    elif call.kind == "folder":
        names[call.path] = None
    elif call.kind == "write":
        names[call.path].writes.append(call)
    elif call.kind == "rename":
        names[call.target] = names.pop(call.path)
    elif call.kind == "remove":
        names.pop(call.path)


def power_cut(calls: list[Call], chance: random.Random) -> dict[str, bytes]:
    """Return files that a power cut after some calls may leave.

    What was synced is there. Of the other writes, names and removals, each is there or not.
    """
    names: dict[str, _File | None] = {}  # as the program sees them
    durable: dict[str, _File | None] = {}  # as they are on the disk for sure
    pending: list[tuple[Call, _File | None]] = []  # changes of names that are not
    for call in calls:
        file = names.get(call.path)
        _apply(names, call)
        if call.kind == "sync":
            file.synced = len(file.writes)
        elif call.kind == "sync folder":
            _make_durable(durable, pending, call.path)
        elif call.kind != "write":
            pending.append((call, names.get(call.target or call.path)))
    for call, file in pending:
        if chance.random() < 0.5:
            _change_name(durable, call, file)
    return {
        name: None if file is None else file.content(_kept_writes(file, chance))
        for name, file in durable.items()
    }


def _make_durable(durable, pending, folder):
    """Bring the changes of names in a folder to the disk."""
    for call, file in list(pending):
        if str(Path(call.target or call.path).parent) == folder:
            _change_name(durable, call, file)
            pending.remove((call, file))


def _change_name(durable, call, file):
    if call.kind == "remove":
        durable.pop(call.path, None)
    elif call.kind == "rename":
        durable.pop(call.path, None)
        durable[call.target] = file
    else:
        durable[call.path] = file


def _kept_writes(file, chance):
    """Return the writes that were synced, and some of the others."""
    later = [call for call in file.writes[file.synced :] if chance.random() < 0.5]
    return file.writes[: file.synced] + later


def put(files: dict[str, bytes], folder: Path) -> None:
    """Write the files of a state into a folder."""
    folder.mkdir(parents=True)
    for name, content in sorted(files.items()):
        path = folder / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        elif path.parent.is_dir():  # a name in a folder that is not there is nowhere
            path.write_bytes(content)
