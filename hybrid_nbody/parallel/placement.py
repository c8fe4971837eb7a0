"""The assignment of devices to ranks."""

import os
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cpu import CpuBackend, usable_cores
from hybrid_nbody.backends.gpu import GpuBackend, gpu_identities
from hybrid_nbody.backends.hybrid import HybridBackend
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import Communicator

CpuShare = str | float
"""As in `HybridBackend`: "auto", or a share from 0 to 1."""

ON_GPUS = ("gpu", "hybrid")
"""Backends that compute on a GPU."""


@dataclass(frozen=True)
class Placement:
    """The devices of the ranks.

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
    backends : tuple of str
        The name of every rank's backend.
    oversubscribed : str
        What a person is told of more threads than cores; empty where there are none.
    """

    backend: Backend
    reason: str
    table: list[tuple[int, str, str]]
    shared_gpus: bool
    backends: tuple[str, ...]
    oversubscribed: str = ""


def assign_device(
    asked: str | Sequence[str],
    threads: str | int,
    communicator: Communicator,
    cpu_share: CpuShare = "auto",
) -> Placement:
    """Assign every rank its device: a GPU, a share of the node's cores, or both.

    Parameters
    ----------
    asked : {"auto", "cpu", "gpu", "hybrid"} or sequence of str
        For all ranks, or for each. ``auto`` assigns the GPUs of a node to its first ranks, one
        each, and CPU threads to the others.
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
    backends, reason = _backends(asked, communicator)
    name = backends[communicator.rank]
    number = _threads(threads, name, communicator)
    visible = communicator.together(lambda: gpu_identities() if name in ON_GPUS else [])
    gpu = _own_gpu(visible, communicator).gpu
    taking_turns = _taking_turns(1 if name == "gpu" else number, communicator)

    def cpu() -> CpuBackend:
        makes_way = threads == "auto" and communicator.size == 1 and name == "cpu"
        return CpuBackend(number, makes_way, bool(taking_turns))

    backend = communicator.together(lambda: _make_backend(name, gpu, cpu, cpu_share))
    row = (communicator.rank, platform.node(), backend.description)
    told = communicator.gather((row, taking_turns))
    table = [row for row, _ in told]
    advice = next((text for _, text in told if text), "")
    shared = _are_shared(backend, communicator)
    return Placement(backend, reason, table, shared, tuple(backends), advice)


def _taking_turns(threads: int, communicator: Communicator) -> str:
    """Return in words that several threads of a rank share cores of this node; empty if none do."""
    numbers, cores = _threads_and_cores(threads, communicator)
    if sum(numbers) <= cores or max(numbers) == 1:
        return ""
    return (
        f"{sum(numbers)} threads take turns on the {cores} cores of a node, and wait for each "
        "other: start fewer ranks, or let each have fewer threads (compute.threads)"
    )


def _make_backend(
    name: str, gpu: int | None, cpu: Callable[[], CpuBackend], cpu_share: CpuShare
) -> Backend:
    """Return the backend of a name, for which `cpu` makes the CPU threads."""
    if name == "cpu":
        return cpu()
    if gpu is None:
        raise InputError(f"backend {name}: this rank sees no GPU")
    if name == "gpu":
        return GpuBackend(gpu)
    both = HybridBackend(GpuBackend(gpu), cpu(), cpu_share)
    return cast(Backend, both)  # by delegation to its main device


def _are_shared(backend: Backend, communicator: Communicator) -> bool:
    """Return whether two ranks of a node use one GPU."""
    mine = (backend.name in ON_GPUS, communicator.node_number, backend.identity)
    users = Counter(device for device in communicator.gather(mine) if device[0])
    return any(number > 1 for number in users.values())


def _backends(asked: str | Sequence[str], communicator: Communicator) -> tuple[list[str], str]:
    """Return the name of each rank's backend, and why it was chosen."""
    if asked == "auto":
        return _best_backends(communicator)
    names = [asked] * communicator.size if isinstance(asked, str) else list(asked)
    return names, f"backend {asked if isinstance(asked, str) else ', '.join(names)}, as asked for"


