"""Does the runs of a sweep: each worker takes those that no other has taken.

A worker is a process with a communicator of its own. Everything that it does can be found in the
directories of the members, so that workers come and go as they like.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hybrid_nbody.errors import FileError, HybridNBodyError
from hybrid_nbody.output.log import Log
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.progress import duration
from hybrid_nbody.running.ending import SIGNALLED, TIME_LIMIT, Ending
from hybrid_nbody.running.members import CLAIM, FAILED, Member, MemberState, state_of
from hybrid_nbody.running.start import resume, run

PATIENCE = 5.0
"""Seconds after which the progress of a single run is told."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Worker:
    """One of several processes that share a sweep.

    Attributes
    ----------
    file : str
        The configuration of all members, but for what is set.
    members : sequence of Member
    number, of : int
        Which worker this is, of how many.
    tell : callable
        Takes a line for the person who waits.
    is_wanted : callable
        Returns whether it is to go on with another member.
    """

    file: str
    members: Sequence[Member]
    number: int
    of: int
    tell: Tell
    is_wanted: Callable[[], bool]

    def work(self, communicator: Communicator) -> bool:
        """Do members until none is left; return False if it was asked to stop.

        Parameters
        ----------
        communicator : Communicator
            Of this process alone.
        """
        pace = _Pace(self.members)
        number = len(self.members)
        first = number * self.number // self.of
        for place in (*range(first, number), *range(first)):
            member = self.members[place]
            if not self.is_wanted():
                return False
            if not self._claim_and_do(member, place % self.of == self.number, communicator, pace):
                return False
        return True

    def _claim_and_do(
        self, member: Member, is_own: bool, communicator: Communicator, pace: "_Pace"
    ) -> bool:
        """Do a member that no other worker has; return False if the worker was asked to stop."""
        try:
            with claimed(member.folder, is_own) as is_mine:
                return not is_mine or self._do(member, communicator, pace)
        except FileError as error:  # of its folder; the others go on
            self.tell(f"{member.name}: failed: {error}")
            return True

    def _do(self, member: Member, communicator: Communicator, pace: "_Pace") -> bool:
        """Do a member, unless it is finished; return False if the worker was asked to stop."""
        log = MemberLog(lambda text: self.tell(f"  {member.name}: {text}"))
        start = time.monotonic()
        try:
            if member.reason:  # another worker has tried it
                return True
            config = member.configuration(self.file)
            state = state_of(member, config)
            if state in (MemberState.FINISHED, MemberState.STOPPED):
                return True
            ending = _run(self.file, member, state, communicator, log)
        except (HybridNBodyError, MemoryError) as error:
            note_failure(member, str(error))
            mark_as_ended(member, "failed")
            self.tell(f"{pace.count()} {member.name}: failed: {error}")
            return True
        except KeyboardInterrupt:  # at once: while it was set up, or by a second one in its steps
            return False
        return self._ended(member, ending, time.monotonic() - start, pace)

    def _ended(self, member: Member, ending: Ending, seconds: float, pace: "_Pace") -> bool:
        """Tell how a run ended; return False if the worker was asked to stop.

        Such a request ends all runs; whoever waits is told of it once.
        """
        if ending.outcome == SIGNALLED:
            return False
        how = ending.line.partition(";")[0]
        if ending.outcome == TIME_LIMIT:
            self.tell(f"  {member.name}: {how}")
            return True
        mark_as_ended(member, how)
        taken = duration(seconds) if seconds > 10 else f"{seconds:.2g} s"
        self.tell(f"{pace.count()} {member.name}: {how.split()[0]} in {taken}{pace.left()}")
        return True


def _run(
    file: str, member: Member, state: MemberState, communicator: Communicator, log: "MemberLog"
) -> Ending:
    """Begin a run or continue it; return how it ended."""
    mark_as_ended(member, "")  # not yet
    started = time.monotonic()
    if state is MemberState.BEGUN:
        return resume(member.folder, [], communicator, started, log)
    settings = [*member.settings, f"output.directory={member.folder}"]
    return run(file, settings, True, communicator, started, log)


def note_failure(member: Member, reason: str) -> None:
    """Write down why a member failed, where the table finds it."""
    with suppress(OSError):  # a full disk is no reason to leave the others
        member.folder.mkdir(parents=True, exist_ok=True)
        (member.folder / FAILED).write_text(" ".join(reason.split()) + "\n", encoding="utf-8")


def mark_as_ended(member: Member, how: str) -> None:
    """Write down how a member ended, which other workers count; empty if it has not."""
    with suppress(OSError):
        (member.folder / CLAIM).write_text(how, encoding="utf-8")


@contextmanager
def claimed(folder: Path, is_own: bool) -> Iterator[bool]:
    """Hold the claim to a member during the block; the value says whether it was free.

    The system gives up the claim of a process that is killed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / CLAIM, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise FileError(f"{folder}: {error.strerror or error}") from error
    try:
        yield _locked(descriptor, is_own)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, is_own: bool) -> bool:
    """Lock a file; where the file system has no locks, each worker takes a share."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return is_own
    return True


class MemberLog(Log):
    """The log of a run that is one of many: all in its file, little on the terminal.

    Parameters
    ----------
    tell : callable
        Takes the progress of a run that takes long.
    """

    def __init__(self, tell: Tell) -> None:
        super().__init__(Console(file=open(os.devnull, "w")))  # noqa: SIM115
        self.tell = tell
        self.started = time.monotonic()

    def say(self, text: str) -> None:
        """Write `text` to the file, and tell of steps after a while."""
        if text.startswith("step ") and time.monotonic() - self.started > PATIENCE:
            self.tell(text)
        self.note(text)

    def close(self) -> None:
        """Close what stands for a terminal, and the file; raises as `Log.close`."""
        if self.console is not None:
            self.console.file.close()
        super().close()


class _Pace:
    """Counts the members that have ended, by whatever worker, and guesses how long the rest takes.

    Parameters
    ----------
    members : sequence of Member
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self.started = time.monotonic()
        self._others = members  # that had not ended yet
        self.first = self._ended()
        self.ended = self.first

    def _ended(self) -> int:
        """Return how many members have ended: a file of each of the others tells."""
        self._others = [member for member in self._others if not member.ended]
        return len(self.members) - len(self._others)

    def count(self) -> str:
        """Return how many members have ended, of how many."""
        self.ended = self._ended()
        return f"[{self.ended}/{len(self.members)}]"

    def left(self) -> str:
        """Return the time left in words, when they were last counted."""
        ended = self.ended
        rest = len(self.members) - ended
        if not rest or ended <= self.first:
            return ""
        seconds = (time.monotonic() - self.started) / (ended - self.first) * rest
        return f"; about {duration(seconds)} left"
