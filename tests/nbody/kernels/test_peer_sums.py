"""Sums that GPUs add up in each other's memory, on paper: arguments of kernels, and addresses."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.paper import PaperArray, PaperGpu

from hybrid_nbody.benchmarks.harness.runs import massive_box
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu import peer_rows, peer_sums
from hybrid_nbody.nbody.kernels.gpu.exact_sums import LEAST_BODIES
from hybrid_nbody.nbody.kernels.gpu.steps import MOST_MOVES
from hybrid_nbody.nbody.kernels.gpu.symmetric import Kernels
from hybrid_nbody.nbody.stages import FORCE, LEAPFROG, YOSHIDA4, StepPlan, drift
from hybrid_nbody.nbody.state import make_state
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.peer_barrier import BARRIER

RANKS = 3


class PaperPeer(PaperGpu):
    """A GPU on paper with such arrays."""

    def zeros(self, shape, dtype):
        return super().zeros(shape, dtype).view(PaperArray)

    def upload(self, host):
        return super().upload(host).view(PaperArray)


class Memory:
    """The memory of ranks which are all this one; counts how often all must ask."""

    asked = 0

    def addresses(self, array):
        assert array.size
        self.asked += 1
        return [array.data.ptr] * RANKS


@pytest.fixture
def backend():
    return PaperPeer(lambda *arguments: 0.0)


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture(params=[[1, 1, 1], [1, 0, 2]], ids=["all", "one without bodies"])
def shared(request, monkeypatch, backend, memory):
    """The kernels and state of rank 1, and its sums with those of the others."""
    barrier = SimpleNamespace(argument=np.zeros(1, BARRIER))
    monkeypatch.setattr(peer_rows, "PeerBarrier", lambda *arguments: barrier)
    partition = Partition.weighted(LEAST_BODIES, request.param)
    mass = massive_box(LEAST_BODIES).mass.astype(float)
    state = make_state(backend, partition.share(1), mass)
    kernels = Kernels(backend, state, PairForce("single", 0.01))
    return kernels, state, kernels.shared_sums(state, memory, partition, 1)


def test_kernels_get_the_arguments_that_they_declare(backend, shared):
    kernels, state, sums = shared
    sums.collect(state.position)
    sums.add_up(kernels.pair_accelerations(state))
    velocity = backend.zeros((LEAST_BODIES, 3), "f8")
    sums.add_up(kernels.pair_jerks(state, velocity, np.zeros_like(state.velocity)))
    sums.wait()
    kernels_of_ranks = peer_sums.KERNELS + peer_rows.KERNELS
    found = [name for name in backend.launches if name in kernels_of_ranks]
    expected = ["push_rows", "add_up_accelerations", "clear"]
    expected += ["add_up_accelerations_and_jerks", "clear", "barrier"]
    assert found == expected


MANY_MOVES = (*[drift(0.1)] * (MOST_MOVES + 1), FORCE)


@pytest.mark.parametrize("stages", [LEAPFROG, YOSHIDA4], ids=["leapfrog", "yoshida4"])
def test_kernels_of_whole_steps_get_the_arguments_that_they_declare(backend, shared, stages):
    _, state, sums = shared
    sums.run(state, StepPlan(stages, 0.1), 3)
    forces = 3 * stages.count(FORCE)
    assert backend.launches.count("add_up_accelerations") == forces
    assert backend.launches.count("move_and_push") == forces
    assert backend.launches.count("push_rows") == 1  # before the first force
    assert "clear" not in backend.launches


def test_many_moves_between_two_forces_are_launched_one_by_one(backend, shared):
    _, state, sums = shared
    sums.run(state, StepPlan(MANY_MOVES, 0.1), 3)
    assert backend.launches.count("clear") == backend.launches.count("add_up_accelerations") - 1
    assert backend.launches.count("move_and_push") == 1  # nothing moves after the last force
    has_bodies = len(state.velocity) > 0
    assert backend.launches.count("add_scaled") == 3 * (MOST_MOVES + 1) * has_bodies


def test_ranks_ask_once_for_each_array_whether_they_have_bodies_or_not(shared, memory):
    kernels, state, sums = shared
    for _ in range(3):
        sums.collect(state.position)
        sums.add_up(kernels.pair_accelerations(state))
    assert memory.asked == 3  # positions, sums, and accelerations


def test_each_rank_knows_the_first_bodies_of_all(shared):
    _, _, sums = shared
    first, *_, last = sums.first_bodies.tolist()
    assert (first, last) == (0, LEAST_BODIES)
    assert len(sums.first_bodies) == RANKS + 1
