"""Waiting for other ranks: without taking a core from those that compute, and never in silence.

MPI's own waits spin. Where ranks outnumber cores, as on a laptop, that keeps the rank that is
waited for from running. A wait that lasts long is reported on stderr with the rank that is waited
for; the run goes on, as that rank may be slow but healthy.
"""

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from hybrid_nbody.backends.base import HostWait
from hybrid_nbody.errors import HybridNBodyError

T = TypeVar("T")

SPINS = 1000
FEW_SPINS = 300
"""Looks at a request before the first nap: where each rank has a core, and where some share one.

Looks of ranks that share a core delay the rank that is waited for, but a nap lasts longer than most
waits. On two cores, 3 and 4 ranks with 20, 100, 400, 1000 looks: tests of steps in 38, 30, 28, 29 s
and 48, 33, 29, 32 s; 4 ranks beside a busy process in 65, 57, 57, 74 s.
"""

NAP_SECONDS = 20e-6
"""Time between two looks."""

WARNING_SECONDS = 60.0
"""A wait that lasts longer is reported, and again each time that it has doubled."""

LOOK_SECONDS = 0.25
"""Time between two looks at why a wait lasts."""


_looks = SPINS


def share_cores(ranks: int, cores: int) -> None:
    """Let waits take little from ranks that compute if `ranks` of this node outnumber its cores."""
    global _looks
    if ranks > cores:
        _looks = FEW_SPINS


class Request(Protocol):
    """An operation of MPI under way."""

    def Test(self) -> bool:
        """Return whether it is complete."""


class LostRankError(HybridNBodyError):
    """Another rank no longer answers: the rank that notices it ends all of them."""


def wait(
    request: Request,
    what: str,
    rank: int | None = None,
    patience: float | None = None,
    look: Callable[[], None] | None = None,
) -> None:
    """Wait for an MPI request: look often at first, then between short naps.

    Parameters
    ----------
    request : Request
        The operation.
    what : str
        The operation in words, for a warning: "a broadcast".
    rank : int, optional
        The rank that is waited for; all other ranks by default.
    patience : float, optional
        Seconds before the first warning, `WARNING_SECONDS` by default; the next ones come after
        twice as long each.
    look : callable, optional
        Called every `LOOK_SECONDS` of a wait; it may raise an error, which ends the wait.
    """
    for _ in range(_looks):
        if request.Test():
            return
        os.sched_yield()
    start = time.monotonic()
    patience = patience or WARNING_SECONDS
    next_look = LOOK_SECONDS
    while not request.Test():
        time.sleep(NAP_SECONDS)
        waited = time.monotonic() - start
        if look and waited > next_look:
            look()
            next_look = waited + LOOK_SECONDS
        if waited > patience:
            warn_of_wait(what, rank, waited)
            patience *= 2


def warn_of_wait(what: str, rank: int | None, seconds: float) -> None:
    """Report on stderr that this rank has been waiting for `rank`, or for all others, in `what`."""
    whom = "the other ranks" if rank is None else f"rank {rank}"
    print(
        f"hybrid_nbody: warning on rank {_own_rank()}: waiting for {whom} in {what} for "
        f"{seconds:.0f} s; if that is longer than a step takes, a rank may have failed: "
        "stop the run and resume it from its last checkpoint",
        file=sys.stderr,
        flush=True,
    )


def _own_rank() -> int:
    from mpi4py import MPI

    return int(MPI.COMM_WORLD.rank)


def lost_rank(rank: int, what: str, seconds: float) -> LostRankError:
    """Return the error of a wait that was given up after `seconds`, to be raised.

    Parameters
    ----------
    rank : int
        The rank that did not answer.
    what : str
        Where it was waited for: "the halo exchange".
    seconds : float
        How long it was waited for.
    """
    return LostRankError(
        f"rank {rank} did not answer in {what} for {seconds:.0f} s: it or its node has failed; "
        "resume the run from its last checkpoint"
    )


class Watchdog:
    """Watches, from a thread of its own, over waits that do not look at the clock themselves.

    The thread ends with the `HostWait` that it watches.

    Parameters
    ----------
    host_wait : HostWait
        Says since when the host has been waiting.
    report : callable
        ``report(seconds)`` is called in the thread when a wait has lasted `WARNING_SECONDS`, and
        again each time that it has doubled.
    """

    def __init__(self, host_wait: HostWait, report: Callable[[float], None]):
        self._host_wait = weakref.ref(host_wait)
        self._report = report
        self._patience = WARNING_SECONDS
        self._interval = WARNING_SECONDS / 4
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        since = None
        patience = self._patience
        while (host_wait := self._host_wait()) is not None:
            begun = host_wait.since  # read once: the wait may end meanwhile
            if begun is None or begun != since:
                since = begun
                patience = self._patience
            elif time.monotonic() - since > patience:
                self._report(time.monotonic() - since)
                patience *= 2
            del host_wait
            time.sleep(self._interval)


def in_time(action: Callable[[], T], seconds: float) -> T:
    """Return what `action` returns; it runs in a thread, which is left behind if it takes too long.

    Raises
    ------
    TimeoutError
        If it has not ended after `seconds`.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(action())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():  # the action's own
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None
