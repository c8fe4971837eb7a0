"""Waiting for messages without taking a core from those who compute.

MPI's own waits spin. Where ranks outnumber cores, as on a laptop, that keeps the rank that is waited for from running.
"""

import os
import time

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
