"""Waiting for messages without taking a core from those who compute.

MPI's own waits spin. Where ranks outnumber cores, as on a laptop, that keeps the rank that is
waited for from running.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

SPINS = 1000
NAP_SECONDS = 20e-6


def wait(request) -> None:
    """Wait for an MPI request: look often at first, then between short naps."""
    for _ in range(SPINS):
        if request.Test():
            return
        os.sched_yield()
    while not request.Test():
        time.sleep(NAP_SECONDS)


def in_time(action: Callable[[], T], seconds: float) -> T:
    """Return what `action` returns; it runs in a thread, which is left to itself if it takes too long.

    Raises
    ------
    TimeoutError
        If it has not ended after `seconds`.
    """
    future = Future()

    def run():
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