def _best_backends(communicator: Communicator) -> tuple[list[str], str]:
    """Return GPUs for the ranks that can have one to themselves, CPUs for the others."""
    visible: list[str] = []
    problem = "no GPU is left for the other ranks of its node"
    try:
        visible = gpu_identities()
    except InputError as error:
        problem = str(error).split(";")[0]
    alone = _own_gpu(visible, communicator).alone
    problems = communicator.gather("" if alone else problem)
    names = ["cpu" if text else "gpu" for text in problems]
    why = next((text for text in problems if text), "")
    if not why:
        return names, "backend auto chose gpu: every rank sees one"
    cpus = names.count("cpu")
    chosen = "cpu"
    if cpus < len(names):
        chosen = f"gpu on {len(names) - cpus} and cpu on {cpus} of {len(names)} ranks"
    return names, f"backend auto chose {chosen}: {why}"


class GpuChoice(NamedTuple):
    """The GPU of a rank.

    Attributes
    ----------
    gpu : int or None
        Its number among those that the rank sees; None if it sees none.
    alone : bool
        Whether no rank before it has the same.
    """

    gpu: int | None
    alone: bool


def _own_gpu(visible: list[str], communicator: Communicator) -> GpuChoice:
    """Return this rank's GPU of the `visible` ones; all ranks of a node call together."""
    everyone: list[list[str]] = communicator.node.allgather(visible)
    return distribute_gpus(everyone)[communicator.local_rank]


def distribute_gpus(visible: Sequence[Sequence[str]]) -> list[GpuChoice]:
    """Return the GPU of each rank of a node: the first with the fewest users before it.

    Parameters
    ----------
    visible : sequence of sequences of str
        The identities of the GPUs that each rank sees.
    """
    users: Counter[str] = Counter()
    result = []
    for mine in visible:
        gpu = min(range(len(mine)), key=lambda number: users[mine[number]], default=None)
        result.append(GpuChoice(gpu, gpu is not None and not users[mine[gpu]]))
        users.update(mine[gpu : gpu + 1] if gpu is not None else ())
    return result


def _threads(asked: str | int, name: str, communicator: Communicator) -> int:
    """Return the CPU threads of this rank; a hybrid one leaves a core to feed its GPU."""
    free = free_cores(communicator, name)
    if isinstance(asked, int):
        return asked
    return min(max(1, free - 1) if name == "hybrid" else free, usable_cores())


def free_cores(communicator: Communicator, backend: str = "cpu") -> int:
    """Return the share of the allowed cores that a rank computes with.

    All ranks of a node call together. Ranks pinned to cores of their own do not share them. A rank
    that computes on a GPU alone takes one core.
    """
    cores = os.sched_getaffinity(0)
    ranks = communicator.node.allgather((backend, cores))
    sharing = [other for other, theirs in ranks if cores & theirs]
    feeding = sharing.count("gpu")
    if backend == "gpu":
        return 1
    return max(1, (len(cores) - feeding) // (len(sharing) - feeding))


def working_threads(threads: int, communicator: Communicator) -> float:
    """Return the CPU threads of all ranks that work at a time; collective.

    Parameters
    ----------
    threads : int
        Those of this rank. Where a node has fewer cores than threads, they take turns.
    communicator : Communicator
    """
    numbers, cores = _threads_and_cores(threads, communicator)
    share = min(1.0, cores / sum(numbers))
    working: list[float] = communicator.gather(threads * share)
    return sum(working)


def _threads_and_cores(threads: int, communicator: Communicator) -> tuple[list[int], int]:
    """Return the threads of each rank of this node, and how many cores all of them have."""
    here = communicator.node.allgather((threads, os.sched_getaffinity(0)))
    cores = frozenset().union(*(theirs for _, theirs in here))
    return [number for number, _ in here], len(cores)
