"""The GPU backend: CuPy arrays, CUDA kernels compiled at start, streams, captured graphs.

CuPy is imported when a GPU is first asked for, so that a machine without it runs everything else.
"""

import hashlib
import math
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.backends.base import Array, Backend, HostWait, Mark, Shape
from hybrid_nbody.backends.caches import cupy_cache, replace_unwritable_cache
from hybrid_nbody.backends.finite import FiniteLook, first_bad
from hybrid_nbody.backends.gpu_copies import Copies, in_one_piece, untimed_mark
from hybrid_nbody.backends.launch import FLUSH_DENORMALS, Macros, compile_options, with_macros
from hybrid_nbody.backends.staging import Staging
from hybrid_nbody.downloads import Download
from hybrid_nbody.errors import InputError

REMEDY = (
    "use compute.backend: cpu, or install the extra cuda12 or cuda13 beside an NVIDIA driver "
    "(hybrid-nbody doctor says more)"
)

COMPILERS = 8
"""Sources that are compiled at the same time at most."""

MESSAGE_PRIORITY = -5
"""Priority of the stream of messages, the highest that GPUs know: beside long kernels, its kernels
get the next free multiprocessor."""


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
    """Return the PCI addresses of the visible GPUs, in the order of `visible_gpus`; raise alike.

    It tells the GPUs of a node apart, whatever numbers ranks see them under.
    """
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

    name = "gpu"
    shares_host_memory = False
    compiles_for_sizes = True
    runs_ahead = True
    message_cells = 1 << 22

    def __init__(self, device: int = 0):
        self.model = visible_gpus()[device]
        replace_unwritable_cache("CUPY_CACHE_DIR", cupy_cache())
        import cupy

        self.xp = self.cupy = cupy
        self.device = device
        self.identity = cupy.cuda.runtime.deviceGetPCIBusId(device)
        cupy.cuda.Device(device).use()
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.copies = cupy.cuda.Stream(non_blocking=True)
        self.downloads = cupy.cuda.Stream(non_blocking=True)  # steps never wait for these
        self._staging = Staging(self)
        self._copies_to_host = Copies(self)
        self._compilers = ThreadPoolExecutor(COMPILERS)
        self._compiling: list[Future[Any]] = []
        self.nccl = _nccl_module()
        self.host_wait = HostWait()
        self.transports = ("nccl", "cuda-mpi", "host") if self.nccl else ("cuda-mpi", "host")

    def use(self) -> None:
        """Let CuPy queue on this device and its stream."""
        self.cupy.cuda.Device(self.device).use()
        self.stream.use()

    @property
    def description(self) -> str:
        """Return the device in a few words."""
        return f"GPU {self.device}, {self.model}"

    def upload(self, host: Array) -> Array:
        """Return a copy of `host` on the GPU."""
        return self.cupy.array(np.ascontiguousarray(host))

    def download(self, array: Array) -> Array:
        """Return a NumPy copy of `array`; a NumPy array is copied, too."""
        if not isinstance(array, self.cupy.ndarray):
            return array.copy()
        rows = in_one_piece(array)
        with self.host_wait:
            return self.cupy.asnumpy(rows)

    def copy(self, source: Array, target: Array) -> None:
        """See `Backend`; CuPy's assignment takes ten times as long to queue."""
        target.data.copy_from_device_async(source.data, source.nbytes, self.stream)

    def start_download(self, *parts: Array) -> Download:
        """Copy within the GPU now, and to the host on a stream of its own when it is asked for.

        Where the GPU has no memory for that, the copy is made at once.
        """
        if not isinstance(parts[0], self.cupy.ndarray):
            return super().start_download(*parts)
        try:
            return self._copies_to_host.start(*parts)
        except self.cupy.cuda.memory.OutOfMemoryError:
            return super().start_download(*parts)

    def hand_over(self, array: Array) -> Download:
        """See `Backend`; it is copied when it is asked for, from what is queued so far."""
        return self._copies_to_host.hand_over(array)

    def start_look(self, *arrays: Array) -> Callable[[], list[int]]:
        """See `Backend`; arrays on the GPU are looked at there, in one launch."""
        on_gpu = [k for k, array in enumerate(arrays) if isinstance(array, self.cupy.ndarray)]
        look = self._finite.begin([in_one_piece(arrays[k]) for k in on_gpu])
        found = {k: first_bad(arrays[k]) for k in range(len(arrays)) if k not in on_gpu}

        def all_found() -> list[int]:
            answers = found | dict(zip(on_gpu, look(), strict=True))
            return [answers[k] for k in range(len(arrays))]

        return all_found

    @cached_property
    def _finite(self) -> FiniteLook:
        return FiniteLook(self)

    @contextmanager
    def on_host(self, array: Array, own: slice) -> Iterator[Array]:
        """Copy the rows `own` to pinned memory and, on exit, the whole array back from it."""
        staged = self._staging.memory_for(array)
        self._staging.download(array[own], staged[own])
        yield staged
        self._staging.upload(staged, array)

    @contextmanager
    def to_host(self, rows: Array) -> Iterator[Array]:
        """Lend a copy in pinned memory."""
        staged = self._staging.memory_for(rows)
        self._staging.download(rows, staged)
        yield staged

    @contextmanager
    def from_host(self, rows: Array) -> Iterator[Array]:
        """Lend pinned memory, and upload it on exit."""
        staged = self._staging.memory_for(rows)
        yield staged
        self._staging.upload(staged, rows)

    def pinned(self, shape: Shape, dtype: DTypeLike) -> Array:
        """Return an array in pinned memory, of no defined values."""
        size = shape if isinstance(shape, int) else math.prod(shape)
        dtype = np.dtype(dtype)
        memory = self.cupy.cuda.alloc_pinned_memory(max(size * dtype.itemsize, 1))
        return np.frombuffer(memory, dtype, size).reshape(shape)

    def texture(self, array: Array) -> Any:
        """Return a texture that reads the float32 numbers of an array one by one."""
        runtime = self.cupy.cuda.runtime
        texture = self.cupy.cuda.texture
        channel = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
        memory = {"arr": array, "chDesc": channel, "sizeInBytes": array.nbytes}
        resource = texture.ResourceDescriptor(runtime.cudaResourceTypeLinear, **memory)
        return texture.TextureObject(resource, texture.TextureDescriptor())

    def fetch(self, array: Array, host: Array) -> Mark:
        """Copy on a stream of its own, after all work that is queued so far."""
        self.copies.wait_event(untimed_mark(self, self.stream))
        array.get(out=host, stream=self.copies, blocking=False)
        return untimed_mark(self, self.copies)

    def send(self, host: Array, array: Array) -> None:
        """Copy on the backend's stream."""
        array.set(host, stream=self.stream)

    def wait(self, mark: Mark) -> None:
        """Wait for an event."""
        with self.host_wait:
            mark.synchronize()

    def synchronize(self) -> None:
        """Wait until the stream is empty."""
        with self.host_wait:
            self.stream.synchronize()

    def mark(self) -> Mark:
        """Record an event on the stream."""
        event = self.cupy.cuda.Event()
        event.record(self.stream)
        return event

    def elapsed(self, start: Mark, end: Mark) -> float:
        """Return the seconds between two events."""
        self.wait(end)
        return float(self.cupy.cuda.get_elapsed_time(start, end)) * 1e-3

    def compile(
        self,
        source: Path | str,
        defines: Macros,
        options: tuple[str, ...] = FLUSH_DENORMALS,
        cooperative: bool = False,
    ) -> Any:
        """Begin to compile CUDA for this GPU, in a thread; see `CudaModule`.

        CuPy caches the machine code on disk. What is there is loaded when it is first asked for: to
        read several files in threads takes longer than one after another.
        """
        text = source if isinstance(source, str) else source.read_text()
        code = with_macros(text, defines)
        words = compile_options(options)
        module = self.cupy.RawModule(
            code=code, options=words, enable_cooperative_groups=cooperative
        )
        sign = self._sign(code, words)
        if sign.exists():
            return module
        self._compiling.append(self._compilers.submit(self._load, module, sign))
        return _CompiledModule(self._compiling[-1])

    def _sign(self, code: str, words: tuple[str, ...]) -> Path:
        """Return the file which says that a source has been compiled before."""
        versions = (self.cupy.__version__, str(self.cupy.cuda.runtime.runtimeGetVersion()))
        text = "\0".join((code, *words, self.model, *versions))
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        return Path(cupy_cache(), f"{digest}.hybrid_nbody")

    def _load(self, module: Any, sign: Path) -> Any:
        """Return a module of CuPy once it is compiled and loaded."""
        self.cupy.cuda.Device(self.device).use()
        module.compile()
        with suppress(OSError):  # it is compiled in a thread again, then
            sign.touch()
        return module

    def finish_compiling(self) -> None:
        """Wait for the threads that compile."""
        for compiled in self._compiling:
            compiled.result()
        self._compiling.clear()

    def facts(self) -> dict[str, Any]:
        """Return the properties of this GPU on which timings and the choice of kernels depend."""
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
            "shared_memory_per_multiprocessor": properties["sharedMemPerMultiprocessor"],
            "gpu_memory_bytes": properties["totalGlobalMem"],
            "cuda_driver": runtime.driverGetVersion(),
            "cuda_runtime": runtime.runtimeGetVersion(),
            "cupy": self.cupy.__version__,
        }

    def free_memory(self) -> int:
        """Return the bytes of memory that are free on this GPU."""
        return int(self.cupy.cuda.runtime.memGetInfo()[0])

    def capture(self, action: Callable[[], None]) -> Callable[[], None]:
        """See `Backend`; the work is what `action` queues."""
        self.stream.begin_capture()
        try:
            action()
        finally:
            graph = self.stream.end_capture()
        return lambda: graph.launch(self.stream)

    def place(self, array: Array) -> Hashable:
        """Return the address and the shape."""
        return array.data.ptr, array.shape

    def recorded(self, action: Callable[[], None]) -> Callable[[], None]:
        """See `Backend`; the first call does the work directly, so that all kernels are loaded."""
        return _Recorded(self, action)

    @property
    def runtime(self) -> Any:
        """Return CuPy's bindings of the CUDA runtime, to map memory of other GPUs."""
        return self.cupy.cuda.runtime

    def message_stream(self) -> Any:
        """Return a new stream for messages, beside the backend's own and served before it."""
        return self.cupy.cuda.Stream(non_blocking=True, priority=MESSAGE_PRIORITY)


def _nccl_module() -> Any:
    """Return CuPy's bindings of NCCL, or None where its library is not installed."""
    from cupy.cuda import nccl

    return nccl if nccl.available else None


class _CompiledModule:
    """A module of CuPy that a thread compiles: what it is asked for waits until then."""

    def __init__(self, module: "Future[Any]"):
        self.module = module

    def get_function(self, name: str) -> Any:
        """Return a kernel."""
        return self.module.result().get_function(name)

    def get_global(self, name: str) -> Any:
        """Return the address of a variable."""
        return self.module.result().get_global(name)


class _Recorded:
    """Work that is captured at its second call."""

    def __init__(self, backend: GpuBackend, action: Callable[[], None]):
        self.backend = backend
        self.action = action
        self.calls = 0
        self.replay: Callable[[], None] | None = None

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == 1:
            self.action()
            return
        if self.replay is None:
            self.replay = self.backend.capture(self.action)
        self.replay()
