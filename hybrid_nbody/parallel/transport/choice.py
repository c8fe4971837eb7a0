"""The choice of a transport: the fastest that the GPUs, NCCL and the MPI library allow."""

from typing import Protocol

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import Communicator, cuda_aware
from hybrid_nbody.parallel.transport.base import Transport
from hybrid_nbody.parallel.transport.cuda_mpi import CudaMpiTransport
from hybrid_nbody.parallel.transport.host import HostTransport
from hybrid_nbody.parallel.transport.nccl import NcclTransport


class MakeTransport(Protocol):
    """Starts a transport on all ranks."""

    def __call__(self, backend: Backend, communicator: Communicator) -> Transport:
        """Return the transport; `InputError` on every rank if one of them cannot start it."""


TRANSPORTS: dict[str, MakeTransport] = {
    NcclTransport.name: NcclTransport,
    CudaMpiTransport.name: CudaMpiTransport,
    HostTransport.name: HostTransport,
}
"""The fastest first."""


def choose_transport(
    asked: str, backend: Backend, communicator: Communicator, gpus_shared: bool
) -> Transport:
    """Return the transport `asked` for, or for ``auto`` the fastest one that this run can use.

    Parameters
    ----------
    asked : {"auto", "host", "nccl", "cuda-mpi"}
        The configuration's choice.
    backend : Backend
        This rank's backend; all ranks' backends must offer a transport for it to be usable.
    communicator : Communicator
        Every rank calls together.
    gpus_shared : bool
        Whether two ranks share a GPU, which NCCL forbids.

    Raises
    ------
    InputError
        On every rank, if the transport asked for cannot be used, with the reason.
    """
    obstacles = _obstacles(backend, communicator, gpus_shared)
    if asked == "auto":
        usable = [name for name in TRANSPORTS if name not in obstacles]
        names = usable if communicator.size > 1 else [HostTransport.name]
        return _first_that_starts(names, backend, communicator)
    try:
        if asked in obstacles:
            raise InputError(obstacles[asked])
        return TRANSPORTS[asked](backend.holder, communicator)
    except InputError as error:
        text = f"compute.transport: {asked} cannot be used: {error}; use auto or host"
        raise InputError(text).on_all_ranks() from error


def _obstacles(backend: Backend, communicator: Communicator, gpus_shared: bool) -> dict[str, str]:
    """Return why transports cannot be used, by name; all ranks find the same names."""
    offered = set.intersection(*(set(names) for names in communicator.gather(backend.transports)))
    aware = all(communicator.gather(CudaMpiTransport.name in offered and cuda_aware()))
    missing = f"not every rank's backend offers it ({backend.description})"
    found = {name: missing for name in TRANSPORTS if name not in offered}
    if gpus_shared:
        found.setdefault(NcclTransport.name, "two ranks share a GPU")
    if not aware:
        found.setdefault(
            CudaMpiTransport.name,
            "the MPI library does not say that it takes GPU arrays (see hybrid-nbody doctor)",
        )
    return found


def _first_that_starts(names: list[str], backend: Backend, communicator: Communicator) -> Transport:
    """Return the first of the transports that all ranks can start; it warns of those before."""
    warning = ""
    for name in names:
        try:
            transport = TRANSPORTS[name](backend.holder, communicator)
        except InputError as error:
            warning += f"transport {name} could not be started ({error}); "
            continue
        transport.warning = warning and f"{warning}{name} is used instead"
        return transport
    raise AssertionError("host is always among the names")
