"""Which device each rank computes on."""

import os
import platform
from collections import Counter
from dataclasses import dataclass

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.gpu import GpuBackend, visible_gpus
from hybrid_nbody.errors import InputError


@dataclass(frozen=True)
class Placement:
    """Where the ranks compute.

    Attributes
    ----------
    backend : Backend
        This rank's device.
    reason : str
        Why it was chosen, for the log.
    table : list of (int, str, str)
        Rank, host and device of every rank.
    shared_gpus : bool
        Whether two ranks of a node use one GPU.
    """

    backend: Backend
    reason: str
    table: list[tuple[int, str, str]]
    shared_gpus: bool


def place(asked: str, threads: str | int, communicator) -> Placement:
    """Give every rank its device: GPUs by local rank, else a share of the node's cores.

    Parameters
    ----------
    asked : {"auto", "cpu", "gpu"}
        ``auto`` takes GPUs where every rank sees one.
    threads : "auto" or int
        CPU threads of a rank.
    communicator : Communicator
        Every rank calls together.

    Raises
    ------
    InputError
        On every rank, if a rank cannot have what was asked for, saying why.
    """
    kind, reason = _choose(asked, communicator)
    backend = communicator.together(lambda: BUILDERS[kind](threads, communicator))
    table = communicator.gather((communicator.rank, platform.node(), backend.description))
    devices = Counter(communicator.gather((platform.node(), backend.identity)))
    shared = kind == "gpu" and max(devices.values()) > 1
    return Placement(backend, reason, table, shared)


def _choose(asked, communicator):
    """Return the kind of backend for all ranks, and why."""
    if asked != "auto":
        return asked, f"backend {asked}, as asked for"
    try:
        visible_gpus()
        problem = ""
    except InputError as error:
        problem = str(error).split(";")[0]
    problems = [text for text in communicator.gather(problem) if text]
    if problems:
        return "cpu", f"backend auto chose cpu: {problems[0]}"
    return "gpu", "backend auto chose gpu: every rank sees one"


def _cpu(threads, communicator):
    return CpuBackend(free_cores(communicator) if threads == "auto" else threads)


def _gpu(threads, communicator):
    return GpuBackend(communicator.local_rank % len(visible_gpus()))


BUILDERS = {"cpu": _cpu, "gpu": _gpu}


def free_cores(communicator) -> int:
    """Return this rank's share of the cores it may run on; ranks pinned to cores of their own do not share them."""
    cores = os.sched_getaffinity(0)
    sharing = sum(bool(cores & others) for others in communicator.node.allgather(cores))
    return max(1, len(cores) // sharing)
