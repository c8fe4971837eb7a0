"""Which device each rank computes on."""

import os
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.gpu import GpuBackend, gpu_identities
from hybrid_nbody.backends.hybrid import HybridBackend
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
    kinds : tuple of str
        The kind of every rank's backend.
    """

    backend: Backend
    reason: str
    table: list[tuple[int, str, str]]
    shared_gpus: bool
    kinds: tuple[str, ...]


def place(asked, threads: str | int, communicator, cpu_share="auto") -> Placement:
    """Give every rank its device: a GPU of its own or its turn of one, or a share of the node's cores, or both.

    Parameters
    ----------
    asked : {"auto", "cpu", "gpu", "hybrid"} or sequence of str
        For all ranks, or for each. ``auto`` gives the GPUs of a node to its first ranks, one each,
        and CPU threads to the others.
    threads : "auto" or int
        CPU threads of a rank.
    communicator : Communicator
        Every rank calls together.
    cpu_share : "auto" or float
        See `HybridBackend`.

    Raises
    ------
    InputError
        On every rank, if a rank cannot have what was asked for, saying why.
    """
    kinds, reason = _kinds(asked, communicator)
    kind = kinds[communicator.rank]
    threads = _threads(threads, kind, communicator)
    gpu = _turn(
        communicator.together(lambda: gpu_identities() if kind in ON_GPUS else []), communicator
    ).gpu
    backend = communicator.together(lambda: BUILDERS[kind](gpu, threads, cpu_share))
    table = communicator.gather((communicator.rank, platform.node(), backend.description))
    identities = communicator.gather((kind in ON_GPUS, communicator.node_number, backend.identity))
    users = Counter(identity for identity in identities if identity[0])
    return Placement(
        backend, reason, table, any(number > 1 for number in users.values()), tuple(kinds)
    )


def _kinds(asked, communicator):
    """Return the kind of backend of each rank, and why."""
    if asked == "auto":
        return _best_kinds(communicator)
    kinds = [asked] * communicator.size if isinstance(asked, str) else list(asked)
    return kinds, f"backend {asked if isinstance(asked, str) else ', '.join(kinds)}, as asked for"


def _best_kinds(communicator):
    """Return GPUs for the ranks that can have one to themselves, CPUs for the others."""
    seen = []
    problem = ""
    try:
        seen = gpu_identities()
    except InputError as error:
        problem = str(error).split(";")[0]
    alone = _turn(seen, communicator).alone
    problems = communicator.gather(
        "" if alone else problem or "no GPU is left for the other ranks of its node"
    )
    kinds = ["cpu" if problem else "gpu" for problem in problems]
    why = next((problem for problem in problems if problem), "")
    if not why:
        return kinds, "backend auto chose gpu: every rank sees one"
    cpus = kinds.count("cpu")
    ranks = (
        "cpu"
        if cpus == len(kinds)
        else f"gpu on {len(kinds) - cpus} and cpu on {cpus} of {len(kinds)} ranks"
    )
    return kinds, f"backend auto chose {ranks}: {why}"


class Turn(NamedTuple):
    """The GPU of a rank, by its number among those that it sees (None if it sees none), and whether it is its alone."""

    gpu: int | None
    alone: bool


def _turn(seen, communicator) -> Turn:
    """Return this rank's GPU of those that it sees; all ranks of a node call together."""
    return turns(communicator.node.allgather(seen))[communicator.local_rank]


def turns(seen: Sequence[Sequence[str]]) -> list[Turn]:
    """Return the GPU of each rank of a node: of those that it sees, the first with the fewest users before it.

    Parameters
    ----------
    seen : sequence of sequences of str
        The identities of the GPUs that each rank sees.
    """
    users = Counter()
    result = []
    for mine in seen:
        gpu = min(range(len(mine)), key=lambda number: users[mine[number]], default=None)
        result.append(Turn(gpu, gpu is not None and not users[mine[gpu]]))
        users.update(mine[gpu : gpu + 1] if gpu is not None else ())
    return result


def _threads(asked, kind, communicator):
    """Return the CPU threads of this rank; beside those of a hybrid one, a core feeds its GPU."""
    free = free_cores(communicator, kind)
    if asked != "auto":
        return asked
    return max(1, free - 1) if kind == "hybrid" else free


ON_GPUS = ("gpu", "hybrid")

BUILDERS = {
    "cpu": lambda gpu, threads, cpu_share: CpuBackend(threads),
    "gpu": lambda gpu, threads, cpu_share: GpuBackend(gpu),
    "hybrid": lambda gpu, threads, cpu_share: HybridBackend(
        GpuBackend(gpu), CpuBackend(threads), cpu_share
    ),
}


def free_cores(communicator, kind: str = "cpu") -> int:
    """Return the share of the cores it may run on that a rank computes with; all ranks of a node call together.

    Ranks pinned to cores of their own do not share them. One that computes on a GPU alone takes one
    core.
    """
    cores = os.sched_getaffinity(0)
    kinds = [
        other for other, theirs in communicator.node.allgather((kind, cores)) if cores & theirs
    ]
    feeding = kinds.count("gpu")
    return 1 if kind == "gpu" else max(1, (len(cores) - feeding) // (len(kinds) - feeding))
