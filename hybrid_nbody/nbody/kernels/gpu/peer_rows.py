"""Rows that the GPUs of one host share in each other's memory (``peer_rows.cu``)."""

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.launch import FLUSH_DENORMALS, CudaModule, checksum
from hybrid_nbody.nbody.kernels.gpu.kernels import THREADS
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport import peer_barrier
from hybrid_nbody.parallel.transport.peer_barrier import Addresses, PeerBarrier

if TYPE_CHECKING:
    from hybrid_nbody.backends.gpu import GpuBackend

SOURCE = Path(__file__).with_name("peer_rows.cu")
OPTIONS = (*FLUSH_DENORMALS, f"-I{peer_barrier.FOLDER}")

KERNELS = ("barrier", "push_rows")
"""They are loaded before any rank waits for another one: CUDA may load a kernel only when the GPU
is idle."""

PUSH_THREADS = 264 * THREADS
"""Threads that write rows to other GPUs."""

FORCE_SECONDS = 3600.0
"""Time that a GPU waits for another one, whose share of a force may take much longer: a direct sum
over 2^24 bodies takes more than a minute."""

WHAT = "the sum of forces over all ranks"
"""What ranks wait for each other in, for messages."""


def defines(ranks: int) -> dict[str, int]:
    """Return the macros that compile ``peer_rows.cu`` for a number of ranks."""
    return {
        "THREADS": THREADS,
        "RANKS": ranks,
        "HEADERS": checksum(peer_barrier.HEADERS),
    }


class PeerRows:
    """The rows of bodies of all GPUs of a host; every method is collective.

    Parameters
    ----------
    backend : GpuBackend
        This rank's GPU.
    memory : Addresses
        The memory of all ranks' GPUs.
    partition : Partition
        The bodies of all ranks.
    rank : int
        This rank.

    Attributes
    ----------
    ranks : int
        How many there are.
    own : slice
        This rank's bodies.
    barrier : PeerBarrier
        In which GPUs wait for each other.
    """

    def __init__(
        self, backend: "GpuBackend", memory: Addresses, partition: Partition, rank: int
    ) -> None:
        self.backend = backend
        self.memory = memory
        self.partition = partition
        self.rank = rank
        self.ranks = partition.size
        self.own = partition.share(rank)
        self.module = CudaModule(backend, SOURCE, defines(self.ranks), OPTIONS)
        self.module.load(*KERNELS)
        self.barrier = PeerBarrier(backend, memory, rank, self.ranks, WHAT, FORCE_SECONDS)
        self._found: dict[Hashable, Array] = {}

    def wait(self) -> None:
        """Let what the device does next wait for the devices of all ranks."""
        self.module.launch("barrier", THREADS, THREADS, self.barrier.argument)

    def push(self, rows: Array) -> None:
        """Fill the rows of all ranks in `rows`, (N, k), of which this rank's are valid."""
        columns = rows.shape[1]
        first = np.int64(self.own.start * columns)
        size = np.int64((self.own.stop - self.own.start) * columns)
        where = (np.int32(self.rank), first, size, self.addresses(rows))
        self.module.launch("push_rows", PUSH_THREADS, THREADS, *where, self.barrier.argument)

    def addresses(self, array: Array, key: Hashable = None) -> Array:
        """Return where each rank has an array, (S,), on the device.

        Parameters
        ----------
        array : array
            It stays where it is as long as it is used.
        key : hashable, optional
            By which it is known once all have told of it: new on all ranks or on none. Default: the
            place of the array.
        """
        known = array.data.ptr if key is None else key
        if known not in self._found:
            addresses = self.memory.addresses(array)
            self._found[known] = self.backend.upload(np.array(addresses, "u8"))
        return self._found[known]
