"""Starting the driver of NVIDIA GPUs beside Python's imports.

The driver takes a tenth of a second to start, and a context on a GPU as much again; neither needs
Python. Neither may run beside the start of MPI: one reads the environment while the other writes
it, which ended one start of forty.
"""

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path

NVIDIA_DEVICE = Path("/dev/nvidiactl")
"""There where an NVIDIA driver is; without it, CuPy would be imported for nothing."""

DRIVER = "libcuda.so.1"


def has_nvidia_driver() -> bool:
    """Return whether this machine may have a GPU of NVIDIA's."""
    return NVIDIA_DEVICE.exists()


def waking_gpu() -> "WakingGpu | None":
    """Return the driver on its way; None where there is none."""
    return WakingGpu() if has_nvidia_driver() else None


class WakingGpu:
    """A GPU's driver on its way; its errors are left to those who use the GPU later.

    The driver starts in a thread at once.
    """

    def __init__(self) -> None:
        self._driver: ctypes.CDLL | None = None
        self._gpus = 0
        self._thread = _started(self._start_driver)

    def wait(self) -> None:
        """Wait for what was begun."""
        self._thread.join()

    def make_context(self) -> None:
        """Begin with a context, which CuPy finds and uses.

        Nothing is done where the process sees several GPUs: on which it computes is not known yet.
        """
        if self._gpus == 1:
            self._thread = _started(self._make_context)

    def _start_driver(self) -> None:
        try:
            driver = ctypes.CDLL(DRIVER)
        except OSError:
            return
        number = ctypes.c_int()
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(number)) == 0:
            self._driver = driver
            self._gpus = number.value

    def _make_context(self) -> None:
        """Make the primary context of the first GPU, which stays until the process ends."""
        assert self._driver is not None
        device = ctypes.c_int()
        context = ctypes.c_void_p()
        if self._driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def _started(work: Callable[[], None]) -> threading.Thread:
    """Return a thread that has begun with some work."""
    thread = threading.Thread(target=work, name="GPU driver")
    thread.start()
    return thread
