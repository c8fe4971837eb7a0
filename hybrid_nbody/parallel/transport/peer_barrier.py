"""A barrier in which the GPUs of ranks wait for each other, and its time limit.

GPUs write signals into each other's memory; their hosts do not wait.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hybrid_nbody.backends.alarm import PeerAlarm
from hybrid_nbody.backends.base import Array
from hybrid_nbody.parallel.waiting import lost_rank

if TYPE_CHECKING:
    from hybrid_nbody.backends.gpu import GpuBackend

FOLDER = Path(__file__).parent
HEADERS = sorted(FOLDER.glob("*.cuh"))
"""What kernels include to reach other GPUs."""

STATE = ("barriers", "blocks_done", "counter", "failed")
"""Words of ``PeerState`` of ``peer_barrier.cuh``, each of 4 bytes."""

BARRIER = np.dtype(
    [
        ("signals", "u8"),
        ("state", "u8"),
        ("missing_rank", "u8"),
        ("limit", "u8"),
        ("rank", "i4"),
        ("ranks", "i4"),
    ]
)
"""``PeerBarrier`` of ``peer_barrier.cuh``."""

PEER_SECONDS = 300.0
"""Time that a GPU waits for another one by default. In a run that goes well they wait for the
slowest rank: at worst for as long as it writes a checkpoint."""


class Addresses(Protocol):
    """The memory of all ranks' GPUs; a `PeerMemory`."""

    def addresses(self, array: Array) -> Sequence[int]:
        """Return where each rank has what this rank has in `array`; collective."""


class PeerBarrier:
    """The barrier of the GPUs of all ranks; they are ready for it when it is made. Collective.

    Parameters
    ----------
    backend : GpuBackend
        This rank's GPU.
    memory : Addresses
        The memory of all ranks' GPUs.
    rank, ranks : int
        This rank, and their number.
    what : str
        What the ranks do together, for the error that names a rank that does not answer.
    seconds : float, optional
        Time that they wait; default `PEER_SECONDS`.

    Attributes
    ----------
    argument : array of one `BARRIER`
        The barrier as an argument of kernels.
    alarm : PeerAlarm
        Is raised on the host if a rank does not answer within that time.
    """

    def __init__(
        self,
        backend: "GpuBackend",
        memory: Addresses,
        rank: int,
        ranks: int,
        what: str,
        seconds: float | None = None,
    ):
        seconds = PEER_SECONDS if seconds is None else seconds
        error = partial(lost_rank, what=what, seconds=seconds)
        self.alarm = PeerAlarm(backend.pinned(1, "i4"), seconds, error)
        backend.host_wait.alarms.append(self.alarm)
        self.signals = backend.zeros(2 * ranks, "u8")
        self.state = backend.zeros(len(STATE), "u4")
        backend.synchronize()  # signals are zero before any rank knows where to write them
        self.addresses = backend.upload(np.array(memory.addresses(self.signals), "u8"))
        self.argument = self._argument(rank, ranks)

    @property
    def counter(self) -> int:
        """Return the address of a word in which kernels count between two barriers."""
        address: int = self.state.data.ptr + 4 * STATE.index("counter")
        return address

    def _argument(self, rank: int, ranks: int) -> np.ndarray:
        """Return the barrier as an argument of kernels."""
        result = np.zeros(1, BARRIER)
        result["signals"] = self.addresses.data.ptr
        result["state"] = self.state.data.ptr
        result["missing_rank"] = self.alarm.address
        result["limit"] = self.alarm.nanoseconds
        result["rank"] = rank
        result["ranks"] = ranks
        return result
