"""The GPU backend: CuPy arrays, CUDA kernels compiled at start, one stream, captured graphs.

CuPy is imported when a GPU is first asked for, so that a machine without it runs everything else.
"""

from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import InputError

REMEDY = (
    "use compute.backend: cpu, or install the extra cuda12 or cuda13 beside an NVIDIA driver "
    "(hybrid-nbody doctor says more)"
)


FLUSH_DENORMALS = ("-ftz=true",)
"""In float32: without it every reciprocal square root costs extra instructions."""


def compile_options(defines: dict[str, str | int], options: tuple[str, ...] = FLUSH_DENORMALS) -> tuple[str, ...]:
    """Return NVRTC's options for a kernel file with the given macros."""
    return ("-std=c++17", *options, *(f"-D{name}={value}" for name, value in sorted(defines.items())))


def visible_gpus() -> list[str]:
    """Return the names of the GPUs that this process can use.

    Raises
    ------
    InputError
        If there is none, saying why and what to do.
    """
    try:
        import cupy
    except ImportError as error:
        raise InputError(f"no GPU can be used: CuPy is not installed ({error}); {REMEDY}") from error
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
        names = [runtime.getDeviceProperties(index)["name"].decode() for index in range(count)]
    except runtime.CUDARuntimeError as error:
        raise InputError(f"no GPU can be used: {error}; {REMEDY}") from error
    if not names:
        raise InputError(f"no GPU can be used: CUDA sees none (CUDA_VISIBLE_DEVICES hides them?); {REMEDY}")
    return names


class GpuBackend(Backend):
    """One GPU of one rank.

    Parameters
    ----------
    device : int
        Index among the GPUs that this process can see.

    Raises
    ------
    InputError
        If no usable GPU is there.
    """

    kind = "gpu"

    def __init__(self, device: int = 0):
        self.model = visible_gpus()[device]
        import cupy

        self.xp = self.cupy = cupy
        self.device = device
        self.identity = cupy.cuda.runtime.deviceGetPCIBusId(device)
        cupy.cuda.Device(device).use()
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self._staging = {}
        self._nccl = _nccl_module()
        self.transports = ("nccl", "host") if self._nccl else ("host",)

    @property
    def description(self) -> str:
        """The device in a few words."""
        return f"GPU {self.device}, {self.model}"

    def upload(self, host):
        """Return a copy of `host` on the GPU."""
        return self.cupy.array(np.ascontiguousarray(host))

    def download(self, array):
        """Return a NumPy copy of `array` (a NumPy array is copied, too)."""
        return self.cupy.asnumpy(array) if isinstance(array, self.cupy.ndarray) else array.copy()

    @contextmanager
    def on_host(self, array, own):
        """Stage the rows `own` down and, on exit, the whole array up, through pinned memory that is kept."""
        staged = self._pinned(array)
        array[own].get(out=staged[own], stream=self.stream)
        self.stream.synchronize()
        yield staged
        array.set(staged, stream=self.stream)

    @contextmanager
    def to_host(self, rows):
        """Lend a copy in pinned memory that is kept."""
        staged = self._pinned(rows)
        rows.get(out=staged, stream=self.stream)
        self.stream.synchronize()
        yield staged

    @contextmanager
    def from_host(self, rows):
        """Lend pinned memory that is kept, and upload it on exit."""
        staged = self._pinned(rows)
        yield staged
        rows.set(staged, stream=self.stream)

    def _pinned(self, array):
        key = (array.data.ptr, array.shape, array.dtype.str)
        if key not in self._staging:
            memory = self.cupy.cuda.alloc_pinned_memory(max(array.nbytes, 1))
            self._staging[key] = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
        return self._staging[key]

    def synchronize(self):
        """Wait until the stream is empty."""
        self.stream.synchronize()

    def mark(self):
        """Record an event on the stream."""
        event = self.cupy.cuda.Event()
        event.record(self.stream)
        return event

    def elapsed(self, start, end):
        """Return the seconds between two events."""
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, end) * 1e-3

    def compile(
        self,
        source: Path,
        defines: dict[str, str | int],
        options: tuple[str, ...] = FLUSH_DENORMALS,
        cooperative: bool = False,
    ):
        """Compile a ``.cu`` file for this GPU and return its module; CuPy caches the result on disk.

        The blocks of a `cooperative` module's kernels all run at once, and may wait for each other.
        """
        words = compile_options(defines, options)
        return self.cupy.RawModule(code=source.read_text(), options=words, enable_cooperative_groups=cooperative)

    def facts(self) -> dict[str, str | int]:
        """Return what figures measured on this GPU depend on, and the limits of its kernels."""
        runtime = self.cupy.cuda.runtime
        properties = runtime.getDeviceProperties(self.device)
        return {
            "gpu": self.model,
            "compute_capability": f"{properties['major']}.{properties['minor']}",
            "multiprocessors": properties["multiProcessorCount"],
            "threads_per_block_limit": properties["maxThreadsPerBlock"],
            "cooperative_launch": properties["cooperativeLaunch"],
            "registers_per_block_limit": properties["regsPerBlock"],
            "shared_memory_per_block_limit": properties["sharedMemPerBlockOptin"],
            "gpu_memory_bytes": properties["totalGlobalMem"],
            "cuda_driver": runtime.driverGetVersion(),
            "cuda_runtime": runtime.runtimeGetVersion(),
            "cupy": self.cupy.__version__,
        }

    def free_memory(self) -> int:
        """Return the bytes of memory that are free on this GPU."""
        return self.cupy.cuda.runtime.memGetInfo()[0]

    def capture(self, action):
        """Return a function that replays on the stream, as one launch, what `action` queues there."""
        self.stream.begin_capture()
        try:
            action()
        finally:
            graph = self.stream.end_capture()
        return lambda: graph.launch(self.stream)

    def recorded(self, action):
        """See `Backend`; the first call does the work directly, so that all kernels are loaded."""
        return _Recorded(self, action)

    def nccl_identifier(self):
        """Return an identifier of a new group of GPUs, for the root to hand to all ranks."""
        return self._nccl.get_unique_id()

    def nccl_group(self, size: int, identifier, rank: int) -> "NcclGroup":
        """Join a group of `size` GPUs as member `rank`; every member calls together."""
        return NcclGroup(self._nccl, self._nccl.NcclCommunicator(size, identifier, rank), self.stream)


