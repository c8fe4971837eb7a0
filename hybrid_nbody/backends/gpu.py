"""The GPU backend: CuPy arrays, CUDA kernels compiled at start, streams, captured graphs.

CuPy is imported when a GPU is first asked for, so that a machine without it runs everything else.
"""

from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hybrid_nbody.backends.base import Backend, HostWait
from hybrid_nbody.backends.launch import FLUSH_DENORMALS, Macros, compile_options
from hybrid_nbody.errors import InputError

REMEDY = (
    "use compute.backend: cpu, or install the extra cuda12 or cuda13 beside an NVIDIA driver "
    "(hybrid-nbody doctor says more)"
)


FIRST = -5
"""Priority of the stream of messages, the highest that GPUs know: beside long kernels, it gets the
next free room."""


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
        raise InputError(
            f"no GPU can be used: CuPy is not installed ({error}); {REMEDY}"
        ) from error
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
        names = [runtime.getDeviceProperties(index)["name"].decode() for index in range(count)]
    except runtime.CUDARuntimeError as error:
        raise InputError(f"no GPU can be used: {error}; {REMEDY}") from error
    if not names:
        raise InputError(
            f"no GPU can be used: CUDA sees none (CUDA_VISIBLE_DEVICES hides them?); {REMEDY}"
        )
    return names


def gpu_identities() -> list[str]:
    """Return what tells each visible GPU from the others of its node, in the order of `visible_gpus`; raise alike."""
    number = len(visible_gpus())
    from cupy.cuda import runtime

    return [runtime.deviceGetPCIBusId(device) for device in range(number)]


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
        self.copies = cupy.cuda.Stream(non_blocking=True)
        self._staging = {}
        self.nccl = _nccl_module()
        self.host_wait = HostWait()
        self.transports = ("nccl", "cuda-mpi", "host") if self.nccl else ("cuda-mpi", "host")

    def use(self):
        """Let CuPy queue on this device and its stream."""
        self.cupy.cuda.Device(self.device).use()
        self.stream.use()

    @property
    def description(self) -> str:
        """The device in a few words."""
        return f"GPU {self.device}, {self.model}"

    def upload(self, host):
        """Return a copy of `host` on the GPU."""
        return self.cupy.array(np.ascontiguousarray(host))

    def download(self, array):
        """Return a NumPy copy of `array` (a NumPy array is copied, too)."""
        if not isinstance(array, self.cupy.ndarray):
            return array.copy()
        with self.host_wait:
            return self.cupy.asnumpy(array)

    @contextmanager
    def on_host(self, array, own):
        """Stage the rows `own` down and, on exit, the whole array up, through pinned memory that is kept."""
        staged = self._pinned(array)
        self._copy_down(array[own], staged[own])
        yield staged
        array.set(staged, stream=self.stream)

    @contextmanager
    def to_host(self, rows):
        """Lend a copy in pinned memory that is kept."""
        staged = self._pinned(rows)
        self._copy_down(rows, staged)
        yield staged

    @contextmanager
    def from_host(self, rows):
        """Lend pinned memory that is kept, and upload it on exit."""
        staged = self._pinned(rows)
        self.synchronize()  # an upload from there may be on its way
        yield staged
        rows.set(staged, stream=self.stream)

    def _copy_down(self, rows, staged):
        """Copy rows to pinned memory, and wait until they are there."""
        with self.host_wait:
            rows.get(out=staged, stream=self.stream)
            self.stream.synchronize()

    def _pinned(self, array):
        key = (array.data.ptr, array.shape, array.dtype.str)
        if key not in self._staging:
            self._staging[key] = self.pinned(array.shape, array.dtype)
        return self._staging[key]

    def pinned(self, shape, dtype):
        """Return an array in pinned memory, of no defined values."""
        size = int(np.prod(shape, dtype=int))
        dtype = np.dtype(dtype)
        memory = self.cupy.cuda.alloc_pinned_memory(max(size * dtype.itemsize, 1))
        return np.frombuffer(memory, dtype, size).reshape(shape)

    def fetch(self, array, host):
        """Copy on a stream of its own, after what was queued before."""
        self.copies.wait_event(self.mark())
        array.get(out=host, stream=self.copies, blocking=False)
        done = self.cupy.cuda.Event()
        done.record(self.copies)
        return done

    def send(self, host, array):
        """Copy on the backend's stream."""
        array.set(host, stream=self.stream)

    def wait(self, mark):
        """Wait for an event."""
        with self.host_wait:
            mark.synchronize()

    def synchronize(self):
        """Wait until the stream is empty."""
        with self.host_wait:
            self.stream.synchronize()

    def mark(self):
        """Record an event on the stream."""
        event = self.cupy.cuda.Event()
        event.record(self.stream)
        return event

    def elapsed(self, start, end):
        """Return the seconds between two events."""
        self.wait(end)
        return self.cupy.cuda.get_elapsed_time(start, end) * 1e-3

    def compile(
        self,
        source: Path,
        defines: Macros,
        options: tuple[str, ...] = FLUSH_DENORMALS,
        cooperative: bool = False,
    ):
        """Compile a ``.cu`` file for this GPU and return its module; CuPy caches the result on disk.

        The blocks of a `cooperative` module's kernels all run at once, and may wait for each other.
        """
        words = compile_options(defines, options)
        return self.cupy.RawModule(
            code=source.read_text(), options=words, enable_cooperative_groups=cooperative
        )

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

    @property
    def runtime(self):
        """CuPy's bindings of the CUDA runtime, for the transports that map memory of other GPUs."""
        return self.cupy.cuda.runtime

    def message_stream(self):
        """Return a new stream for messages, beside the backend's own and served before it."""
        return self.cupy.cuda.Stream(non_blocking=True, priority=FIRST)


def _nccl_module():
    """Return CuPy's bindings of NCCL, or None where its library is not installed."""
    from cupy.cuda import nccl

    return nccl if nccl.available else None


class _Recorded:
    """Work that is captured at its second call."""

    def __init__(self, backend, action):
        self.backend = backend
        self.action = action
        self.calls = 0
        self.replay = None

    def __call__(self):
        self.calls += 1
        if self.calls == 1:
            self.action()
            return
        if self.replay is None:
            self.replay = self.backend.capture(self.action)
        self.replay()
