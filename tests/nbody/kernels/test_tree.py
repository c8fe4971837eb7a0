"""Sums by a tree of cells are those of the direct sum, to the accuracy that was asked for."""

import math
from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bodies import make_backend
from support.tree import TreeOfOneRank

from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.kernels.cpu.tree.cells import Cells, grown
from hybrid_nbody.nbody.kernels.cpu.tree.choices import CHOICES
from hybrid_nbody.nbody.kernels.cpu.tree.curve import curve_through, sort
from hybrid_nbody.nbody.kernels.cube import Cube, cube_around
from hybrid_nbody.nbody.kernels.expansions import (
    FEW,
    HOPELESS,
    Expansion,
    expansion_for,
    limits_of,
)
from hybrid_nbody.nbody.kernels.multi_indices import indices_of


@pytest.fixture(scope="module", autouse=True)
def backend():
    """Make the backend of a run, which determines how Numba compiles."""
    return make_backend("cpu")


EXPANSIONS = {
    "single": expansion_for(3e-3, "single", CHOICES),
    "double": replace(expansion_for(3e-4, "double", CHOICES), double=True),
}
"""Two that are compiled; the orders of other accuracies would take as long again."""


# ---- Distributions -------------------------------------------------------------------------------


def sphere(chance, number):
    """Return the positions and masses of a Plummer sphere."""
    bodies = plummer(number, seed=int(chance.integers(1000)))
    return bodies.position, bodies.mass


def cube(chance, number):
    return chance.uniform(-1, 1, (number, 3)), np.full(number, 1 / number)


def clumps(chance, number):
    """Return 16 clumps of size 1e-3 in a box of 2."""
    centres = chance.uniform(-1, 1, (16, 3))
    places = centres[chance.integers(0, 16, number)]
    return places + 1e-3 * chance.normal(size=(number, 3)), np.full(number, 1 / number)


def two_galaxies(chance, number):
    position, mass = sphere(chance, number)
    position[::2, 0] += 100
    return position, mass


def disc(chance, number):
    radius = chance.exponential(1, number)
    angle = chance.uniform(0, 2 * np.pi, number)
    height = 0.01 * chance.normal(size=number)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1), np.full(
        number, 1 / number
    )


def unequal_masses(chance, number):
    """Return masses over six decades; every tenth body has none."""
    position, _ = sphere(chance, number)
    mass = 10 ** chance.uniform(-6, 0, number)
    mass[::10] = 0
    return position, mass / mass.sum()


def clump_in_a_field(chance, number):
    """Return bodies of which half are in a clump, of 1e-8 of the size of the others' box."""
    position = chance.uniform(-1, 1, (number, 3))
    position[::2] = 0.3 + 1e-8 * chance.normal(size=(len(position[::2]), 3))
    return position, np.full(number, 1 / number)


def cusp(chance, number):
    """Return as many bodies at each scale from 1e-6 to 1."""
    position, mass = cube(chance, number)
    position *= (10 ** chance.uniform(-6, 0, number) / np.linalg.norm(position, axis=1))[:, None]
    return position, mass


SETS = [sphere, cube, clumps, two_galaxies, disc, unequal_masses, clump_in_a_field]


def sums_of(position, mass, softening=0.0, choice="double"):
    """Return the accelerations by a tree, errors relative to those of a first estimate."""
    tree = TreeOfOneRank(EXPANSIONS[choice], softening**2, mass)
    first = tree.accelerations(position, None)
    return tree.accelerations(position, np.linalg.norm(first, axis=1))


# ---- Accuracy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("softening", [0.0, 0.01])
@pytest.mark.parametrize("make", SETS)
def test_errors_are_within_the_accuracy(make, softening):
    position, mass = make(np.random.default_rng(5), 3000)
    found = sums_of(position, mass, softening)
    check_errors(found, position, mass, softening, 3e-4)


@pytest.mark.parametrize(("softening", "part"), [(0.0, 1.0), (0.01, 2.0)])
def test_errors_in_a_cusp(softening, part):
    """Where the softening flattens it, all errors point the same way."""
    position, mass = cusp(np.random.default_rng(5), 3000)
    found = sums_of(position, mass, softening)
    check_errors(found, position, mass, softening, part * 3e-4)


def test_the_bodies_of_a_clump_do_not_add_up_their_errors():
    """Each is accurate enough by itself as seen from a large leaf, all together are not."""
    position, mass = clump_in_a_field(np.random.default_rng(5), 6000)
    found = sums_of(position, mass, 0.01, "single")
    check_errors(found, position, mass, 0.01, 3e-3)


def test_errors_in_a_cusp_of_many_bodies():
    """Up to `FEW` bodies none is met through an expansion that does not show it well."""
    position, mass = cusp(np.random.default_rng(5), 60000)
    found = sums_of(position, mass, 0.01)
    check_errors(found, position, mass, 0.01, 3e-4)