def _nccl_module():
    """Return CuPy's NCCL, or None where its library is not installed."""
    from cupy.cuda import nccl

    return nccl if nccl.available else None


class _Recorded:
    """Work that is captured at its second call."""

    def __init__(self, backend, action):
        self.backend, self.action, self.calls, self.replay = backend, action, 0, None

    def __call__(self):
        self.calls += 1
        if self.calls == 1:
            self.action()
            return
        if self.replay is None:
            self.replay = self.backend.capture(self.action)
        self.replay()


class NcclGroup:
    """The GPUs of all ranks as NCCL sees them; every operation is queued on this rank's stream."""

    def __init__(self, nccl, communicator, stream):
        self.nccl, self.communicator, self.stream = nccl, communicator, stream

    def all_gather(self, array, start: int, size: int) -> None:
        """Gather equal pieces of `array` in place; this rank's piece is `size` bytes from byte `start` on."""
        base = array.data.ptr
        self.communicator.allGather(base + start, base, size, self.nccl.NCCL_CHAR, self.stream.ptr)

    def broadcast_each(self, array, pieces) -> None:
        """Let each rank r broadcast the piece ``pieces[r] = (start, size)``, in bytes, of its `array`."""
        self.nccl.groupStart()
        for root, (start, size) in enumerate(pieces):
            if size:
                pointer = array.data.ptr + start
                self.communicator.broadcast(pointer, pointer, size, self.nccl.NCCL_CHAR, root, self.stream.ptr)
        self.nccl.groupEnd()

    def send_and_receive(self, sends, receives) -> None:
        """Send rows to ranks and receive others, all at once; lists of (rank, array)."""
        nccl = self.nccl
        nccl.groupStart()
        for rank, rows in sends:
            self.communicator.send(rows.data.ptr, rows.nbytes, nccl.NCCL_CHAR, rank, self.stream.ptr)
        for rank, rows in receives:
            self.communicator.recv(rows.data.ptr, rows.nbytes, nccl.NCCL_CHAR, rank, self.stream.ptr)
        nccl.groupEnd()

    def maximum(self, array) -> None:
        """Replace every element of `array` by its largest value over the ranks."""
        kinds = {"f": self.nccl.NCCL_FLOAT, "d": self.nccl.NCCL_DOUBLE, "i": self.nccl.NCCL_INT}
        pointer = array.data.ptr
        self.communicator.allReduce(
            pointer, pointer, array.size, kinds[array.dtype.char], self.nccl.NCCL_MAX, self.stream.ptr
        )
