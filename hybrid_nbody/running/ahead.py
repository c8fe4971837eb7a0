"""Imports that every run needs, made while MPI starts."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NVIDIA_DEVICE = Path("/dev/nvidiactl")
"""There where an NVIDIA driver is; without it, CuPy would be imported for nothing."""


@contextmanager
def importing_ahead() -> Iterator[None]:
    """Import what a run needs in a thread beside the block, and end with both done.

    The block must not import modules. What fails here fails again, and is told, where it is used.
    """
    thread = threading.Thread(target=_import, name="imports")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import() -> None:
    with suppress(Exception):
        import hybrid_nbody.running.start  # noqa: F401

        if NVIDIA_DEVICE.exists():
            from hybrid_nbody.backends.gpu import visible_gpus

            visible_gpus()
