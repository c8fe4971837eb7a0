"""Sums by a tree on a GPU, against all pairs in float64; its sources and tables without one."""

from functools import cache

import numpy as np
import pytest
from support.bodies import clustered, make_backend
from support.gpus import H200
from support.nvrtc import (
    assert_same_for_all_architectures,
    compile_to_cubin,
    oldest_and_newest,
    words_for,
)
from support.tree import TreeOfOneDevice

from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels import expansion_of, reference
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.kernels.gpu.tree.choices import CHOICES
from hybrid_nbody.nbody.kernels.gpu.tree.curve import MOST_BODIES
from hybrid_nbody.nbody.kernels.gpu.tree.far_field import far_field_on
from hybrid_nbody.nbody.kernels.gpu.tree.launches import (
    FOLDER,
    HEADER,
    OPTIONS,
    SOURCES,
    defines,
    tables,
)
from hybrid_nbody.nbody.kernels.gpu.tree.memory import COUNTS, LEVELS, SHARE, TREE, USED
from hybrid_nbody.nbody.kernels.multi_indices import indices_of
from hybrid_nbody.nbody.step_timer import NullTimer

ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, CHOICES.least_of_float32_pairs, 3e-7, 1e-7)


class Sums(TreeOfOneDevice):
    """Sums by a tree, for an accuracy, over bodies of given masses."""

    def __init__(self, accuracy, mass, softening=0.01, precision="single"):
        expansion = expansion_of(make_backend("gpu"), accuracy, precision)
        super().__init__(expansion, softening**2, mass)

    def __call__(self, position, last=None):
        return self.accelerations(position, last)

    def compared(self, position):
        """Return accelerations whose errors are compared with those of a first force."""
        return self(position, np.linalg.norm(self(position), axis=1))


def errors_of(found, true):
    """Return the errors in units of the rms of the true vectors."""
    return np.linalg.norm(found - true, axis=1) / np.sqrt(np.mean(np.sum(true**2, axis=1)))


def rms(errors):
    return np.sqrt(np.mean(errors**2))


def disc(number, seed=4):
    random = np.random.default_rng(seed)
    radius = random.exponential(0.3, number)
    angle = random.uniform(0, 2 * np.pi, number)
    height = 0.01 * random.standard_normal(number)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), height])


