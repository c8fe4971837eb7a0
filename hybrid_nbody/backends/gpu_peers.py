"""Memory of other ranks' GPUs on the same node, for kernels that write into it (CUDA's interprocess memory handles)."""

import ctypes

LIBRARY = "libcuda.so.1"
PROBE_BYTES = 1 << 12


class PeerMemory:
    """Arrays of the GPUs of all ranks, as this rank's kernels see them.

    Parameters
    ----------
    backend : GpuBackend
        This rank's GPU.
    communicator : Communicator
        Every method is collective.
    """

    def __init__(self, backend, communicator):
        self.backend = backend
        self.communicator = communicator
        self.runtime = backend.cupy.cuda.runtime
        self.driver = ctypes.CDLL(LIBRARY)
        self.opened = {}

    def addresses(self, array) -> list[int]:
        """Return where the arrays of all ranks lie that stand for this one; each must live as long as they are used."""
        return self.reach(array, self.communicator.gather(self.place(array)))

    def place(self, array) -> tuple[bytes, int]:
        """Return what others need to reach an array: CuPy hands out parts of allocations, CUDA knows these alone."""
        base = ctypes.c_uint64()
        size = ctypes.c_size_t()
        pointer = array.data.ptr
        code = self.driver.cuMemGetAddressRange_v2(
            ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer)
        )
        if code != 0:
            raise OSError(f"CUDA does not know the allocation of {pointer:#x} (error {code})")
        return self.runtime.ipcGetMemHandle(base.value), pointer - base.value

    def reach(self, array, places) -> list[int]:
        """Return where arrays lie for this rank's kernels: its own, and those of other ranks by their places."""
        rank = self.communicator.rank
        return [
            array.data.ptr if other == rank else self._open(*place)
            for other, place in enumerate(places)
        ]

    def _open(self, handle, offset):
        """Return where a place lies; an allocation can be opened once."""
        if handle not in self.opened:
            self.opened[handle] = self.runtime.ipcOpenMemHandle(handle)
        return self.opened[handle] + offset

    def close(self) -> None:
        """Let go of the memory of others, which they may give back from here on; all ranks call together."""
        self.backend.synchronize()
        for base in self.opened.values():
            self.runtime.ipcCloseMemHandle(base)
        self.opened.clear()
        self.communicator.barrier()


def peer_memory(backend, communicator) -> PeerMemory | None:
    """Return the memory of the GPUs of all ranks, each of which has its own.

    None, on every rank, where one of them cannot reach another's: on several nodes, or where the
    system forbids it.
    """
    if communicator.any(communicator.local_size < communicator.size):
        return None
    memory = _attempt(lambda: PeerMemory(backend, communicator))
    probe = backend.zeros(PROBE_BYTES, "u1")
    places = communicator.gather(memory and _attempt(lambda: memory.place(probe)))
    if None in places:
        return None
    reached = _attempt(lambda: memory.reach(probe, places))
    return None if communicator.any(reached is None) else memory


def _attempt(action):
    """Return what `action` returns, or None where a vendor's library raises whatever it may."""
    try:
        return action()
    except Exception:
        return None
