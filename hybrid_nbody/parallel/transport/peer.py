"""Memory of other ranks' GPUs on the same node, for kernels that write into it.

It is mapped by CUDA's interprocess memory handles.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from hybrid_nbody.backends.base import Array
from hybrid_nbody.parallel.communicator import Communicator

T = TypeVar("T")

LIBRARY = "libcuda.so.1"
"""The driver, which knows to which allocation an address belongs."""

PROBE_BYTES = 1 << 12
"""Size of the array with which ranks try whether they can reach each other's memory."""

Location = tuple[bytes, int]
"""CUDA's handle of an allocation, and the offset of an array in it."""


class PeerMemory:
    """Arrays of the GPUs of all ranks, as this rank's kernels see them.

    Parameters
    ----------
    backend : GpuBackend
        This rank's GPU.
    communicator : Communicator
        Every method is collective.
    """

    def __init__(self, backend: Any, communicator: Communicator):
        self.backend = backend
        self.communicator = communicator
        self.runtime = backend.runtime
        self.driver = ctypes.CDLL(LIBRARY)
        self.opened: dict[bytes, int] = {}

    def addresses(self, array: Array) -> list[int]:
        """Return the addresses of all ranks' arrays that correspond to `array`, in this process.

        Each array must live as long as its address is used.
        """
        return self.map(array, self.communicator.gather(self.location(array)))

    def location(self, array: Array) -> Location:
        """Return what others need to reach `array`.

        CuPy hands out parts of allocations; CUDA has handles of whole allocations alone.
        """
        base = ctypes.c_uint64()
        size = ctypes.c_size_t()
        pointer = array.data.ptr
        code = self.driver.cuMemGetAddressRange_v2(
            ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer)
        )
        if code != 0:
            raise OSError(f"CUDA does not know the allocation of {pointer:#x} (error {code})")
        return self.runtime.ipcGetMemHandle(base.value), pointer - base.value

    def map(self, array: Array, locations: Sequence[Location]) -> list[int]:
        """Return the addresses, in this process, of this rank's own `array` and of the others."""
        rank = self.communicator.rank
        return [
            array.data.ptr if other == rank else self._open(*location)
            for other, location in enumerate(locations)
        ]

    def _open(self, handle: bytes, offset: int) -> int:
        """Return the address of a location; an allocation can be opened once."""
        if handle not in self.opened:
            self.opened[handle] = self.runtime.ipcOpenMemHandle(handle)
        return self.opened[handle] + offset

    def close(self) -> None:
        """Let go of the memory of other ranks, which may free it from here on."""
        self.backend.synchronize()
        for base in self.opened.values():
            self.runtime.ipcCloseMemHandle(base)
        self.opened.clear()
        self.communicator.barrier()


def peer_memory(backend: Any, communicator: Communicator) -> PeerMemory | None:
    """Return the memory of the GPUs of all ranks, each of which has its own; all call together.

    None, on every rank, where one of them cannot reach another's: on several nodes, or where the
    system forbids it.
    """
    if communicator.any(communicator.on_several_nodes):
        return None
    refusals = (OSError, backend.runtime.CUDARuntimeError)
    memory = _attempt(lambda: PeerMemory(backend, communicator), refusals)
    probe = backend.zeros(PROBE_BYTES, "u1")
    own = None if memory is None else _attempt(partial(memory.location, probe), refusals)
    locations = communicator.gather(own)
    found = [location for location in locations if location is not None]
    if memory is None or len(found) < len(locations):
        return None
    reached = _attempt(partial(memory.map, probe, found), refusals)
    if communicator.any(reached is None):
        memory.close()  # what some ranks have opened
        return None
    return memory


def _attempt(action: Callable[[], T], refusals: tuple[type[Exception], ...]) -> T | None:
    """Return what `action` returns, or None if it raises one of `refusals`.

    They are those of the driver's library, which may be missing, and of CUDA.
    """
    try:
        return action()
    except refusals:
        return None