def two_galaxies(number, seed=6):
    bodies = plummer(number, seed).position
    bodies[number // 2 :] += (100.0, 3.0, 0.0)
    return bodies


POSITIONS = {
    "sphere": lambda number: plummer(number, seed=2).position,
    "clumps": lambda number: clustered(number, clusters=64).position,
    "disc": disc,
    "galaxies": two_galaxies,
}


# ---- Without a GPU -------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [3, 4, 7])
@pytest.mark.parametrize("name", SOURCES)
def test_sources_compile(name, order):
    expansion = Expansion(order, 48, 1e-3, double=order == 7, pairs="single")
    macros = defines(expansion, order == 3, far_field_on(H200, expansion))
    options = words_for(macros, OPTIONS)
    source = (FOLDER / f"{name}.cu").read_text()
    assert compile_to_cubin(source, options, oldest_and_newest()[-1])


def test_the_kernels_know_the_tree_as_the_host_does():
    expansion = Expansion(3, 48, 1e-3, double=False, pairs="single")
    facts = {
        "sizeof(Tree)": TREE.itemsize,
        "FINITE": 0,
        "COUNTS": COUNTS,
        "USED": USED,
        "SHARE": SHARE,
        "LEVELS": LEVELS,
    }
    lines = [f"static_assert({name} == {value});" for name, value in facts.items()]
    source = "\n".join(['#include "tree.cuh"', *lines])
    macros = defines(expansion, False, far_field_on(H200, expansion))
    options = words_for(macros, OPTIONS)
    assert compile_to_cubin(source, options, oldest_and_newest()[-1])


def test_other_sources_are_the_same_for_all_architectures():
    others = (FOLDER / f"{name}.cu" for name in SOURCES if name != "far_field")
    assert_same_for_all_architectures(HEADER, *others)


@pytest.mark.parametrize("order", [1, 3, 6])
def test_tables_of_a_shift_to_a_child_are_those_to_a_parent_turned_around(order):
    indices = indices_of(order)
    found = tables(indices)
    up = {
        (target, found["up_source"][k], found["up_power"][k])
        for target in range(len(indices.all))
        for k in range(found["up_start"][target], found["up_start"][target + 1])
    }
    down = {
        (found["down_target"][k], source, found["down_power"][k])
        for source in range(len(indices.all))
        for k in range(found["down_start"][source], found["down_start"][source + 1])
    }
    assert up == down
    for target, source, power in up:
        parts = np.add(indices.all[source], indices.all[power])
        assert tuple(parts) == indices.all[target]


# ---- With one ------------------------------------------------------------------------------------


@cache
def unequal(kind, softening):
    """Return positions, masses over three decades, and accelerations."""
    position = POSITIONS[kind](9000)
    mass = 10.0 ** np.random.default_rng(1).uniform(-3, 0, len(position)) / len(position)
    return position, mass, reference.accelerations(position, mass, softening)


@pytest.mark.gpu
@pytest.mark.parametrize("softening", [0.0, 1e-6, 0.01])
@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("kind", POSITIONS)
def test_errors_are_within_the_accuracy(kind, accuracy, softening):
    position, mass, true = unequal(kind, softening)
    errors = errors_of(Sums(accuracy, mass, softening).compared(position), true)
    assert rms(errors) < accuracy
    assert np.percentile(errors, 99.9) < 10 * accuracy


@pytest.mark.gpu
@pytest.mark.parametrize("accuracy", [1e-3, 1e-4])
def test_errors_in_a_cusp_of_many_bodies(accuracy):
    """Half a hundred thousand bodies, as many at each scale from 1e-6 to 1."""
    chance = np.random.default_rng(5)
    number = 60000
    position = chance.uniform(-1, 1, (number, 3))
    radius = 10.0 ** chance.uniform(-6, 0, number)
    position *= (radius / np.linalg.norm(position, axis=1))[:, None]
    mass = np.full(number, 1 / number)
    targets = chance.choice(number, 500, replace=False)
    true = reference.accelerations(position, mass, 0.01, targets=targets)
    errors = errors_of(Sums(accuracy, mass).compared(position)[targets], true)
    assert rms(errors) < accuracy
    assert np.percentile(errors, 99.9) < 10 * accuracy


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
def test_bodies_without_softening(precision):
    position = plummer(5000, seed=2).position
    mass = np.full(5000, 1 / 5000)
    found = Sums(1e-4, mass, 0.0, precision).compared(position)
    errors = errors_of(found, reference.accelerations(position, mass, 0.0))
    assert rms(errors) < 1e-4


@pytest.mark.gpu
@pytest.mark.parametrize("softening", [0.0, 1e-9])
def test_close_bodies_in_wide_leaves(softening):
    """Pairs and a clump of 40, so close that places about the centres of leaves are all alike."""
    chance = np.random.default_rng(7)
    position = chance.uniform(-1, 1, (4000, 3))
    position[::2] = position[1::2] + 1e-8 * chance.normal(size=(2000, 3))
    position[:40] = position[0] + 1e-8 * chance.normal(size=(40, 3))
    mass = np.full(4000, 1 / 4000)
    true = reference.accelerations(position, mass, softening)
    found = Sums(1e-5, mass, softening).compared(position)
    assert rms(errors_of(found, true)) < 1e-5


@pytest.mark.gpu
@pytest.mark.parametrize("number", [1, 2, 31, 48, 49, 63, 64, 65, 128, 129, 1000, 4097])
def test_any_number_of_bodies(number):
    position = plummer(number, seed=2).position if number > 1 else np.ones((1, 3))
    mass = np.full(number, 1 / number)
    found = Sums(1e-4, mass).compared(position)
    true = reference.accelerations(position, mass, 0.01)
    assert np.abs(found - true).max() <= 1e-3 * np.abs(true).max() + 1e-14


@pytest.mark.gpu
@pytest.mark.parametrize("accuracy", [1e-3, 1e-6])
def test_potentials_leave_a_body_itself_out(accuracy):
    position = plummer(5000, seed=3).position
    mass = np.random.default_rng(1).uniform(0.5, 1.5, 5000) / 5000
    sums = Sums(accuracy, mass)
    last = np.linalg.norm(sums(position), axis=1)
    found = sums.potentials(position, last)
    true = -reference.potential(position, mass, 0.01)
    assert rms(found / true - 1) < accuracy


@pytest.mark.gpu
@pytest.mark.parametrize("softening", [0.0, 0.01])
def test_many_bodies_at_one_place_and_one_far_away(softening):
    position = plummer(3000, seed=3).position
    position[:500] = position[0]
    position[-1] = (1e9, 0, 0)
    mass = np.full(3000, 1 / 3000)
    mass[100:200] = 0
    found = Sums(1e-4, mass, softening).compared(position)
    # so close that bodies at one place do not attract each other there either
    true = reference.accelerations(position, mass, max(softening, 1e-30))
    assert rms(errors_of(found, true)) < 1e-4


@pytest.mark.gpu
def test_a_clump_that_exhausts_the_keys():
    position = plummer(3000, seed=3).position
    position[:1500] = position[0] + 1e-9 * plummer(1500, seed=5).position
    mass = np.full(3000, 1 / 3000)
    found = Sums(1e-4, mass).compared(position)
    assert rms(errors_of(found, reference.accelerations(position, mass, 0.01))) < 1e-4


@pytest.mark.gpu
def test_bits_are_the_same_again_and_in_any_order_of_the_bodies():
    position = plummer(20_000, seed=4).position
    mass = np.full(20_000, 1 / 20_000)
    sums = Sums(1e-4, mass)
    last = np.linalg.norm(sums(position), axis=1)
    first = sums(position, last)
    for _ in range(3):
        np.testing.assert_array_equal(sums(position, last), first)
    shuffled = np.random.default_rng(0).permutation(20_000)
    again = Sums(1e-4, mass)(position[shuffled], last[shuffled])
    np.testing.assert_array_equal(again, first[shuffled])


@pytest.mark.gpu
def test_a_replayed_force_has_the_bits_of_a_first_one():
    """Cells become more and fewer, as memory for them does not."""
    mass = np.full(9000, 1 / 9000)
    sums = Sums(1e-4, mass)
    rows = sums.backend.zeros((9000, 5), "f8")
    for step, kind in enumerate(["sphere"] * 4 + ["clumps"] * 2 + ["sphere"]):
        sums.backend.use()  # CuPy queues on the stream of the backend that was made last
        position = 1.02**step * POSITIONS[kind](9000)
        last = np.linalg.norm(position, axis=1)
        rows[:] = sums.backend.upload(np.column_stack([position, mass, last]))
        found = sums.backend.download(sums.tree.sums(rows, False, NullTimer()))
        np.testing.assert_array_equal(found, Sums(1e-4, mass)(position, last))


@pytest.mark.gpu
@pytest.mark.parametrize("number", [1, 255, 512, 513, 5000, 300_000, MOST_BODIES + 1])
def test_the_order_along_the_curve_is_that_of_a_stable_sort(number):
    """Many bodies have the same keys."""
    tree = Sums(1e-3, np.ones(1)).tree.tree
    position = np.round(np.random.default_rng(1).uniform(0, 40, (number, 4)))
    bodies = tree.backend.upload(position)
    cube = Cube(0.0, 0.0, 0.0, 64.0)
    found = tree.curve(bodies, cube, 1)
    order = tree.backend.download(found.order)
    keys = np.empty(number, np.uint64)
    keys[order] = tree.backend.download(found.keys)
    np.testing.assert_array_equal(np.argsort(keys, kind="stable"), order)
    assert len(np.unique(keys)) == len(np.unique(position[:, :3], axis=0))


@pytest.mark.gpu
@pytest.mark.parametrize("ranks", [2, 3, 256, 257, 600])
def test_ranks_take_the_bodies_between_their_cuts(ranks):
    """Many ranks take none; a key that equals a cut lies behind it."""
    tree = Sums(1e-3, np.ones(1)).tree.tree
    chance = np.random.default_rng(ranks)
    cuts = np.sort(chance.integers(0, 8**21, ranks - 1)).astype(np.uint64)
    cuts[1::3] = cuts[: len(cuts[1::3])]
    cuts.sort()
    host = np.append(chance.integers(0, 8**21, 70_000).astype(np.uint64), cuts)
    keys = tree.backend.upload(host)
    order = tree.backend.download(tree.split(keys, cuts))
    owners = np.searchsorted(cuts, host, side="right")
    np.testing.assert_array_equal(order, np.argsort(owners, kind="stable"))
    bounds = np.unique(np.append(cuts, np.array([0, 8**21], np.uint64)))
    counts = tree.count_between(keys, bounds)()
    np.testing.assert_array_equal(counts, np.histogram(host, bounds)[0])


@pytest.mark.gpu
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("body", [0, 3, 99])
def test_bodies_that_are_not_finite_give_nan_everywhere(value, body):
    position = plummer(100, seed=3).position
    position[body, 1] = value
    assert np.isnan(Sums(1e-3, np.full(100, 0.01))(position)).all()
