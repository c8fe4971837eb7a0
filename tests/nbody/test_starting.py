"""The bodies that a run starts from: every rank gets its own rows, of bodies drawn or held."""

import numpy as np
import pytest
from support import configs

from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody import starting
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.drawn import BLOCK
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.starting import initial_bodies, on_all_ranks

CONFIG = """
model: nbody
bodies: {{kind: plummer, n: {number}}}
seed: 5
gravity: {{softening: 0.1}}
time: {{dt: 1e-3, steps: 10}}
compute: {{backend: cpu, threads: 1, balance: {balance}}}
"""
NAMES = ("position", "velocity", "mass", "id")


def some_bodies(number):
    """Return bodies of different masses, whose identities are not their indices."""
    random = np.random.default_rng(number)
    vectors = random.standard_normal((2, number, 3))
    return Bodies(*vectors, random.uniform(1, 2, number), random.permutation(number) + 100)


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 50])
def test_ranks_get_the_rows_that_they_ask_the_root_for(communicator, number):
    """The last rank asks for all, the first for none, the others for those from their rank on."""
    whole = some_bodies(number)
    source = on_all_ranks(whole if communicator.is_root else None, communicator)
    is_last = communicator.rank == communicator.size - 1
    first = 0 if is_last else min(communicator.rank, number)
    last = number if is_last or communicator.rank else 0
    found = source.rows(first, last)
    assert len(source) == number
    for name in NAMES:
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name)[first:last])
    np.testing.assert_array_equal(source.masses(), whole.mass)


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 100, BLOCK + 5])
@pytest.mark.parametrize("uneven", [False, True])
def test_a_run_starts_from_the_same_bodies_on_any_number_of_ranks(communicator, number, uneven):
    balance = [1.0 + 9 * rank for rank in range(communicator.size)] if uneven else "auto"
    config = configs.loads(CONFIG.format(number=number, balance=balance), "test.yaml")
    builder = NBodyBuilder(config, communicator)
    model = builder.fresh(builder.initial() if communicator.is_root else None).model
    expected = plummer(number, seed=5)
    for name in NAMES:
        field = model.fields()[f"bodies/{name}"]
        found = communicator.concatenate(field.host(0, field.rows))
        np.testing.assert_array_equal(found, getattr(expected, name))


def test_bodies_must_fit_into_the_memory_of_their_machine(monkeypatch):
    """A machine needs memory for the part of them that its ranks will hold."""
    config = configs.loads(CONFIG.format(number=10**6, balance="auto"), "test.yaml")
    monkeypatch.setattr(starting, "available_memory", lambda: 10**8)
    with pytest.raises(InputError, match="1000000 bodies take 0.15 GB of memory at least"):
        initial_bodies(config)
    assert len(initial_bodies(config, part=0.5)) == 10**6
