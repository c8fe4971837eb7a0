"""Sums by a tree that each GPU of a host has whole: where shares begin, and bits on any ranks."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bodies import clustered, make_backend, make_model, whole
from support.ranks import transport_of
from support.tree_forces import make_force

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.forces.tree.force import _sums_by_shares
from hybrid_nbody.nbody.forces.tree.shares import MOST_WHOLE, PIECES, SumsByShares, cuts_of
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.step_timer import NullTimer
from hybrid_nbody.parallel.transport.peer import peer_memory

# ---- Where shares begin --------------------------------------------------------------------------


@given(
    seed=st.integers(0, 1000),
    number=st.integers(1, 3 * PIECES),
    ranks=st.integers(1, 8),
)
def test_shares_hold_every_body_once(seed, number, ranks):
    work = np.random.default_rng(seed).exponential(size=PIECES) ** 3
    cuts = cuts_of(np.floor(work), number, ranks)
    assert cuts.shape == (ranks + 1,)
    assert (cuts[0], cuts[-1]) == (0, number)
    assert (np.diff(cuts) >= 0).all()


def test_shares_take_the_same_work():
    of_a_piece = 50
    work = np.linspace(1, 9, PIECES)
    cuts = cuts_of(work, of_a_piece * PIECES, 4)
    of_bodies = np.repeat(work / of_a_piece, of_a_piece)
    found = [of_bodies[start:end].sum() for start, end in zip(cuts[:-1], cuts[1:], strict=True)]
    np.testing.assert_allclose(found, work.sum() / 4, rtol=1e-3, atol=0)


@pytest.mark.parametrize("number", [2, 500, 1500, 4 * PIECES])
def test_shares_are_equal_where_no_work_was_counted(number):
    cuts = cuts_of(np.zeros(PIECES), number, 2)
    assert cuts.tolist() == [0, number // 2, number]


class Share:
    """A rank's share of the sums, which notes what it is asked for."""

    def __init__(self, communicator):
        self.rank = communicator.rank
        self.asked = []
        self.cuts = []

    def cut(self, cuts):
        self.asked.append("cut")
        self.cuts = cuts.tolist()

    def collect(self, bodies):
        self.asked.append("collect")

    def add_up(self, potentials):
        self.asked.append("add up")

    def gather(self, potentials):
        self.asked.append("gather")
        return potentials

    def work(self, pieces):
        self.asked.append("work")
        return np.arange(pieces, dtype=float) * (self.rank == 0)


@pytest.mark.mpi
def test_work_is_shared_out_for_the_first_forces_and_later_again(communicator):
    share = Share(communicator)
    sums = SumsByShares(share, communicator, 10 * PIECES)
    force = ["collect", "add up", "gather"]
    turn = [*force, "work", "cut"]
    for _ in range(70):
        assert sums.sums(None, True, NullTimer()) is True
    assert share.asked == ["cut", *turn, *turn, *(63 * force), *turn, *(4 * force)]
    assert len(set(communicator.gather(tuple(share.cuts)))) == 1
    if communicator.size > 1:
        assert share.cuts[1] > 10 * PIECES // communicator.size  # work grows along the curve


@pytest.mark.parametrize(
    "exchange, number",
    [
        (SimpleNamespace(alone=True, transport=None), 5),
        (SimpleNamespace(alone=False, transport=SimpleNamespace(peers=None)), 5),
        (SimpleNamespace(alone=False, transport=SimpleNamespace(peers="all")), MOST_WHOLE + 1),
    ],
    ids=["one rank", "no memory of others", "too many"],
)
def test_nobody_has_the_whole_tree(exchange, number):
    setup = SimpleNamespace(exchange=exchange, number=number)
    assert _sums_by_shares(setup, tree=None) is None


# ---- On GPUs -------------------------------------------------------------------------------------


