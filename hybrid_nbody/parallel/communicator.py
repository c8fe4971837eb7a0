"""The ranks of a run: a thin layer over MPI that makes them fail and decide together."""

import ctypes
import os
import pickle
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import HybridNBodyError, InputError
from hybrid_nbody.parallel.agreement import Agreement
from hybrid_nbody.parallel.alone import starting_alone
from hybrid_nbody.parallel.attempts import Tried, error_of
from hybrid_nbody.parallel.launchers import LAUNCHERS, OPEN_MPI, refuse_several_without_mpi
from hybrid_nbody.parallel.one_rank import CONSTANTS, OneRank
from hybrid_nbody.parallel.starting import watched_start
from hybrid_nbody.parallel.waiting import share_cores, wait

T = TypeVar("T")

COMPILE_SECONDS = 600.0
"""Seconds that one rank may compile kernels before the others warn: slow machines take minutes."""

MESSAGE_SECONDS = 0.5
"""Time that mpirun is given to pass a last message on before it ends the ranks."""

SMALL_MESSAGE = 1024
"""Bytes of the first message of a broadcast."""


class Communicator:
    """All ranks of a run.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm or OneRank
        An initialised communicator.

    Attributes
    ----------
    mpi : module
        ``mpi4py.MPI``, or what stands in for it.
    rank, size : int
        This rank and the number of ranks.
    local_rank, local_size : int
        The same among the ranks that share this node's memory.
    node_number : int
        This node; nodes are counted by their first ranks.
    """

    def __init__(self, comm: Any):
        self.comm = comm
        self.mpi = _constants(comm)
        self.rank: int = comm.rank
        self.size: int = comm.size
        self.node = comm.Split_type(self.mpi.COMM_TYPE_SHARED, key=comm.rank)
        self.local_rank: int = self.node.rank
        self.local_size: int = self.node.size
        firsts = comm.allgather(self.node.bcast(comm.rank))
        self.node_number = sorted(set(firsts)).index(firsts[comm.rank])
        cores = set().union(*self.node.allgather(os.sched_getaffinity(0)))
        share_cores(self.local_size, len(cores))

    @cached_property
    def agreement(self) -> Agreement | None:
        """Return what finds out whether all ranks make the same call; None for one rank.

        All ranks ask for it together.
        """
        return Agreement(self.comm) if self.size > 1 else None

    @property
    def on_several_nodes(self) -> bool:
        """Return whether the ranks do not share the memory of one node."""
        return self.local_size < self.size

    @property
    def is_root(self) -> bool:
        """Return whether this rank decides, prints and writes."""
        return self.rank == 0

    def broadcast(self, value: T) -> T:
        """Return the root's `value` on every rank; a small one takes a single message."""
        if self.size == 1:
            return value
        data = pickle.dumps(value) if self.is_root else b""
        first = np.zeros(SMALL_MESSAGE, np.uint8)
        first[:8] = np.frombuffer(len(data).to_bytes(8, "little"), np.uint8)
        first[8 : 8 + len(data)] = np.frombuffer(data, np.uint8)[: SMALL_MESSAGE - 8]
        wait(self.comm.Ibcast(first), "a broadcast", 0)
        missing = int.from_bytes(first[:8].tobytes(), "little") - (SMALL_MESSAGE - 8)
        if missing <= 0:
            return cast(T, pickle.loads(first[8:].tobytes()))
        rest = np.empty(missing, np.uint8)
        rest[:] = np.frombuffer(data, np.uint8)[SMALL_MESSAGE - 8 :] if self.is_root else 0
        wait(self.comm.Ibcast(rest), "a broadcast", 0)
        return cast(T, pickle.loads(first[8:].tobytes() + rest.tobytes()))

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, on every rank."""
        if self.size == 1:
            return [value]
        data = np.frombuffer(pickle.dumps(value), np.uint8)
        lengths = self.gather_integers(len(data))[:, 0]
        ends = np.cumsum(lengths)
        parts = np.empty(ends[-1], np.uint8)
        received = [parts, (lengths, ends - lengths)]
        wait(self.comm.Iallgatherv(data, received), "a gather")
        return [pickle.loads(part.tobytes()) for part in np.split(parts, ends[:-1])]

    def gather_integers(self, *values: int) -> NDArray[Any]:
        """Return the (size, len(values)) integers of all ranks, on every rank."""
        return self.gather_alike(np.array(values, dtype=np.int64))

    def gather_alike(self, mine: NDArray[Any]) -> NDArray[Any]:
        """Return the arrays of all ranks, of one shape and type, on every rank: one message."""
        result = np.empty((self.size, *mine.shape), mine.dtype)
        wait(self.comm.Iallgather(mine, result), "a gather")
        return result

    def concatenate(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of all ranks, in the order of ranks, on every rank; counts may differ."""
        return np.concatenate(self.gather(rows))

    def any(self, flag: bool) -> bool:
        """Return whether `flag` is true on any rank."""
        return bool(self.maximum(np.array(flag, dtype=np.int64))) if self.size > 1 else flag

    def maximum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the element-wise largest values over the ranks."""
        return self._reduce(values, self.mpi.MAX)

    def minimum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the element-wise smallest values over the ranks."""
        return self._reduce(values, self.mpi.MIN)

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the element-wise sums over the ranks.

        Only sums of integers are the same for any number of ranks.
        """
        return self._reduce(values, self.mpi.SUM)

    def _reduce(self, values: NDArray[Any], operation: Any) -> NDArray[Any]:
        values = np.asarray(values, order="C")
        if self.size == 1:
            return values.copy()
        result = np.empty_like(values)
        wait(self.comm.Iallreduce(values, result, op=operation), "a reduction")
        return result

    def barrier(self) -> None:
        """Wait for all ranks."""
        wait(self.comm.Ibarrier(), "a barrier")

    def first_on_node(
        self, action: Callable[[Backend], object], devices: Sequence[Backend]
    ) -> None:
        """Run `action` on each of the rank's devices, on one rank of each node before the others.

        The first rank with a backend fills its cache of compiled kernels. Raises as `together`.
        """
        backends = self.node.allgather([device.name for device in devices])
        cached = {backend for earlier in backends[: self.local_rank] for backend in earlier}

        def act(on_cached: bool) -> None:
            for device in devices:
                if (device.name in cached) == on_cached:
                    action(device)

        error = error_of(lambda: act(False))
        what = "the compilation of kernels on one rank of each node"
        wait(self.node.Ibarrier(), what, patience=COMPILE_SECONDS)
        self._raise_first(error or error_of(lambda: act(True)))

    def on_root(self, action: Callable[[], T]) -> T:
        """Return everywhere what `action` returns on the root; raises as `only_on_root`."""
        tried = Tried.of(action) if self.is_root else Tried()
        return cast(T, self._told(tried, tried.result))

    def only_on_root(self, action: Callable[[], T]) -> T | None:
        """Run `action` on the root alone and return its result there, None elsewhere.

        Raises
        ------
        HybridNBodyError
            The root's error, on every rank, so that all end together. An error of another type
            stays what it is on the root.
        """
        tried = Tried.of(action) if self.is_root else Tried()
        self._told(tried, None)
        return cast("T | None", tried.result)

    def _told(self, tried: Tried, result: Any) -> Any:
        """Return the root's `result` on every rank, or raise what it has caught."""
        error, result = self.broadcast((tried.error, result))
        if tried.foreign is not None:
            raise tried.foreign
        if error is not None:
            raise error.on_all_ranks()
        return result

    def together(self, action: Callable[[], T]) -> T:
        """Run `action` on every rank; if it fails on any, all raise the first failing rank's error.

        Raises
        ------
        HybridNBodyError
            With the rank in its message where there are several.
        """
        results: list[T] = []
        self._raise_first(error_of(lambda: results.append(action())))
        return results[0]

    def _raise_first(self, error: HybridNBodyError | None) -> None:
        """Raise the error of the first rank that has one, on all of them."""
        if not self.any(error is not None):
            return
        for rank, failure in enumerate(self.gather(error)):
            if failure is not None:
                named = type(failure)(f"rank {rank}: {failure}") if self.size > 1 else failure
                raise named.on_all_ranks()


