"""Ranks, a model without physics, and processes of their own, for the tests of ranks, loop and
output.
"""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.forked import run_fast

from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.choice import choose_transport
from hybrid_nbody.simulation.model import Field, Quantity, Role, Work
from hybrid_nbody.simulation.timings import Timings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def communicator(comm):
    """All ranks."""
    return Communicator(comm)


@pytest.fixture(scope="session")
def alone():
    """This rank by itself."""
    return this_rank()


def this_rank():
    """Return a communicator of this rank alone."""
    from mpi4py import MPI

    return Communicator(MPI.COMM_SELF)


TRANSPORTS = {}


def transport_of(backend, communicator):
    """Return the fastest transport, made once: those of NCCL end when all ranks drop theirs, each
    at its own time.
    """
    key = id(backend), id(communicator)
    if key not in TRANSPORTS:
        devices = communicator.gather(backend.identity)
        transport = choose_transport(
            "auto", backend, communicator, len(set(devices)) < len(devices)
        )
        # kept: a new object could get the address of an old one
        TRANSPORTS[key] = (transport, backend, communicator)
    return TRANSPORTS[key][0]


class ThreadRank:
    """One of several ranks that are threads of this process: enough of a `Communicator` for sums
    and choices.
    """

    node_number = 0
    on_several_nodes = False

    def __init__(self, rank, board, barrier):
        self.rank = self.local_rank = rank
        self.size = self.local_size = len(board)
        self.is_root = rank == 0
        self._board, self._barrier = board, barrier

    def gather(self, value):
        self._board[self.rank] = value
        self._barrier.wait()
        values = list(self._board)
        self._barrier.wait()
        return values

    def broadcast(self, value):
        return self.gather(value)[0]

    together = Communicator.together
    _raise_first = Communicator._raise_first
    concatenate = Communicator.concatenate

    def gather_alike(self, mine):
        return np.array(self.gather(mine))

    def barrier(self):
        self._barrier.wait()

    def any(self, flag):
        return any(self.gather(flag))

    def maximum(self, values):
        return np.max(self.gather(values), axis=0)

    def sum(self, values):
        return np.sum(self.gather(values), axis=0)


def on_threads(size, action):
    """Return what ``action(rank)`` gives for each of `size` ranks that are threads."""
    board, barrier = [None] * size, threading.Barrier(size, timeout=20)

    def guarded(rank):
        try:
            return action(ThreadRank(rank, board, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        results = [pool.submit(guarded, rank) for rank in range(size)]
    failures = [result.exception() for result in results if result.exception()]
    for failure in sorted(
        failures, key=lambda failure: isinstance(failure, threading.BrokenBarrierError)
    ):
        raise failure
    return [result.result() for result in results]


class RowsModel:
    """A model whose rows are functions of the step: anybody can say what a file must hold.

    Parameters
    ----------
    number : int
        Rows of all ranks.
    communicator : Communicator
        Every rank calls together.
    weights : sequence of float, optional
        How rows are shared out; equally by default.
    index : (n,) array of int64, optional
        This rank's rows, where they are not consecutive.

    Attributes
    ----------
    batches : list of int
        The steps of each call of `advance`.
    """

    quantities = {
        "total_energy": Quantity("energy", "sum"),
        "momentum": Quantity("mass length / time", "vector", 3),
    }
    work = Work("interactions", 100.0, 20)
    row_name = "body"
    advice = {"start": "The initial state has bad rows", "run": "Take smaller steps"}

    def __init__(self, number, communicator, weights=None, dt=0.5, index=None):
        self.number, self.communicator, self.dt = number, communicator, dt
        shares = Partition.weighted(number, weights or [1.0] * communicator.size)
        self.own = shares.share(communicator.rank) if index is None else index
        self.step = 0
        self.timings = Timings()
        self.batches = []
        self.restored = {}

    @property
    def time(self):
        return self.step * self.dt

    def advance(self, steps):
        self.batches.append(steps)
        self.step += steps

    def at(self, step):
        """Return the model, brought to `step`."""
        self.step = step
        return self

    def diagnostics(self):
        return {"total_energy": -0.25 - self.step, "momentum": (self.step, 0.5, -1e-300)}

    def scalars(self):
        return {"step": self.step, "time": self.time, "initial_energy": -0.1 - 1e-17}

    def fields(self):
        roles = {
            "bodies/mass": Role.STATIC,
            "bodies/id": Role.STATIC,
            "gravity/order": Role.INTERNAL,
        }
        roles["bodies/acceleration"] = Role.WATCHED
        return {
            name: Field(
                name=name,
                shape=array.shape,
                dtype=array.dtype,
                units=f"units of {name}",
                description=f"what {name} is",
                index=self.own,
                host=lambda start, stop, mine=array[self.own]: mine[start:stop].copy(),
                role=roles.get(name, Role.FRAME),
            )
            for name, array in rows_at(self.step, self.number).items()
        }

    def restore(self, rows, scalars):
        self.step = int(scalars["step"])
        self.restored = {
            name: rows(name)
            for name, field in self.fields().items()
            if field.role is not Role.WATCHED
        }

    def suspect(self):
        return "body 7, the fastest, moves at 12"


def scattered_shares(number, size, seed=0):
    """Return for each of `size` ranks the rows that it holds: random ones in random order, the
    second rank none.
    """
    random = np.random.default_rng([number, size, seed])
    cuts = np.sort(random.integers(0, number + 1, size - 1))
    shares = np.split(random.permutation(number), cuts)
    if size > 1:
        shares[0] = np.concatenate(shares[:2])
        shares[1] = shares[1][:0]
    return shares


def rows_at(step, number):
    """Return every row of every field of a `RowsModel` at a step."""
    random = np.random.default_rng([number, step])
    return {
        "bodies/position": random.standard_normal((number, 3)),
        "bodies/velocity": random.standard_normal((number, 3)) * 1e-200,
        "bodies/mass": np.linspace(1.0, 2.0, number),
        "bodies/id": np.arange(number)[::-1].copy(),
        "gravity/order": np.arange(number, dtype=np.int32) + step,
        "bodies/acceleration": random.standard_normal((number, 3)),
    }


def run_python(code, *arguments, check=0, timeout=60):
    """Run Python code in a process of its own; `arguments` are its ``sys.argv[1:]``.

    Return the completed process.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    result = run_fast(["-c", code, *arguments], environment=environment, timeout=timeout)
    assert result.returncode == check, result.stdout + result.stderr
    return result


def answer_of(code, *arguments, **kwargs):
    """Run Python code as `run_python` does and return what its last line of output says in JSON."""
    return json.loads(run_python(code, *arguments, **kwargs).stdout.splitlines()[-1])


def same_bits(first, second):
    """Return whether two arrays are the same, bit by bit, in shape and in type."""
    return (
        first.dtype == second.dtype
        and first.shape == second.shape
        and first.tobytes() == second.tobytes()
    )
