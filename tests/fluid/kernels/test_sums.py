"""Sums and largest values in vector code, beside the generated loops."""

import numpy as np
import pytest
from support.bodies import make_backend

from hybrid_nbody.backends.cells import make_program
from hybrid_nbody.backends.simd import LANES
from hybrid_nbody.fluid.kernels.cells import LOOPS, MODULES

NUMBERS = {"dot": 2, "largest": 1, "magnitude": 1, "gained": 2, "lost": 2}
"""Fields that each function is given."""


@pytest.fixture(scope="module", params=["f4", "f8"])
def programs(request):
    """The loops of vectors, and the generated ones."""
    backend = make_backend("cpu", threads=2)
    return [make_program(backend, MODULES, request.param, loops) for loops in (LOOPS, None)]


def given_to(name, program, columns):
    """Return random fields, and the unit that a product is given."""
    random = np.random.default_rng(5)
    fields = [random.normal(size=(7, 5, columns + 3)).astype(program.number) for _ in range(2)]
    more = [0.25] if name == "dot" else []
    return [*fields[: NUMBERS[name]], *more]


@pytest.mark.parametrize("columns", [LANES, LANES + 1, 3 * LANES - 1])
@pytest.mark.parametrize("name", list(NUMBERS))
def test_vectors_find_what_single_cells_do(programs, name, columns):
    region = (2, 6, 1, 4, 2, columns + 2)
    given = given_to(name, programs[0], columns)
    found, expected = (program.reduce(name, region, *given) for program in programs)
    rtol = 1e-6 if programs[0].number is np.float32 else 1e-14
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=0.0)
    assert len(np.unique(found)) == 4


@pytest.mark.parametrize("place", [2, LANES + 1, 2 * LANES])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_the_largest(programs, number, place):
    program = programs[0]
    (field,) = given_to("largest", program, 2 * LANES)
    field[3, 2, place] = number
    found = program.reduce("largest", (2, 6, 1, 4, 2, 2 * LANES + 2), field)
    assert np.isinf(found).tolist() == [False, True, False, False]
    assert not np.isnan(found).any()


def test_a_change_that_is_no_number_shows_in_the_sums(programs):
    before, after = given_to("gained", programs[0], LANES)
    after[2, 2, 5] = np.nan
    for name in ("gained", "lost"):
        found = programs[0].reduce(name, (2, 3, 1, 4, 2, LANES + 2), before, after)
        assert np.isnan(found).all()