def _constants(comm: Any) -> Any:
    """Return the module to whose communicators `comm` belongs."""
    if isinstance(comm, OneRank):
        return CONSTANTS
    from mpi4py import MPI

    return MPI


def start_mpi(
    meanwhile: AbstractContextManager[None] | None = None, noted: Callable[[], str] = lambda: ""
) -> Communicator:
    """Initialise MPI and return the communicator of all ranks; of this one where there is no MPI.

    Parameters
    ----------
    meanwhile : context manager, optional
        Entered while MPI is initialised, which takes up to half a second and needs no Python.
    noted : callable, optional
        Returns the name of a signal that asked to stop before, or nothing.

    Raises
    ------
    InputError
        If a launcher has started several ranks and no MPI library is found, or one that the
        launcher does not belong to.
    """
    try:
        MPI = _loaded()
    except (ImportError, RuntimeError) as error:
        refuse_several_without_mpi(error)
        with meanwhile or nullcontext():
            return Communicator(OneRank())
    library = MPI.Get_library_version()
    if "Open MPI" not in library:
        refuse_foreign_launcher(1, library, [OPEN_MPI])  # MPICH would abort in MPI_Init
    # Our own message on a foreign launcher says more than the warnings of mpi4py.
    silence = warnings.catch_warnings(action="ignore", category=RuntimeWarning)
    with silence, starting_alone(), meanwhile or nullcontext():
        if not MPI.Is_initialized():
            with watched_start(noted()):
                _initialize()
    refuse_foreign_launcher(MPI.COMM_WORLD.size, library)
    return _world()


