"""Steps of several ranks, queued one by one or replayed; and an order that all ranks share."""

import weakref

import numpy as np
import pytest
from support.bodies import make_backend, make_model, whole
from support.ranks import transport_of

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.nbody.forces import direct as gravity
from hybrid_nbody.nbody.forces.direct import STEPS_BETWEEN_SORTS
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.sources import given_order
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.exchange.ring import RingExchange
from hybrid_nbody.parallel.transport.host import HostTransport

EXCHANGES = (AllgatherExchange, RingExchange)


def state_of(model):
    """Return positions, velocities and accelerations of all bodies."""
    return [whole(model, f"bodies/{name}") for name in ("position", "velocity", "acceleration")]


def assert_same_bits(first, second):
    """Compare two states bit by bit."""
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


class RecordableTransport(HostTransport):
    """Messages that a CPU "replays" by sending them anew."""

    recordable = True


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("integrator", ["leapfrog", "euler"])
def test_replayed_steps_have_the_bits_of_others(communicator, exchange, integrator):
    """Across a sort; a step is recorded once for all batches."""
    recorded = []

    class Recorder(CpuBackend):
        def recorded(self, action):
            recorded.append(action)
            return action

    backend = Recorder(1)
    options = {
        "integrator": integrator,
        "precision": "single",
        "softening": 0.05,
        "exchange": exchange,
    }
    bodies = plummer(300, 1)
    results = []
    for transport in (HostTransport, RecordableTransport):
        options["transport"] = transport(backend, communicator)
        model = make_model(bodies, 1e-3, communicator, backend, **options)
        model.step = STEPS_BETWEEN_SORTS - 10
        for steps in (1, 7, 22):
            model.advance(steps)
        results.append(state_of(model))
        assert model.timings["force"] > 0
        assert model.timings["exchange"] > 0
        assert model.timings["sort"] > 0
    assert_same_bits(*results)
    assert len(recorded) == 1


@pytest.mark.mpi(min_size=2)
def test_times_of_replayed_steps_make_up_the_whole(communicator):
    """A clock that each mark advances by a second: every part takes one, all replays another."""

    class Counting(CpuBackend):
        now = 0.0

        def mark(self):
            self.now += 1.0
            return self.now

    backend = Counting(1)
    transport = RecordableTransport(backend, communicator)
    model = make_model(
        plummer(50, 1), 1e-3, communicator, backend, transport=transport, softening=0.1
    )
    # kick, drift, exchange, force, kick, replays: six seconds, of which one is the force's
    model.advance(1)
    assert (model.timings["force"], model.timings["exchange"]) == (1.0, 1.0)
    # the replays end within one second, so that all of it is taken to be the force's
    model.advance(11)
    assert (model.timings["force"], model.timings["exchange"]) == (3.0, 2.0)


@pytest.mark.mpi(min_size=2)
def test_marks_do_not_pile_up(communicator):
    """However many steps there are in a batch."""

    class Mark:
        def __init__(self, time):
            self.time = time

    alive, most = weakref.WeakSet(), []

    class Marking(CpuBackend):
        def mark(self):
            mark = Mark(super().mark())
            alive.add(mark)
            most.append(len(alive))
            return mark

        def elapsed(self, start, end):
            return end.time - start.time

    backend = Marking(1)
    transport = HostTransport(backend, communicator)
    model = make_model(
        plummer(50, 1), 1e-3, communicator, backend, transport=transport, softening=0.1
    )
    model.advance(300)
    assert len(most) > 1000
    assert max(most) < 100


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("kind", [HostTransport, RecordableTransport])
def test_ranks_queue_steps_without_waiting_for_them(communicator, kind):
    asked = []

    class Asked(CpuBackend):
        def elapsed(self, start, end):
            asked.append(end)
            return super().elapsed(start, end)

    backend = Asked(1)
    transport = kind(backend, communicator)
    bodies = plummer(50, 1)
    model = make_model(bodies, 1e-3, communicator, backend, transport=transport, softening=0.1)
    asked.clear()
    wait = model.queue(10)
    assert asked == []
    assert 0 < model.timings["force"] <= wait()
    assert asked


# ---- On GPUs -------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.mpi
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("integrator", ["leapfrog", "euler"])
@pytest.mark.parametrize(
    "weights", [None, [1.0, 3.0], [0.0, 1.0]], ids=["equal", "uneven", "one rank has none"]
)
def test_captured_steps_have_the_bits_of_others(communicator, exchange, integrator, weights):
    """Across a sort, which changes in place what the graph reads."""
    backend = make_backend("gpu", local_rank=communicator.local_rank)
    options = {
        "integrator": integrator,
        "precision": "single",
        "softening": 0.02,
        "exchange": exchange,
    }
    if weights and communicator.size == len(weights):
        options["weights"] = weights
    results = []
    for capture in (True, False):
        model = make_model(plummer(3000, 1), 1e-3, communicator, backend, **options)
        assert model.exchange.recordable == (
            communicator.size == 1 or model.exchange.transport.name == "nccl"
        )
        model.exchange.recordable &= capture
        model.step = STEPS_BETWEEN_SORTS - 10
        for steps in (1, 7, 22):
            model.advance(steps)
        results.append(state_of(model))
    assert_same_bits(*results)


@pytest.mark.gpu
@pytest.mark.mpi
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_any_transport_gives_the_same_bits(communicator, exchange):
    backend = make_backend("gpu", local_rank=communicator.local_rank)
    results = []
    for transport in (transport_of(backend, communicator), HostTransport(backend, communicator)):
        options = {
            "precision": "single",
            "softening": 0.02,
            "exchange": exchange,
            "transport": transport,
        }
        model = make_model(plummer(3000, 1), 1e-3, communicator, backend, **options)
        model.advance(20)
        results.append([*state_of(model), model.backend.download(model.force.potential())])
    assert_same_bits(*results)


# ---- Ranks with different backends ---------------------------------------------------------------


class OtherBackend(CpuBackend):
    """Computes as any CPU under another name."""

    name = "other"

    def kernels(self, package, module="kernels"):
        return make_backend("cpu").kernels(package, module)


def backend_of_rank(communicator):
    """Return the backend of this rank; the root's has another name."""
    return OtherBackend(1) if communicator.rank else make_backend("cpu")


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("alike", [True, False])
def test_where_devices_differ_all_ranks_use_the_order_of_the_root(communicator, monkeypatch, alike):
    backend = make_backend("cpu") if alike else backend_of_rank(communicator)
    if communicator.rank:  # as if rounding had led to another order here
        monkeypatch.setattr(
            gravity, "spatial_order", lambda position, xp: given_order(len(position))
        )
    model = make_model(
        plummer(500, 1), 1e-3, communicator, backend, precision="single", softening=0.05
    )
    orders = communicator.gather(model.force.state.order.tolist())
    assert (orders[1] == orders[0]) == (not alike)
    indices = communicator.gather(np.sort(model.force.state.source_index).tolist())
    assert (len({index for each in indices for index in each}) == 500) == (not alike)


@pytest.mark.mpi(min_size=2)
def test_where_devices_differ_a_ring_sums_over_what_each_rank_sorted(communicator):
    backend, other = make_backend("cpu"), backend_of_rank(communicator)
    weights = [rank + 1.0 for rank in range(communicator.size)]
    options = {
        "precision": "single",
        "softening": 0.05,
        "exchange": RingExchange,
        "weights": weights,
    }
    alike, mixed = (
        make_model(plummer(500, 1), 1e-3, communicator, each, **options)
        for each in (backend, other)
    )
    assert_same_bits(state_of(mixed), state_of(alike))
