"""Diagnostics of a few bodies: the bits of those of many."""

import numpy as np
import pytest
from support.ranks import alone

from hybrid_nbody.nbody import diagnostics
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.few_bodies import MOST_FEW, sums_of_few

__all__ = ["alone"]


def some(number, seed):
    """Return bodies and potentials of very different sizes, some of them zero."""
    random = np.random.default_rng(seed)

    def numbers(*shape):
        return random.standard_normal(shape) * 2.0 ** random.integers(-30, 30, shape)

    mass = np.abs(numbers(number))
    mass[random.random(number) < 0.2] = 0.0
    bodies = Bodies(numbers(number, 3), numbers(number, 3), mass)
    return bodies, -np.abs(numbers(number))


@pytest.mark.parametrize("number", range(1, MOST_FEW + 1))
def test_bits_are_those_of_sums_over_arrays(number, alone, monkeypatch):
    for seed in range(30):
        bodies, potential = some(number, seed)
        few = diagnostics.measure(bodies, potential, number, alone)
        with monkeypatch.context() as patch:
            patch.setattr(diagnostics, "MOST_FEW", 0)
            many = diagnostics.measure(bodies, potential, number, alone)
        assert repr(few) == repr(many)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e305])
def test_numbers_beyond_all_bounds_are_left_to_arrays(bad, alone):
    bodies, potential = some(3, 1)
    bodies.velocity[1, 2] = bad
    bodies.mass[:] = 1.0
    assert sums_of_few(bodies, potential) is None
    with np.errstate(all="ignore"):
        found = diagnostics.measure(bodies, potential, 3, alone)
    assert not np.isfinite(found["kinetic_energy"])


@pytest.mark.mpi
def test_ranks_without_bodies_take_part(communicator, alone):
    bodies, potential = some(3, 1)
    mine = slice(0, 3 if communicator.rank == communicator.size - 1 else 0)
    own = Bodies(bodies.position[mine], bodies.velocity[mine], bodies.mass[mine])
    found = diagnostics.measure(own, potential[mine], 3, communicator)
    assert repr(found) == repr(diagnostics.measure(bodies, potential, 3, alone))
