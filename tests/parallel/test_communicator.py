"""Ranks decide and fail together: nothing hangs, and every rank raises the same error."""

import os
import pickle
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.ranks import ROOT, run_python

from hybrid_nbody.errors import FileError, HybridNBodyError, InputError, NumericalError
from hybrid_nbody.parallel import communicator as communicators
from hybrid_nbody.parallel.communicator import SMALL_MESSAGE, Communicator, refuse_foreign_launcher


def fail(error):
    """Raise an error; for use in a lambda."""
    raise error


# ---- Failing together ----------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("method", ["on_root", "only_on_root"])
def test_the_root_s_error_is_raised_on_every_rank(communicator, method):
    with pytest.raises(FileError) as caught:
        getattr(communicator, method)(
            lambda: fail(FileError(f"rank {communicator.rank} cannot read it"))
        )
    assert str(caught.value) == "rank 0 cannot read it"
    assert caught.value.shared
    assert caught.value.exit_code == 4


@pytest.mark.mpi
def test_no_rank_waits_for_a_root_with_an_error_of_another_type(communicator):
    expected = ZeroDivisionError if communicator.is_root else HybridNBodyError
    with pytest.raises(expected, match="division by zero"):
        communicator.only_on_root(lambda: 1 / 0)


@pytest.mark.mpi
def test_an_action_for_the_root_runs_on_the_root_alone(communicator):
    ran = []
    here = communicator.only_on_root(lambda: ran.append(communicator.rank) or "done")
    everywhere = communicator.on_root(lambda: ran.append(communicator.rank) or {"step": 3})
    assert ran == ([0, 0] if communicator.is_root else [])
    assert here == ("done" if communicator.is_root else None)
    assert everywhere == {"step": 3}


class Counted:
    """Ranks that note the messages that they begin."""

    def __init__(self, comm):
        self.comm = comm
        self.begun = []

    def __getattr__(self, name):
        if name.startswith("I"):
            self.begun.append(name)
        return getattr(self.comm, name)


@pytest.mark.mpi(min_size=2)
def test_ranks_wait_for_each_other_once_where_all_is_well(communicator, monkeypatch):
    counted = Counted(communicator.comm)
    monkeypatch.setattr(communicator, "comm", counted)
    assert communicator.on_root(lambda: {"step": 3}) == {"step": 3}
    assert communicator.together(lambda: "done") == "done"
    assert counted.begun == ["Ibcast", "Iallreduce"]


@pytest.mark.mpi
@pytest.mark.parametrize("failing", [[0], [-1], [1, -1], "all"])
def test_the_first_failing_rank_s_error_is_raised_on_every_rank(communicator, failing):
    numbers = (
        range(communicator.size)
        if failing == "all"
        else [number % communicator.size for number in failing]
    )
    error = InputError(f"no GPU beside rank {communicator.rank}")
    with pytest.raises(InputError) as caught:
        communicator.together(lambda: fail(error) if communicator.rank in numbers else None)
    first = min(numbers)
    where = f"rank {first}: " if communicator.size > 1 else ""
    assert str(caught.value) == f"{where}no GPU beside rank {first}"
    assert caught.value.shared


@pytest.mark.mpi
def test_what_succeeds_on_every_rank_gives_each_its_own_result(communicator):
    assert communicator.together(lambda: communicator.rank * 10) == communicator.rank * 10


