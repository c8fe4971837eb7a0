"""Which kernels compute each pair once: those for short chunks where many are."""

import numpy as np
import pytest
from support.paper import PaperGpu

from hybrid_nbody.nbody.kernels import make_symmetric_kernels
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu.exact_sums import LEAST_BODIES
from hybrid_nbody.nbody.precision import CHUNK
from hybrid_nbody.nbody.sources import Order, given_order, spatial_order
from hybrid_nbody.nbody.stages import LEAPFROG, StepPlan
from hybrid_nbody.nbody.state import make_state, set_order

FULL = -(-LEAST_BODIES // CHUNK)


class Launches:
    """The kernels of pairs that were launched: whether each was one for short chunks."""

    def __init__(self):
        self.short = []

    def seconds(self, name, macros, *_):
        if name.startswith("accelerations"):
            self.short.append(bool(macros["SHORT"]))
        return 1.0


def cut(chunks):
    """Return the order of given bodies in more chunks than full ones."""
    order = given_order(LEAST_BODIES)
    starts = np.union1d(order.starts, np.arange(chunks - FULL) * CHUNK + CHUNK // 2)
    padding = np.full(len(order.starts) - len(starts), LEAST_BODIES)
    return Order(order.bodies, np.concatenate([starts, padding]).astype(np.int32))


@pytest.fixture
def launches():
    return Launches()


@pytest.fixture
def backend(launches):
    return PaperGpu(launches.seconds)


@pytest.fixture
def state(backend):
    return make_state(backend, slice(0, LEAST_BODIES), np.ones(LEAST_BODIES))


@pytest.fixture
def kernels(backend, state):
    return make_symmetric_kernels(backend, state, PairForce("single", 0.01))


@pytest.mark.parametrize(
    ("chunks", "short"), [(FULL, False), (FULL + 2, False), (FULL + 3, True), (2 * FULL, True)]
)
def test_many_chunks_are_short(backend, kernels, state, launches, chunks, short):
    set_order(backend, state, cut(chunks))
    kernels.accelerations(state)
    assert launches.short == [short]


def test_chunks_are_looked_at_once_an_order(backend, kernels, state, launches):
    set_order(backend, state, cut(2 * FULL))
    kernels.accelerations(state)
    state.chunks[0] = FULL  # not seen: the order is the same
    kernels.accelerations(state)
    set_order(backend, state, cut(FULL))
    kernels.accelerations(state)
    assert launches.short == [True, True, False]


def test_captured_steps_are_dropped_with_their_kernels(backend, kernels, state, launches):
    plan = StepPlan(LEAPFROG, 1e-3)
    backend.recorded = backend.capture  # a replay launches nothing that is seen
    for chunks in (FULL, 2 * FULL):
        set_order(backend, state, cut(chunks))
        kernels.run(state, plan, 9)
    changes = np.flatnonzero(np.diff(launches.short))
    assert len(changes) == 1
    assert len(launches.short) == 2 * (changes[0] + 1)  # as many of each, none replayed


def test_clumps_of_32_make_short_chunks():
    middles = np.random.default_rng(1).uniform(-1, 1, (LEAST_BODIES // 32, 3))
    position = np.repeat(middles, 32, axis=0)
    position += np.random.default_rng(2).normal(scale=1e-3, size=position.shape)
    assert spatial_order(position).chunks > 1.3 * FULL