def two_kinds(number):
    """Return bodies half of which are in a clump of a millionth of the size of the others."""
    bodies = plummer(number, seed=5)
    bodies.position[: number // 2] *= 1e-6
    return bodies


SETS = {
    "one": lambda: plummer(1, seed=3),
    "three": lambda: plummer(3, seed=3),
    "sphere": lambda: plummer(30011, seed=3),
    "clumps": lambda: clustered(20001, clusters=5),
    "two kinds": lambda: two_kinds(12345),
    "crowded": lambda: Bodies(np.zeros((500, 3)), np.zeros((500, 3)), np.full(500, 1 / 500)),
}

WEIGHTS = {
    "equal": lambda size: [1.0] * size,
    "uneven": lambda size: [rank + 0.5 for rank in range(size)],
    "all on the last": lambda size: [0.0] * (size - 1) + [1.0],
}

NAMES = ("bodies/position", "bodies/velocity", "gravity/acceleration")


@cache
def gpu_of(local_rank):
    return make_backend("gpu", local_rank=local_rank)


@pytest.fixture
def backend(communicator):
    return gpu_of(communicator.local_rank)


@pytest.fixture
def transport(communicator, backend):
    """A transport with the memory of all ranks, of which several may share a GPU."""
    found = transport_of(backend, communicator)
    if found.peers is None:
        found.peers = peer_memory(backend, communicator)
    if found.peers is None:
        pytest.skip("the GPUs cannot reach each other's memory")
    return found


@pytest.fixture
def pair_of_models(communicator, alone, backend, transport):
    """Return a function that makes a model of all ranks and the same of one."""

    def make(bodies, weights="equal", softening=0.05):
        options = {"backend": backend, "softening": softening, "make_force": make_force}
        options["precision"] = "single"
        shares = {"weights": WEIGHTS[weights](communicator.size), "transport": transport}
        together = make_model(bodies, 1e-3, communicator, **shares, **options)
        assert together.force.tree.by_shares
        return together, make_model(bodies, 1e-3, alone, **options)

    return make


def assert_same(together, by_itself):
    """Assert that two models have the same bits."""
    for name in NAMES:
        np.testing.assert_array_equal(whole(together, name), whole(by_itself, name), err_msg=name)
    np.testing.assert_equal(together.diagnostics(), by_itself.diagnostics())


@pytest.mark.gpu
@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("softening", [0.0, 0.05])
@pytest.mark.parametrize("kind", SETS)
def test_ranks_have_the_bits_of_one(pair_of_models, kind, softening, weights):
    models = pair_of_models(SETS[kind](), weights, softening)
    for steps in (1, 1, 3, 4, 70):  # shares begin anew after three forces, and after 64 more
        for model in models:
            model.advance(steps)
        assert_same(*models)


@pytest.mark.gpu
@pytest.mark.mpi(min_size=2)
def test_shares_may_outgrow_their_memory(pair_of_models, communicator):
    """All bodies are one rank's, and then another's."""
    together, by_itself = pair_of_models(plummer(20000, seed=6))
    share = together.force.tree.by_shares.tree
    for rank in range(communicator.size):
        cuts = [0] * (rank + 1) + [20000] * (communicator.size - rank)
        share.cut(np.array(cuts))
        for model in (together, by_itself):
            model.advance(1)
        assert_same(together, by_itself)


@pytest.mark.gpu
@pytest.mark.mpi(min_size=2)
def test_a_body_that_is_nowhere_is_found_by_all(pair_of_models, communicator):
    together, _ = pair_of_models(plummer(3000, seed=6))
    if communicator.is_root:
        together.force.bodies.position[7, 1] = np.nan
    together.force.accelerations(NullTimer())
    assert np.isnan(whole(together, "gravity/acceleration")).all()


@pytest.mark.gpu
@pytest.mark.mpi(min_size=2)
def test_work_is_shared_out(pair_of_models, communicator):
    """A clump takes more time than its share of the bodies."""
    together, _ = pair_of_models(two_kinds(100000))
    together.advance(3)
    share = together.force.tree.by_shares.tree
    work = communicator.gather(share.work(PIECES).sum())
    assert max(work) < 1.1 * np.mean(work)
