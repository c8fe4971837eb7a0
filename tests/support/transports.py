"""Backends that play the part of GPUs, for the tests of what carries rows between ranks."""

from types import SimpleNamespace

import numpy as np

from hybrid_nbody.backends.base import HostWait

SHARES = {
    "equal": lambda size: [1.0] * size,
    "uneven": lambda size: [rank + 0.5 for rank in range(size)],
    "all on the last": lambda size: [0.0] * (size - 1) + [1.0],
    "all on the first": lambda size: [1.0] + [0.0] * (size - 1),
    "every other": lambda size: [float(rank % 2 == 0) for rank in range(size)],
}


def rows_of(number, shape, dtype):
    """Return rows that are all different."""
    return (
        (np.arange(number * int(np.prod(shape, dtype=int))) + 1)
        .reshape(number, *shape)
        .astype(dtype)
    )


LONG = 1 << 18
"""Numbers in a message that no MPI library sends before the other rank asks for it."""


def neighbours(communicator):
    """Return the ranks after and before this one in a ring."""
    return (communicator.rank + 1) % communicator.size, (communicator.rank - 1) % communicator.size


class DeviceArray:
    """Rows of a GPU as NCCL is told of them: an address and sizes.

    Parameters
    ----------
    shape : tuple of int
    dtype : str
    address : int
        Of the first byte.
    """

    def __init__(self, shape, dtype="f8", address=0):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self.size = int(np.prod(shape, dtype=int))
        self.nbytes = self.size * self.itemsize
        self.data = SimpleNamespace(ptr=address)

    def __len__(self):
        return self.shape[0]


class StreamStandIn:
    """A stream that notes what waits for what."""

    def __init__(self, name, calls):
        self.ptr, self.calls = name, calls

    def record(self, event=None):
        self.calls.append(("record", self.ptr))
        return event or f"event of {self.ptr}"

    def wait_event(self, event):
        self.calls.append(("wait", self.ptr, event))


class NcclStandIn:
    """CuPy's module of NCCL, and the communicator that it makes: notes every operation.

    Attributes
    ----------
    failure : Exception or None
        What NCCL knows to have gone wrong with other ranks.
    """

    NCCL_CHAR, NCCL_INT, NCCL_FLOAT, NCCL_DOUBLE = "char", "int", "float", "double"
    NCCL_SUM, NCCL_MAX = "sum", "max"
    failure = None

    def __init__(self, calls):
        self.calls = calls

    def get_unique_id(self):
        return "the root's identifier"

    def NcclCommunicator(self, size, identifier, rank):  # noqa: N802 - CuPy's name
        self.calls.append(("join", size, identifier, rank))
        return self

    def check_async_error(self):
        if self.failure:
            raise self.failure

    def __getattr__(self, operation):
        if operation.startswith("_"):
            raise AttributeError(operation)
        return lambda *arguments: self.calls.append((operation, *arguments))


class CudaError(RuntimeError):
    """An error of the CUDA runtime."""


class GpuStandIn:
    """A backend that says what it offers and notes what is asked of its NCCL."""

    description = "GPU 0, stand-in"
    runtime = SimpleNamespace(CUDARuntimeError=CudaError)

    def __init__(self, transports=("nccl", "host")):
        self.transports = transports
        self.calls = []
        self.nccl = NcclStandIn(self.calls)
        self.stream = StreamStandIn("stream", self.calls)
        self.host_wait = HostWait()

    @property
    def holder(self):
        return self

    def message_stream(self):
        return StreamStandIn("side", self.calls)

    def zeros(self, shape, dtype):
        return DeviceArray((shape,), dtype)

    def use(self):
        """See `Backend`."""

    synchronize = use