@cache
def _world() -> Communicator:
    """Return all ranks, made once: a program can have some 2000 communicators of MPI, no more."""
    from mpi4py import MPI

    return Communicator(MPI.COMM_WORLD)


def alone() -> Communicator:
    """Return a communicator of this rank alone, once MPI has started."""
    from mpi4py import MPI

    return Communicator(MPI.COMM_SELF)


def _loaded() -> Any:
    """Return the module ``mpi4py.MPI``, with MPI not initialised yet."""
    import mpi4py

    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = True
    from mpi4py import MPI

    return MPI


def _initialize() -> None:
    """Initialise MPI as ``MPI.Init`` does, which would let no other thread run."""
    from mpi4py import MPI  # its module is linked with the library

    if code := ctypes.CDLL(MPI.__file__).MPI_Init(None, None):  # MPI_SUCCESS is 0
        raise MPI.Exception(code)
    for ranks in (MPI.COMM_SELF, MPI.COMM_WORLD):
        ranks.Set_errhandler(MPI.ERRORS_RETURN)


def end_mpi() -> bool:
    """End MPI if it has been initialised and not ended; return whether that was so."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return False
    mpi.Finalize()
    return True


def refuse_foreign_launcher(
    size: int, library: str, launchers: Sequence[tuple[str, str, str]] = LAUNCHERS
) -> None:
    """Refuse to run N copies of a one-rank job under another library's mpirun.

    Parameters
    ----------
    size : int
        Ranks that MPI sees.
    library : str
        What the MPI library says of itself.
    launchers : sequence of (str, str, str)
        Those to look for, as in `LAUNCHERS`.

    Raises
    ------
    InputError
        If a launcher's variables promise more ranks than MPI sees. Only the launcher's rank 0
        carries a message.
    """
    for size_variable, rank_variable, launcher in launchers:
        promised = int(os.environ.get(size_variable) or 1)
        if promised > size:
            if os.environ.get(rank_variable, "0") != "0":
                raise InputError("")
            mpirun = os.path.join(os.path.dirname(sys.executable), "mpirun")
            raise InputError(
                f"{launcher} started {promised} processes, but each sees an MPI world of {size}: "
                f"it belongs to another MPI library than mpi4py's ({_first_words(library)}); "
                f"use the mpirun of that library: {mpirun}"
            )


def _first_words(library: str) -> str:
    return " ".join(library.replace("\0", "").split()[:3]).rstrip(",")


def abort(error: BaseException, code: int) -> NoReturn:
    """Print `error` once with its rank and end all ranks with exit code `code`."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if isinstance(error, HybridNBodyError):
        text = str(error)
    else:
        text = "".join(traceback.format_exception(error)).rstrip()
    where = f" on rank {world.rank}" if world.size > 1 else ""
    print(f"hybrid_nbody: error{where}: {text}", file=sys.stderr, flush=True)
    time.sleep(MESSAGE_SECONDS)
    world.Abort(code)
    os._exit(code)  # MPICH returns where mpirun is ending the ranks already


def library_name() -> str:
    """Return name and version of the MPI library in use."""
    try:
        MPI = _loaded()
    except (ImportError, RuntimeError):
        return "none: one rank, without mpirun"
    return " ".join(MPI.Get_library_version().replace("\0", "").splitlines()[0].split())


def cuda_aware() -> bool:
    """Return whether the MPI library takes GPU arrays, as ``MPIX_Query_cuda_support`` says."""
    try:
        MPI = _loaded()
    except (ImportError, RuntimeError):
        return False
    try:
        return bool(ctypes.CDLL(MPI.__file__).MPIX_Query_cuda_support())
    except AttributeError:
        return False