ONE_RANK_FAILS = """
import sys, time
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import abort, start_mpi
communicator = start_mpi()
try:
    if communicator.rank == 1:
        raise InputError("out of bodies") if sys.argv[1] == "ours" else ZeroDivisionError("a fault")
    communicator.barrier()
    time.sleep(60)
except Exception as error:
    abort(error, int(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", ["ours", "a fault"])
def test_one_rank_s_abort_ends_those_that_wait_and_is_told_once(mpirun, tmp_path, kind):
    script = tmp_path / "script.py"
    script.write_text(ONE_RANK_FAILS)
    start = time.monotonic()
    result = mpirun(3, script, kind, 2, timeout=30, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert time.monotonic() - start < 20
    assert result.returncode == 2
    assert result.stderr.count("hybrid_nbody: error on rank 1: ") == 1
    assert ("Traceback" in result.stderr) == (kind == "a fault")
    assert ("error on rank 1: out of bodies\n" in result.stderr) == (kind == "ours")


ABORT_RETURNS = """
from types import SimpleNamespace
from mpi4py import MPI
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import abort
MPI.COMM_WORLD = SimpleNamespace(rank=0, size=2, Abort=lambda code: None)
abort(InputError("out of bodies"), 2)
print("still here")
"""


def test_an_abort_ends_the_process_where_mpi_does_not():
    assert run_python(ABORT_RETURNS, check=2).stdout == ""


# ---- Talking -------------------------------------------------------------------------------------

OVERHEAD = len(pickle.dumps(b"x" * 300)) - 300  # what pickling adds to bytes
EDGE = SMALL_MESSAGE - 8 - OVERHEAD  # the longest that goes in one message, beside its length


@pytest.mark.mpi
@pytest.mark.parametrize(
    "length", [0, EDGE - 1, EDGE, EDGE + 1, SMALL_MESSAGE, 3 * SMALL_MESSAGE, 10**6]
)
def test_messages_of_any_length_arrive(communicator, length):
    value = np.random.default_rng(length).bytes(length)
    assert communicator.broadcast(value if communicator.is_root else "ignored") == value


@pytest.mark.mpi
@pytest.mark.parametrize(("length", "messages"), [(EDGE, 1), (EDGE + 1, 2)])
def test_a_small_message_travels_once(communicator, monkeypatch, length, messages):
    waits = []
    wait = communicators.wait
    monkeypatch.setattr(
        communicators, "wait", lambda *request: waits.append(request) or wait(*request)
    )
    communicator.broadcast(b"x" * length)
    assert len(waits) == (messages if communicator.size > 1 else 0)


@pytest.mark.mpi
def test_all_ranks_learn_what_each_says(communicator):
    rank, size = communicator.rank, communicator.size
    everyone = list(range(size))
    assert communicator.gather(f"rank {rank}") == [f"rank {other}" for other in everyone]
    assert communicator.gather_integers(rank, -rank, 1 << 40).tolist() == [
        [r, -r, 1 << 40] for r in everyone
    ]
    rows = np.full((rank, 2), rank)  # as many as the rank's number: none on the root
    assert communicator.concatenate(rows).tolist() == [
        [other] * 2 for other in everyone for _ in range(other)
    ]
    values = np.array([[rank, -rank], [2, 3]])
    assert communicator.sum(values).tolist() == [
        [sum(everyone), -sum(everyone)],
        [2 * size, 3 * size],
    ]
    assert communicator.maximum(values.T).tolist() == [[size - 1, 2], [0, 3]]  # a transposed view
    assert communicator.minimum(values).tolist() == [[0, 1 - size], [2, 3]]


@pytest.mark.mpi
def test_one_rank_that_says_yes_is_enough(communicator):
    last = communicator.rank == communicator.size - 1
    assert communicator.any(last) is True
    assert communicator.any(False) is False


@pytest.mark.mpi
@pytest.mark.parametrize(
    "kinds",
    [
        (["cpu"],) * 4,
        (["gpu"], ["cpu"], ["cpu"], ["gpu"]),
        (["cpu"], ["cpu", "gpu"], ["gpu"], ["cpu"]),
        (["gpu", "cpu"], ["gpu"], ["cpu"], []),
    ],
)
def test_of_the_devices_of_a_kind_one_of_a_node_goes_first(communicator, shared_tmp_path, kinds):
    """It has filled the cache before the others of its kind begin."""
    notes, mine = shared_tmp_path / "notes", kinds[communicator.rank]

    def note(device, what):
        with open(notes, "a") as file:
            file.write(f"{device.name} {communicator.rank} {what}\n")

    def act(device):
        note(device, "begins")
        time.sleep(0.05)
        note(device, "ends")

    communicator.first_on_node(act, [SimpleNamespace(name=name) for name in mine])
    communicator.barrier()
    found = [line.split() for line in notes.read_text().splitlines()]
    for kind in ("cpu", "gpu"):
        users = [rank for rank in range(communicator.size) if kind in kinds[rank]]
        of_kind = [(int(rank), what) for which, rank, what in found if which == kind]
        assert of_kind[:2] == [(rank, what) for rank in users[:1] for what in ("begins", "ends")]
        assert sorted(of_kind) == [(rank, what) for rank in users for what in ("begins", "ends")]


@pytest.mark.mpi
@pytest.mark.parametrize("failing", [0, 1])
def test_where_one_rank_cannot_compile_none_waits_for_it(communicator, failing):
    def act(device):
        if communicator.rank == failing % communicator.size:
            raise NumericalError("not a finite number")

    with pytest.raises(NumericalError, match="not a finite number") as caught:
        communicator.first_on_node(act, [SimpleNamespace(name="cpu")])
    assert caught.value.shared


@pytest.mark.mpi
def test_ranks_of_a_machine_know_their_place_on_it(communicator, comm):
    assert (communicator.rank, communicator.size) == (comm.rank, comm.size)
    # tests run on one machine
    assert (communicator.local_rank, communicator.local_size) == (comm.rank, comm.size)
    assert communicator.is_root == (comm.rank == 0)
    assert Communicator(comm).broadcast(comm.rank) == 0


# ---- Another library's mpirun --------------------------------------------------------------------


@pytest.fixture
def no_launcher(monkeypatch):
    """Take away what the launcher of these tests, if there is one, has set."""
    for size, rank, _ in communicators.LAUNCHERS:
        monkeypatch.delenv(size, raising=False)
        monkeypatch.delenv(rank, raising=False)
    return monkeypatch


@pytest.mark.parametrize(("size", "rank", "launcher"), communicators.LAUNCHERS)
def test_a_foreign_launcher_is_refused_with_the_remedy_by_its_first_rank(
    no_launcher, size, rank, launcher
):
    no_launcher.setenv(size, "4")
    no_launcher.setenv(rank, "0")
    with pytest.raises(InputError) as caught:
        refuse_foreign_launcher(1, "MPICH Version:\t5.0.2,\nmore\0")
    assert str(caught.value) == (
        f"{launcher} started 4 processes, but each sees an MPI world of 1: it belongs to another "
        "MPI library than mpi4py's (MPICH Version: 5.0.2); use the mpirun of that library: "
        f"{Path(sys.executable).parent / 'mpirun'}"
    )
    no_launcher.setenv(rank, "3")
    with pytest.raises(InputError) as caught:
        refuse_foreign_launcher(1, "MPICH")
    assert str(caught.value) == ""


@pytest.mark.parametrize("promised", ["", "1", "3", "4"])
def test_a_launcher_that_keeps_its_promise_is_accepted(no_launcher, promised):
    no_launcher.setenv("OMPI_COMM_WORLD_SIZE", promised)
    refuse_foreign_launcher(4, "Open MPI")


START = """
import os, sys
if sys.argv[1] == "no library":
    sys.modules["mpi4py.MPI"] = None
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import start_mpi
try:
    communicator = start_mpi()
    print(communicator.rank, communicator.size)
except InputError as error:
    print(error)
"""


def test_mpi_starts_without_a_launcher_and_says_what_is_missing(no_launcher):
    assert run_python(START, "as it is").stdout == "0 1\n"
    assert run_python(START, "no library").stdout == "0 1\n"
    no_launcher.setenv("OMPI_COMM_WORLD_SIZE", "2")
    missing = run_python(START, "no library").stdout
    assert missing.startswith("2 ranks were started, but no MPI library could be loaded (")
    assert missing.endswith("); install one beside Python: pip install 'hybrid_nbody[mpich]'\n")
    assert run_python(START, "as it is").stdout.startswith(
        "Open MPI's mpirun started 2 processes, but each sees"
    )
