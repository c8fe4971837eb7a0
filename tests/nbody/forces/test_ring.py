"""The direct sum around a ring of ranks against that of all positions and the reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bodies import clustered, make_backend, make_model, whole

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.forces.direct import STEPS_BETWEEN_SORTS
from hybrid_nbody.nbody.forces.ring import Block
from hybrid_nbody.nbody.initial_conditions import plummer, random_box
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.exchange.ring import RingExchange

TOLERANCES = {"single": 2e-5, "mixed": 2e-6, "double": 1e-12}
"""Of accelerations, relative to their root mean square; of potentials, relative to each."""

UNSOFTENED = {"single": 5e-5, "mixed": 2e-5, "double": 1e-12}
"""Of the accelerations of single bodies, relative to each; the weakest pair acceleration among
257 bodies is 9.5e-5 of the sum, so that none can be missing."""

SHARES = {
    "equal": lambda size: [1.0] * size,
    "uneven": lambda size: [rank + 0.5 for rank in range(size)],
    "all on the last": lambda size: [0.0] * (size - 1) + [1.0],
    "every other": lambda size: [float(rank % 2 == 0) for rank in range(size)],
}


def unequal(bodies):
    """Return bodies with masses that differ: sums of equal ones go another way."""
    masses = bodies.mass * np.random.default_rng(8).uniform(0.5, 1.5, len(bodies))
    return Bodies(bodies.position, bodies.velocity, masses)


def ring(bodies, communicator, **options):
    """Return a model whose sources go around."""
    return make_model(bodies, 1e-3, communicator, exchange=RingExchange, **options)


def potential_of(model):
    """Return the potential at all bodies."""
    return np.concatenate(
        model.communicator.gather(model.backend.download(model.force.potential()))
    )


def state_of(model):
    """Return positions, velocities and accelerations of all bodies."""
    return [whole(model, f"bodies/{name}") for name in ("position", "velocity", "acceleration")]


def assert_close(found, true, tolerance):
    """Compare vectors with a tolerance relative to their root mean square."""
    np.testing.assert_allclose(
        found, true, rtol=0, atol=tolerance * np.sqrt(np.mean(np.sum(true**2, axis=1)))
    )


@pytest.mark.mpi
@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("weights", SHARES)
@pytest.mark.parametrize("masses", [unequal, lambda bodies: bodies], ids=["unequal", "equal"])
def test_accelerations_and_potentials_are_those_of_the_reference(
    communicator, backend, precision, weights, masses
):
    bodies = masses(plummer(600, 1))
    shares = SHARES[weights](communicator.size)
    model = ring(
        bodies, communicator, backend=backend, precision=precision, softening=0.05, weights=shares
    )
    given = (bodies.position, bodies.mass, 0.05)
    true = communicator.on_root(lambda: reference.accelerations(*given))
    assert_close(whole(model, "bodies/acceleration"), true, TOLERANCES[precision])
    phi = communicator.on_root(lambda: reference.potential(*given))
    np.testing.assert_allclose(potential_of(model), phi, rtol=TOLERANCES[precision], atol=0)


@pytest.mark.mpi
@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("number", [1, 2, 3, 7, 257])
def test_without_softening_a_body_leaves_out_itself_and_nobody_else(
    communicator, backend, precision, number
):
    """Also with fewer bodies than ranks: a body's index is that of another one in each block."""
    bodies = unequal(random_box(number, 4))
    model = ring(bodies, communicator, backend=backend, precision=precision)
    found, phi = whole(model, "bodies/acceleration"), potential_of(model)
    true = reference.accelerations(bodies.position, bodies.mass)
    np.testing.assert_allclose(
        phi, reference.potential(bodies.position, bodies.mass), rtol=1e-5, atol=0
    )
    error = np.linalg.norm(found - true, axis=1) / np.maximum(np.linalg.norm(true, axis=1), 1e-300)
    assert np.max(error) < UNSOFTENED[precision]


@pytest.mark.mpi
@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("integrator", ["leapfrog", "euler"])
def test_steps_are_those_of_gravity_that_holds_all_positions(
    communicator, backend, precision, integrator
):
    """Across a sort, which every rank does by itself."""
    bodies = unequal(plummer(300, 3))
    options = {
        "backend": backend,
        "integrator": integrator,
        "precision": precision,
        "softening": 0.05,
    }
    around, held = (
        make_model(bodies, 1e-3, communicator, exchange=exchange, **options)
        for exchange in (RingExchange, AllgatherExchange)
    )
    for model in (around, held):
        model.step = STEPS_BETWEEN_SORTS - 10
        model.advance(20)
    for found, true in zip(state_of(around), state_of(held), strict=True):
        assert_close(found, true, 10 * TOLERANCES[precision])
    found, true = around.diagnostics(), held.diagnostics()
    assert found.keys() == true.keys()
    for name in ("kinetic_energy", "potential_energy", "half_mass_radius"):
        np.testing.assert_allclose(found[name], true[name], rtol=10 * TOLERANCES[precision])


@pytest.mark.mpi
@pytest.mark.parametrize("weights", SHARES)
def test_the_same_ranks_give_the_same_bits_however_long_the_batches(communicator, backend, weights):
    shares = SHARES[weights](communicator.size)
    results = []
    for batches in ([30], [1, 9, 20]):
        model = ring(
            clustered(500),
            communicator,
            backend=backend,
            precision="single",
            softening=1e-3,
            weights=shares,
        )
        model.step = STEPS_BETWEEN_SORTS - 10
        for steps in batches:
            model.advance(steps)
        results.append(state_of(model))
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