@pytest.mark.parametrize(("number", "hopeless"), [(FEW, HOPELESS), (FEW + 1, math.inf)])
def test_from_how_many_bodies_on_sources_are_always_opened(number, hopeless):
    assert limits_of(EXPANSIONS["single"], True, number).hopeless == hopeless


@pytest.mark.parametrize("make", [sphere, cube, disc])
def test_errors_are_within_the_accuracy_in_single_precision(make):
    position, mass = make(np.random.default_rng(6), 3000)
    found = sums_of(position, mass, 0.01, "single")
    check_errors(found, position, mass, 0.01, 3e-3)


@pytest.mark.parametrize("choice", list(EXPANSIONS))
@pytest.mark.parametrize("softening", [0.0, 1e-5])
@pytest.mark.parametrize("distance", [1e-3, 1e-5, 1e-7, 1e-8, 1e-10, 1e-12])
def test_two_close_bodies_in_different_large_cells(distance, softening, choice):
    """Powers of their cells' edges over their distance leave the range of float32."""
    chance = np.random.default_rng(16)
    position = chance.uniform(-1, -0.1, (202, 3))
    position[:2] = [[distance, 0.5, 0.5], [-distance, 0.5, 0.5]]
    mass = np.full(202, 1 / 202)
    found = sums_of(position, mass, softening, choice)
    exact = reference.accelerations(position, mass, softening)
    errors = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert errors.max() <= 0.02


def check_errors(found, position, mass, softening, accuracy):
    """Check the rms of errors, and that all but a thousandth are within ten times the accuracy."""
    targets = np.random.default_rng(7).choice(len(mass), 500, replace=False)
    exact = reference.accelerations(position, mass, softening, targets=targets)
    scale = np.sqrt(np.mean(np.sum(exact**2, axis=1)))
    errors = np.linalg.norm(found[targets] - exact, axis=1) / scale
    assert np.sqrt(np.mean(errors**2)) <= accuracy
    assert np.quantile(errors, 0.999) <= 10 * accuracy


@pytest.mark.parametrize("softening", [0.0, 0.01])
def test_potentials(softening):
    position, mass = sphere(np.random.default_rng(8), 2000)
    tree = TreeOfOneRank(EXPANSIONS["double"], softening**2, mass)
    first = np.linalg.norm(tree.accelerations(position, None), axis=1)
    found = -tree.potentials(position, first)
    exact = reference.potential(position, mass, softening)
    errors = found / exact - 1
    assert np.sqrt(np.mean(errors**2)) <= 3e-4
    assert np.quantile(np.abs(errors), 0.999) <= 3e-3
    energy = np.sum(mass * exact)
    assert abs(np.sum(mass * found) / energy - 1) < 1e-5


def test_a_smaller_error_is_asked_for_and_found():
    """Order and leaves stay: cells open earlier."""
    position, mass = cube(np.random.default_rng(9), 2000)
    exact = reference.accelerations(position, mass)
    scale = np.linalg.norm(exact, axis=1)
    found = []
    for error in (1e-2, 1e-3, 1e-4):
        choice = Expansion(order=4, capacity=32, error=error, double=True, pairs="double")
        sums = TreeOfOneRank(choice, 0.0, mass).accelerations(position, scale)
        found.append(np.max(np.linalg.norm(sums - exact, axis=1) / scale))
    assert found[0] > 3 * found[1] > 9 * found[2] > 0


def test_equal_masses_are_not_thought_to_be_a_point():
    """Their odd multipoles vanish: the last power of order 3 says nothing."""
    position = np.array([[0.15, 0.25, 0.25], [0.35, 0.25, 0.25], [-0.05, 0.25, 0.25]])
    mass = np.ones(3)
    exact = reference.accelerations(position, mass)
    choice = Expansion(order=3, capacity=2, error=1e-3, double=False, pairs="single")
    known = np.linalg.norm(exact, axis=1)
    found = TreeOfOneRank(choice, 0.0, mass).accelerations(position, known)
    np.testing.assert_allclose(found[2], exact[2], rtol=1e-3, atol=1e-4)


# ---- Bits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", EXPANSIONS)
def test_threads_do_not_change_a_bit(choice):
    position, mass = two_galaxies(np.random.default_rng(10), 1500)
    tree = TreeOfOneRank(EXPANSIONS[choice], 1e-4, mass)
    known = np.full(len(mass), 0.3)
    before = numba.get_num_threads()
    results = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        results.append(tree.accelerations(position, known))
    numba.set_num_threads(before)
    np.testing.assert_array_equal(results[0], results[1])


def test_lists_that_are_too_short_grow():
    position, mass = sphere(np.random.default_rng(11), 1000)
    known = np.full(len(mass), 0.3)
    tree = TreeOfOneRank(EXPANSIONS["double"], 0.0, mass)
    plenty = tree.accelerations(position, known)
    tree.sums.capacity = 200
    np.testing.assert_array_equal(tree.accelerations(position, known), plenty)
    assert tree.sums.capacity > 200


