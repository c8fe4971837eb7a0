"""Which transport a run takes, and the warning where a faster one could not be started."""

import time

import numpy as np
import pytest
from support.ranks import on_threads
from support.transports import GpuStandIn, NcclStandIn

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.transport import choice, nccl
from hybrid_nbody.parallel.transport.choice import choose_transport

BOTH, HOST, ALL = ("nccl", "host"), ("host",), ("nccl", "cuda-mpi", "host")


@pytest.fixture(autouse=True)
def aware(monkeypatch):
    """What the MPI library says of itself."""
    answers = {"cuda": False}
    monkeypatch.setattr(choice, "cuda_aware", lambda: answers["cuda"])
    return answers


def choose(asked, offers, gpus_shared=False, backend=GpuStandIn):
    """Return the transport on ranks whose backends make `offers`; all ranks have the same."""
    transports = on_threads(
        len(offers),
        lambda rank: choose_transport(asked, backend(offers[rank.rank]), rank, gpus_shared),
    )
    assert len({(transport.name, transport.warning) for transport in transports}) == 1
    return transports[0]


@pytest.mark.parametrize(
    ("asked", "offers", "gpus_shared", "library", "chosen"),
    [
        ("auto", [BOTH, BOTH], False, False, "nccl"),
        ("auto", [BOTH, BOTH], True, False, "host"),
        ("auto", [BOTH, HOST], False, False, "host"),
        ("auto", [BOTH], False, False, "host"),  # alone: nothing to carry
        ("auto", [ALL], False, True, "host"),
        ("auto", [ALL, ALL], False, True, "nccl"),
        ("auto", [ALL, ALL], True, True, "cuda-mpi"),
        ("auto", [ALL, ("cuda-mpi", "host")], False, True, "cuda-mpi"),
        ("auto", [ALL, ("cuda-mpi", "host")], False, False, "host"),
        ("auto", [ALL, HOST], False, True, "host"),
        ("host", [BOTH, BOTH], False, False, "host"),
        ("nccl", [BOTH, BOTH], False, False, "nccl"),
        ("cuda-mpi", [ALL, ALL], False, True, "cuda-mpi"),
    ],
)
def test_auto_takes_the_fastest_that_every_rank_can_use(
    aware, asked, offers, gpus_shared, library, chosen
):
    aware["cuda"] = library
    transport = choose(asked, offers, gpus_shared)
    assert (transport.name, transport.warning) == (chosen, "")


@pytest.mark.parametrize(
    ("asked", "offers", "gpus_shared", "reason"),
    [
        ("nccl", [BOTH, BOTH], True, "two ranks share a GPU"),
        ("nccl", [BOTH, HOST], False, "not every rank's backend offers it (GPU 0, stand-in)"),
        ("nccl", [HOST], False, "not every rank's backend offers it (GPU 0, stand-in)"),
        ("cuda-mpi", [ALL, HOST], False, "not every rank's backend offers it (GPU 0, stand-in)"),
        (
            "cuda-mpi",
            [ALL, ALL],
            False,
            "the MPI library does not say that it takes GPU arrays (see hybrid-nbody doctor)",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(asked, offers, gpus_shared, reason):
    with pytest.raises(InputError) as caught:
        choose(asked, offers, gpus_shared)
    assert (
        str(caught.value)
        == f"compute.transport: {asked} cannot be used: {reason}; use auto or host"
    )


@pytest.mark.mpi(min_size=2)
def test_a_library_that_one_rank_finds_unaware_is_used_by_none(communicator, aware):
    aware["cuda"] = communicator.rank == 0
    assert (
        choose_transport("auto", GpuStandIn(("cuda-mpi", "host")), communicator, False).name
        == "host"
    )


@pytest.mark.mpi
def test_one_rank_without_it_refuses_it_on_all(communicator):
    last = communicator.rank == communicator.size - 1
    with pytest.raises(InputError, match="not every rank's backend offers it") as caught:
        choose_transport(
            "nccl", GpuStandIn(HOST if last else BOTH), communicator, gpus_shared=False
        )
    assert caught.value.shared


# ---- NCCL that does not start --------------------------------------------------------------------


class FailingNccl(NcclStandIn):
    """An NCCL that cannot be started: by the root, or by one rank when all join."""

    where, problem = 1, RuntimeError("no route to the other GPUs")

    def get_unique_id(self):
        if self.where is None:
            raise self.problem
        return super().get_unique_id()

    def NcclCommunicator(self, size, identifier, rank):  # noqa: N802 - CuPy's name
        if rank == self.where:
            raise self.problem
        return super().NcclCommunicator(size, identifier, rank)


class FailingAtTheRoot(FailingNccl):
    """The root finds no NCCL."""

    where, problem = None, OSError("libnccl.so.2 cannot be opened")


class Silent(FailingNccl):
    """One rank fails, and the others wait for it."""

    def NcclCommunicator(self, size, identifier, rank):  # noqa: N802 - CuPy's name
        if rank != self.where:
            time.sleep(1)
        return super().NcclCommunicator(size, identifier, rank)


def gpu_with(nccl_stand_in):
    """Return how to make a GPU with another NCCL."""

    def make(transports):
        backend = GpuStandIn(transports)
        backend.nccl = nccl_stand_in(backend.calls)
        return backend

    return make


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        (FailingNccl, "rank 1: RuntimeError: no route to the other GPUs"),
        (FailingAtTheRoot, "rank 0: OSError: libnccl.so.2 cannot be opened"),
    ],
)
@pytest.mark.parametrize(("library", "instead"), [(False, "host"), (True, "cuda-mpi")])
def test_where_nccl_fails_on_one_rank_all_take_the_next_transport_and_say_so(
    aware, backend, reason, library, instead
):
    aware["cuda"] = library
    transport = choose("auto", [ALL, ALL, ALL], backend=gpu_with(backend))
    assert transport.name == instead
    assert (
        transport.warning
        == f"transport nccl could not be started ({reason}); {instead} is used instead"
    )


@pytest.mark.parametrize("backend", [FailingNccl, FailingAtTheRoot])
def test_nccl_that_was_asked_for_and_fails_is_an_error_with_the_reason(backend):
    with pytest.raises(
        InputError, match=r"compute.transport: nccl cannot be used: rank \d: .*; use auto or host"
    ):
        choose("nccl", [BOTH, BOTH], backend=gpu_with(backend))


def test_ranks_do_not_wait_for_ever_for_one_that_failed(monkeypatch):
    monkeypatch.setattr(nccl, "JOIN_SECONDS", 0.05)
    transport = choose("auto", [BOTH, BOTH], backend=gpu_with(Silent))
    assert transport.name == "host"
    assert "rank 0: TimeoutError: no answer within 0.05 s" in transport.warning


@pytest.mark.mpi
def test_rows_travel_over_the_host_after_a_failure(communicator):
    """With real messages between ranks."""

    class Broken(CpuBackend):
        transports = ("nccl", "host")
        nccl = FailingNccl([])

    transport = choose_transport("auto", Broken(1), communicator, gpus_shared=False)
    assert transport.name == "host"
    assert ("could not be started" in transport.warning) == (communicator.size > 1)
    largest = np.array([communicator.rank])
    transport.maximum(largest)
    assert largest[0] == communicator.size - 1