def saved_of(model):
    """Return this rank's rows of every field, as a checkpoint keeps them."""
    return {name: field.host(0, field.rows) for name, field in model.fields().items()}


def resumed(bodies, communicator, rows, scalars, **options):
    """Return a model restored from rows; before, its bodies are elsewhere."""
    elsewhere = random_box(len(bodies), 6)
    model = make_model(
        Bodies(elsewhere.position, elsewhere.velocity, bodies.mass), 1e-3, communicator, **options
    )
    model.ids = rows("bodies/id")
    model.restore(rows, scalars)
    return model


@pytest.mark.mpi
@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("weights", SHARES)
def test_a_restored_model_goes_on_with_the_same_bits(communicator, backend, precision, weights):
    """Between two sorts the order of the sources is no longer that of the positions."""
    bodies, shares = plummer(200, 5), SHARES[weights](communicator.size)
    options = {"backend": backend, "precision": precision, "softening": 0.05, "weights": shares}
    model = ring(bodies, communicator, **options)
    model.step = STEPS_BETWEEN_SORTS - 20
    model.advance(40)
    saved = saved_of(model)
    other = resumed(
        bodies, communicator, saved.__getitem__, model.scalars(), exchange=RingExchange, **options
    )
    for each in (model, other):
        each.advance(30)
    for first, second in zip(state_of(model), state_of(other), strict=True):
        np.testing.assert_array_equal(first, second)
    assert model.diagnostics() == other.diagnostics()


@pytest.mark.mpi
@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("exchange", [AllgatherExchange, RingExchange])
@pytest.mark.parametrize("saver", [AllgatherExchange, RingExchange])
def test_what_one_exchange_saved_another_restores_on_other_shares(
    communicator, backend, precision, exchange, saver
):
    bodies = unequal(plummer(310, 5))
    options = {"backend": backend, "precision": precision, "softening": 0.05}
    model = make_model(bodies, 1e-3, communicator, exchange=saver, **options)
    model.advance(10)
    everywhere = {name: whole(model, name) for name in model.fields()}
    np.testing.assert_array_equal(np.sort(everywhere["gravity/order"]), np.arange(310))
    shares = [1.0 + rank for rank in range(communicator.size)]
    target = make_model(bodies, 1e-3, communicator, exchange=exchange, weights=shares, **options)
    own = target.exchange.own
    target.restore(lambda name: everywhere[name][own], model.scalars())
    for each in (model, target):
        each.advance(10)
    for found, true in zip(state_of(target), state_of(model), strict=True):
        assert_close(found, true, 10 * TOLERANCES[precision])


@pytest.mark.mpi
def test_a_rank_holds_its_own_bodies_and_two_blocks(communicator):
    model = ring(plummer(1000, 1), communicator, precision="single", softening=0.1)
    most = -(-1000 // communicator.size)
    assert (
        len(model.force.state.position)
        == len(model.force.state.mass)
        == model.exchange.partition.counts[communicator.rank]
    )
    assert [len(block.position) for block in model.force.blocks] == [most, most]
    assert model.force.kernels.mass.size == most


@pytest.mark.mpi(min_size=2)
def test_messages_travel_while_a_block_is_summed(communicator):
    """Each message is begun before the sum over the current block and finished after it."""
    happened = []

    class Noted(RingExchange):
        def begin(self, outgoing, incoming):
            happened.append("begin")
            messages = super().begin(outgoing, incoming)
            finish = messages.finish
            messages.finish = lambda: (happened.append("finish"), finish())
            return messages

    model = make_model(plummer(100, 1), 1e-3, communicator, softening=0.1, exchange=Noted)
    sums = model.force.kernels.accelerations
    model.force.kernels.accelerations = lambda state: (happened.append("sum"), sums(state))
    happened.clear()
    model.advance(1)
    assert happened == ["begin", "sum", "finish"] * (communicator.size - 1) + ["sum"]


def test_a_block_is_one_piece_of_memory():
    block = Block.make(make_backend("cpu"), 300)
    block.memory[:] = 255
    assert (block.order == -1).all()
    assert np.isnan(block.position).all()
    assert np.isnan(block.mass).all()
    assert (block.starts.size, block.chunks.size, block.position.shape) == (5, 1, (300, 3))
    assert (block.starts == -1).all()
    assert block.memory.nbytes == 300 * 36 + 5 * 4 + 4


@settings(max_examples=15)
@given(
    number=st.integers(1, 40),
    seed=st.integers(0, 1000),
    shares=st.lists(st.integers(0, 5), min_size=4, max_size=4),
)
@pytest.mark.mpi
def test_any_shares_of_any_bodies(communicator, number, seed, shares):
    weights = [float(share) for share in shares[: communicator.size]]
    bodies = random_box(number, seed)
    model = ring(bodies, communicator, softening=0.1, weights=weights if any(weights) else None)
    true = reference.accelerations(bodies.position, bodies.mass, 0.1)
    np.testing.assert_allclose(
        whole(model, "bodies/acceleration"), true, rtol=0, atol=1e-12 * max(np.abs(true).max(), 1)
    )