# ---- Odd sets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 63, 64, 65])
def test_few_bodies(number):
    position, mass = cube(np.random.default_rng(12), number)
    exact = reference.accelerations(position, mass)
    np.testing.assert_allclose(sums_of(position, mass), exact, rtol=1e-3, atol=1e-12)


def test_bodies_at_one_place_attract_others_only():
    position = np.concatenate([np.zeros((200, 3)), [[1.0, 2.0, 2.0]]])
    mass = np.full(201, 0.01)
    found = sums_of(position, mass, 0.1)
    exact = reference.accelerations(position, mass, 0.1)
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("size", [1e-5, 1e-8, 1e-10])
def test_a_clump_deeper_than_one_word_of_the_keys(size):
    chance = np.random.default_rng(13)
    position = chance.uniform(-1, 1, (1000, 3))
    position[:500] = 0.3 + size * chance.normal(size=(500, 3))
    mass = np.full(1000, 1e-3)
    check_errors(sums_of(position, mass), position, mass, 0.0, 3e-4)


def test_one_body_far_away():
    position, mass = sphere(np.random.default_rng(14), 1000)
    position[0] = [1e9, 0, 0]
    check_errors(sums_of(position, mass), position, mass, 0.0, 3e-4)


@pytest.mark.parametrize("half", [3e-8, 1e-9])
def test_a_close_pair_in_two_leaves_in_single_precision(half):
    """Float32 rounds their places about the centres by a tenth of their distance, or to one."""
    position, mass = cube(np.random.default_rng(16), 2000)
    around = cube_around(position.min(axis=0), position.max(axis=0))
    middle = np.array(around[:3]) + around.edge / 2
    position[:2] = middle
    position[:2, 1:] += 0.3
    position[:2, 0] += [-half, half]
    exact = reference.accelerations(position, mass, targets=[0, 1])
    found = sums_of(position, mass, choice="single")[:2]
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())


# ---- The curve and the cells ---------------------------------------------------------------------


@given(st.lists(st.integers(0, 2**63 - 1), max_size=300), st.integers(0, 60))
def test_keys_are_sorted_as_numpy_does(values, shift):
    keys = np.array(values, np.uint64) >> np.uint64(shift)
    order = np.arange(len(keys), dtype=np.int32)
    expected = np.argsort(keys, kind="stable")
    found = keys.copy()
    sort(found, order)
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(found, keys[expected])


@given(
    st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 3), min_size=1, max_size=20),
    st.floats(-1e3, 1e3),
)
def test_the_cube_holds_all_bodies(places, shift):
    position = np.array(places) + shift
    around = cube_around(position.min(axis=0), position.max(axis=0))
    corner = np.array(around[:3])
    assert (position >= corner).all()
    assert (position < corner + around.edge).all()


def test_cells_hold_the_bodies_of_their_children():
    position, _ = sphere(np.random.default_rng(15), 3000)
    around = cube_around(position.min(axis=0), position.max(axis=0))
    order, keys = curve_through(position, around, 1)
    cells = grown(whole(3000), keys, lambda first, last, level: last - first > 20)
    size = cells.last - cells.first
    assert size[0] == 3000
    assert ((cells.children == 0) == (size <= 20)).all()
    for cell in np.flatnonzero(cells.children):
        below = slice(cells.child[cell], cells.child[cell] + cells.children[cell])
        assert cells.first[below].tolist() == [cells.first[cell], *cells.last[below][:-1]]
        assert cells.last[below][-1] == cells.last[cell]
        assert (cells.level[below] == cells.level[cell] + 1).all()
    for cell in range(len(size)):
        check_place(
            position[order[cells.first[cell] : cells.last[cell]]], around, cells.level[cell]
        )


def whole(number):
    """Return the root of all cells."""
    nothing = np.zeros(1, np.int32)
    return Cells(nothing, np.full(1, number, np.int32), nothing, nothing, nothing)


def check_place(inside, around: Cube, level):
    """Check that bodies share one of the cubes of a level."""
    edge = around.edge * 2.0**-level
    places = np.floor((inside - np.array(around[:3])) / edge)
    assert (places == places[0]).all()


# ---- Tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", range(1, 9))
def test_a_shifted_expansion_is_that_of_shifted_bodies(order):
    chance = np.random.default_rng(order)
    place = chance.normal(size=3)
    shift = chance.normal(size=3)
    indices = indices_of(order)
    powers = np.array(indices.all)

    def moments(x):
        return np.prod(x**powers, axis=1) / indices.factorials

    terms = moments(place)[indices.shift.source] * moments(shift)[indices.shift.power]
    found = np.add.reduceat(terms, indices.shift.starts[:-1])
    np.testing.assert_allclose(found, moments(place + shift), rtol=1e-10, atol=1e-12)
