"""Each pair once: sums whose order does not matter, shares of the pairs, and where it is used."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bodies import clustered, make_model, whole
from support.pairs import SlowSymmetricForce, add_exactly, pairs_of_chunks
from support.paper import PaperGpu

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.hybrid import HybridBackend
from hybrid_nbody.benchmarks.harness.runs import ProductionRun, massive_box
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu.exact_sums import (
    LEAST_BODIES,
    MOST_BODIES,
    ExactUnits,
    bounds,
    is_applicable,
    rounders,
)
from hybrid_nbody.nbody.kernels.gpu.symmetric import Kernels
from hybrid_nbody.nbody.kernels.units import Units
from hybrid_nbody.nbody.state import make_state

SOFTENING = 0.05
SOFT = PairForce("single", 0.01)
MASSES = np.full(LEAST_BODIES, 1.0 / LEAST_BODIES)

# ---- Sums whose order does not matter ------------------------------------------------------------


def exact_sum(values, by):
    """Return the sums of multiples of two units."""
    sums = np.zeros(2)
    for value in values:
        add_exactly(value, by, sums)
    return sums


@settings(max_examples=200, deadline=None)
@given(
    st.integers(-60, 200),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60),
    st.randoms(),
)
def test_sums_have_the_same_bits_in_any_order(power, parts, random):
    """Up to a bound of 2^power; terms are numbers of float32 of any size below it."""
    bound = 2.0**power
    values = [part / len(parts) * bound * 2.0 ** -random.choice([0, 20, 50]) for part in parts]
    by, expected = rounders(bound), sum(map(float, values))
    found = exact_sum(values, by)
    random.shuffle(values)
    assert exact_sum(values, by).tobytes() == found.tobytes()
    assert abs(found.sum() - expected) <= bound * (len(values) * 2.0**-84 + 2.0**-52)


def test_without_the_units_the_order_matters():
    """Without this the test above would pass even if rounding did nothing."""
    values = np.random.default_rng(1).uniform(-1, 1, 1000)
    assert np.cumsum(values)[-1] != np.cumsum(values[::-1])[-1]
    sums = [exact_sum(order, rounders(1000.0)) for order in (values, values[::-1])]
    assert sums[0].tobytes() == sums[1].tobytes()


@pytest.mark.parametrize("eps", [1e-6, 1e-2, 3.0])
def test_bounds_hold_where_two_bodies_pull_hardest(eps):
    """At a distance of eps / sqrt(2) the acceleration by a body is largest."""
    position, mass = np.array([[0, 0, 0], [eps / np.sqrt(2), 0, 0]]), np.array([0.4, 1.0])
    found = bounds(2, eps)
    largest = np.abs(reference.accelerations(position, mass, eps)).max()
    assert 0.49 * found["accelerations"] < largest <= found["accelerations"]
    assert np.abs(reference.potential(position, mass, eps)).max() <= found["potentials"]
    velocity = np.array([[-1.0, 1.0, -1.0], [1.0, -1.0, 1.0]])
    both = reference.accelerations_and_jerks(position, velocity, mass, eps)
    assert np.abs(both).max() <= found["accelerations_and_jerks"]


# ---- Shares of the pairs -------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", range(1, 40))
def test_each_pair_of_chunks_comes_once(chunks):
    found = sorted(tuple(sorted(pair)) for pair in pairs_of_chunks(chunks))
    assert found == list(itertools.combinations_with_replacement(range(chunks), 2))


def pair_model(bodies, communicator, **options):
    return make_model(
        bodies, 1e-2, communicator, softening=SOFTENING, make_force=SlowSymmetricForce, **options
    )


WEIGHTS = {
    "equal": lambda size: [1.0] * size,
    "uneven": lambda size: [rank + 0.5 for rank in range(size)],
    "all on the last": lambda size: [0.0] * (size - 1) + [1.0],
}


@pytest.mark.mpi
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(
    "bodies", [lambda: plummer(700, seed=3), lambda: clustered(700)], ids=["plummer", "clustered"]
)
def test_ranks_find_the_accelerations_of_the_reference_and_the_bits_of_one(
    communicator, alone, weights, bodies
):
    bodies, shares = bodies(), WEIGHTS[weights](communicator.size)
    found = whole(pair_model(bodies, communicator, weights=shares), "bodies/acceleration")
    true = reference.accelerations(bodies.position, bodies.mass, SOFTENING)
    np.testing.assert_allclose(found, true, rtol=1e-11, atol=1e-11)
    assert found.tobytes() == whole(pair_model(bodies, alone), "bodies/acceleration").tobytes()


@pytest.mark.mpi
def test_steps_have_the_bits_of_one_rank(communicator, alone):
    bodies = plummer(300, seed=4)
    models = [pair_model(bodies, ranks) for ranks in (communicator, alone)]
    for model in models:
        model.advance(3)
    found, expected = (
        [whole(m, f"bodies/{name}") for name in ("position", "velocity")] for m in models
    )
    assert [array.tobytes() for array in found] == [array.tobytes() for array in expected]


@pytest.mark.mpi(min_size=2)
def test_time_spent_in_adding_up_counts_as_exchange(communicator):
    """A rank that waits for a slower one there must not seem slow itself."""
    model = pair_model(plummer(300, seed=4), communicator)
    before = dict(model.timings.seconds)
    waited = []
    reduce_scatter = model.exchange.reduce_scatter

    def slowly(totals, scratch):
        time.sleep(0.2)
        waited.append(0.2)
        return reduce_scatter(totals, scratch)

    model.exchange.reduce_scatter = slowly
    model.advance(2)
    gained = {
        name: seconds - before.get(name, 0.0) for name, seconds in model.timings.seconds.items()
    }
    assert len(waited) == 2
    assert gained["exchange"] >= 0.2 * len(waited)


# ---- Where it is applicable ----------------------------------------------------------------------


def test_it_is_chosen_for_many_softened_bodies_on_gpus_alone():
    cases_by_answer = {
        True: [(["gpu"], SOFT, MASSES), (["gpu", "gpu"], PairForce("single", 1e-12), MASSES)],
        False: [
            (["gpu", "cpu"], SOFT, MASSES),
            (["hybrid"], SOFT, MASSES),
            (["gpu"], PairForce("mixed", 0.01), MASSES),
            (["gpu"], PairForce("double", 0.01), MASSES),
            (["gpu"], SOFT, MASSES[1:]),
            (["gpu"], PairForce("single", 0.0), MASSES),
        ],
    }
    for expected, cases in cases_by_answer.items():
        assert [is_applicable(*case) for case in cases] == [expected] * len(cases)


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_a_device_that_takes_all_from_its_helper_computes_as_it_would_alone(share):
    problem, main = massive_box(LEAST_BODIES), PaperGpu(lambda *arguments: 1e-3)
    backend = HybridBackend(main, CpuBackend(1), share)
    run = ProductionRun(backend, problem, "single")
    assert isinstance(run.kernels.alone, Kernels)
    assert not isinstance(run.kernels.main, Kernels)
    if share == 0:
        run.force()
        assert main.launches == ["pack", "accelerations", "gather", "combine"]


def test_any_units_will_do():
    for length, mass in ((2.0**-200, 2.0**200), (3e16, 2e35), (1e-9, 1e-18)):
        units = Units(length=length, mass=mass)
        pair_force = PairForce("single", 0.01 * length, units=units)
        assert is_applicable(["gpu"], pair_force, mass * MASSES)


def test_what_has_no_units_is_left_to_the_other():
    assert not is_applicable(["gpu"], SOFT, np.zeros(LEAST_BODIES))
    assert not is_applicable(["gpu"], SOFT, np.zeros(0))
    assert not is_applicable(["gpu"], SOFT, np.broadcast_to(1e-8, MOST_BODIES + 1))
    assert not is_applicable(["gpu"], PairForce("single", 1e-45), MASSES)
    assert not is_applicable(["gpu"], SOFT, 1e38 * MASSES)


@given(st.floats(1e-20, 1e20), st.floats(1e-20, 1e20))
def test_units_hold_the_softening_and_the_heaviest_body(softening, heaviest):
    units = ExactUnits.of(softening, heaviest)
    assert 2.0**-30 <= units.length * softening < 2.0**-29
    assert 0.5 <= units.mass * heaviest < 1
    assert units.accelerations == units.mass / units.length**2
    assert units.potentials == units.mass / units.length


@pytest.mark.parametrize("equal", [True, False])
def test_kernels_get_the_arguments_that_they_declare(equal):
    backend, problem = PaperGpu(lambda *arguments: 1e-3), massive_box(LEAST_BODIES)
    if equal:
        problem.mass[:] = 1
    run = ProductionRun(backend, problem, "single")
    run.force()
    run.kernels.potential(run.state, np.zeros(LEAST_BODIES))
    run.kernels.accelerations_and_jerks(run.state, *np.zeros((2, LEAST_BODIES, 3)))
    accelerations = "accelerations_of_equal_masses" if equal else "accelerations"
    sums = [
        [name, "gather", "combine"]
        for name in (accelerations, "potentials", "accelerations_and_jerks")
    ]
    assert backend.launches == [
        "pack",
        *sums[0],
        *sums[1],
        "pack_moving",
        "find_largest_speed",
        "set_speed_unit",
        *sums[2],
    ]


def test_a_rank_hands_on_what_it_found_at_all_bodies():
    """And takes what all ranks found at its own."""
    problem, backend = massive_box(LEAST_BODIES), PaperGpu(lambda *arguments: 1e-3)
    bodies = Bodies(
        problem.position.astype(float), np.zeros((LEAST_BODIES, 3)), problem.mass.astype(float)
    )
    state = make_state(backend, slice(100, 300), bodies.mass)
    sums = Kernels(backend, state, PairForce("single", 0.01)).pair_accelerations(state)
    assert backend.launches == ["accelerations"]
    assert (sums.gather().shape, sums.scratch.shape) == ((LEAST_BODIES, 3, 3), (200, 9))
    assert backend.launches == ["accelerations", "gather"]
    sums.finish(sums.scratch)
    assert backend.launches[2:] == ["combine"]
