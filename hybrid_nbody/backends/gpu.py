"""The GPU backend: CuPy arrays, CUDA kernels compiled at start, streams, captured graphs.

CuPy is imported when a GPU is first asked for, so that a machine without it runs everything else.
"""

import ctypes
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.gpu_peers import PeerMemory, peer_memory
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
        self._nccl = _nccl_module()
        self.transports = ("nccl", "cuda-mpi", "host") if self._nccl else ("cuda-mpi", "host")

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
        self.stream.synchronize()  # an upload from there may be on its way
        yield staged
        rows.set(staged, stream=self.stream)

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
        mark.synchronize()

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

    def nccl_identifier(self):
        """Return an identifier of a new group of GPUs, for the root to hand to all ranks."""
        return self._nccl.get_unique_id()

    def nccl_group(self, size: int, identifier, rank: int) -> "NcclGroup":
        """Join a group of `size` GPUs as member `rank`; every member calls together, in any of its threads.

        Connections are made with the first operation, which is done here: who returns can reach all
        others.
        """
        with self.cupy.cuda.Device(self.device), self.stream:  # a new thread knows neither
            side = self.cupy.cuda.Stream(non_blocking=True, priority=FIRST)
            communicator = self._nccl.NcclCommunicator(size, identifier, rank)
            never_end(communicator)
            group = NcclGroup(self._nccl, communicator, self.stream, side)
            group.maximum(self.zeros(1, "i4"))
            self.synchronize()
        return group

    def peer_memory(self, communicator) -> PeerMemory | None:
        """Return the memory of the GPUs of all ranks, if kernels of each can write into that of the others."""
        return peer_memory(self, communicator)


def never_end(communicator) -> None:
    """Leave a communicator to the end of the process.

    Python would end it with its last name, or among the last objects; NCCL then waits, perhaps for
    ever, for the other ranks to do the same, and for captured graphs to be destroyed.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(communicator))


def _nccl_module():
    """Return CuPy's NCCL, or None where its library is not installed."""
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


class NcclGroup:
    """The GPUs of all ranks as NCCL sees them.

    Collective operations are queued on this rank's stream, messages between two ranks on one beside
    it.
    """

    def __init__(self, nccl, communicator, stream, side):
        self.nccl = nccl
        self.communicator = communicator
        self.stream = stream
        self.side = side
        self.events = []

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
                self.communicator.broadcast(
                    pointer, pointer, size, self.nccl.NCCL_CHAR, root, self.stream.ptr
                )
        self.nccl.groupEnd()

    def reduce_scatter(self, array, own) -> None:
        """Fill `own` with this rank's one of the equal pieces of the sum over all ranks of `array`, of float64."""
        pointers = (array.data.ptr, own.data.ptr)
        kind = (self.nccl.NCCL_DOUBLE, self.nccl.NCCL_SUM)
        self.communicator.reduceScatter(*pointers, own.size, *kind, self.stream.ptr)

    def reduce_each(self, array, own, counts, starts) -> None:
        """Do the same with pieces of `counts` numbers from `starts` on, one a rank."""
        kind = self.nccl.NCCL_DOUBLE, self.nccl.NCCL_SUM
        self.nccl.groupStart()
        for root, (count, start) in enumerate(zip(counts, starts, strict=True)):
            if count:
                piece = array.data.ptr + start * array.itemsize
                self.communicator.reduce(piece, own.data.ptr, count, *kind, root, self.stream.ptr)
        self.nccl.groupEnd()

    def begin(self, sends, receives) -> "_Sent":
        """Send rows to ranks and receive others, all at once, after what is queued so far; lists of (rank, array)."""
        event = self.stream.record(self.events.pop() if self.events else None)
        self.side.wait_event(event)
        self._send_and_receive(sends, receives, self.side)
        return _Sent(self, self.side.record(event))

    def trade(self, sends, receives) -> None:
        """Do the same on the stream itself: nothing is to be done meanwhile."""
        self._send_and_receive(sends, receives, self.stream)

    def _send_and_receive(self, sends, receives, stream):
        nccl = self.nccl
        nccl.groupStart()
        for rank, rows in sends:
            self.communicator.send(rows.data.ptr, rows.nbytes, nccl.NCCL_CHAR, rank, stream.ptr)
        for rank, rows in receives:
            self.communicator.recv(rows.data.ptr, rows.nbytes, nccl.NCCL_CHAR, rank, stream.ptr)
        nccl.groupEnd()

    def maximum(self, array) -> None:
        """Replace every element of `array` by its largest value over the ranks."""
        kinds = {"f": self.nccl.NCCL_FLOAT, "d": self.nccl.NCCL_DOUBLE, "i": self.nccl.NCCL_INT}
        pointer = array.data.ptr
        self.communicator.allReduce(
            pointer,
            pointer,
            array.size,
            kinds[array.dtype.char],
            self.nccl.NCCL_MAX,
            self.stream.ptr,
        )


class _Sent:
    """Messages that are queued beside the stream of a group."""

    def __init__(self, group, sent):
        self.group = group
        self.sent = sent

    def finish(self) -> None:
        """Let what is queued on the stream from here on wait for the messages."""
        self.group.stream.wait_event(self.sent)
        self.group.events.append(self.sent)  # to be used again
