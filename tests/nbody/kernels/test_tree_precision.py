"""What a tree sums in float32 and what in float64, by its accuracy and the precision of pairs."""

from dataclasses import replace

import numpy as np
import pytest
from support.bodies import make_backend
from support.tree import TreeOfOneDevice, TreeOfOneRank

from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.kernels.cpu.tree.choices import CHOICES as CPU
from hybrid_nbody.nbody.kernels.expansions import Expansion, expansion_for
from hybrid_nbody.nbody.kernels.gpu.tree.choices import CHOICES as GPU

ONE_LEAF = Expansion(order=4, capacity=128, error=1e-2, double=False, pairs="single")

PRECISIONS = ("single", "mixed", "double")

TREES = [
    pytest.param(TreeOfOneRank, id="cpu"),
    pytest.param(TreeOfOneDevice, id="gpu", marks=pytest.mark.gpu),
]


@pytest.fixture(scope="module", autouse=True)
def backend():
    """Make the backend of a run, which determines how Numba compiles."""
    return make_backend("cpu")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("choices", [CPU, GPU])
def test_expansions_follow_from_the_accuracy_alone(choices, precision):
    least = choices.least_of_float32
    assert not expansion_for(least, precision, choices).double
    assert expansion_for(0.99 * least, precision, choices).double


@pytest.mark.parametrize("choices", [CPU, GPU])
def test_nearby_bodies_are_summed_by_the_precision_where_the_accuracy_allows_it(choices):
    least = choices.least_of_float32_pairs
    above = [expansion_for(least, precision, choices).pairs for precision in PRECISIONS]
    below = [expansion_for(0.99 * least, precision, choices).pairs for precision in PRECISIONS]
    assert above == ["single", "mixed", "double"]
    assert below == ["either", "either", "double"]


@pytest.mark.parametrize("tree_of_one", TREES)
def test_products_of_low_orders_are_in_float64(tree_of_one):
    """Of two clumps a thousandth as wide as distant, what is in float32 is a billionth."""
    chance = np.random.default_rng(15)
    position = 0.2 + 1e-3 * chance.uniform(-1, 1, (200, 3))
    position[100:] -= [0.4, 0.9, 0.6]
    mass = chance.uniform(1, 2, 200)
    mass[100:] = 0  # they feel the others, and nothing near them
    choice = replace(ONE_LEAF, error=1e-4, double=True, pairs="double")
    found = tree_of_one(choice, 0.0, mass).accelerations(position, np.full(200, 200.0))
    exact = reference.accelerations(position, mass)
    np.testing.assert_allclose(found[100:], exact[100:], rtol=5e-11, atol=0)


@pytest.mark.parametrize("tree_of_one", TREES)
def test_mixed_takes_differences_of_exact_places_whatever_the_accuracy(tree_of_one):
    """In one leaf a clump is a thousandth as wide as distant from the centre."""
    chance = np.random.default_rng(21)
    position = chance.uniform(-1, 1, (60, 3))
    position[:30] = 0.9 + 1e-3 * chance.uniform(-1, 1, (30, 3))
    mass = np.full(60, 1 / 60)
    exact = reference.accelerations(position, mass, 1e-3)

    def error(pairs):
        tree = tree_of_one(replace(ONE_LEAF, pairs=pairs), 1e-6, mass)
        allowing_any = np.full(60, 1e9)  # errors are small, compared to that
        found = tree.accelerations(position, allowing_any)
        return np.abs(found - exact).max() / np.abs(exact).max()

    assert error("mixed") < 1e-6 < 1e-5 < error("single")


@pytest.mark.parametrize(
    ("softening", "same", "other"), [(0.0, "double", "single"), (1.0, "single", "double")]
)
def test_nearby_bodies_are_summed_in_float64_where_float32_would_not_do(softening, same, other):
    chance = np.random.default_rng(16)
    position = chance.uniform(-1, 1, (60, 3))
    mass = np.full(60, 1 / 60)
    known = np.linalg.norm(reference.accelerations(position, mass, softening), axis=1)

    def found(pairs):
        choice = replace(ONE_LEAF, error=1e-7, double=True, pairs=pairs)
        return TreeOfOneRank(choice, softening**2, mass).accelerations(position, known)

    np.testing.assert_array_equal(found("either"), found(same))
    assert not np.array_equal(found("either"), found(other))
