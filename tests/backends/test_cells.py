"""Functions of a cell: compiled, they do what they do in Python."""

import importlib.util

import numpy as np
import pytest
from support import cell_functions
from support.bodies import make_backend
from support.cell_functions import limited_slope, smooth

from hybrid_nbody.backends.cells import make_program
from hybrid_nbody.backends.cells.rehearsal import Rehearsal
from hybrid_nbody.backends.cells.translation import TranslationError, translated

SHAPE = (5, 6, 7)
REGION = (1, 4, 1, 5, 1, 6)


def cells(colour=None):
    """Return the cells of the region, or those of one colour."""
    k0, k1, j0, j1, i0, i1 = REGION
    found = [(k, j, i) for k in range(k0, k1) for j in range(j0, j1) for i in range(i0, i1)]
    return [cell for cell in found if colour is None or (sum(cell) + colour) % 2 == 0]


@pytest.fixture
def backend(backend_name):
    """A backend of each kind."""
    return make_backend(backend_name, threads=2)


@pytest.fixture
def program(backend):
    """The functions of `support.cell_functions`, compiled."""
    return make_program(backend, [cell_functions], "f8")


@pytest.fixture
def numbers():
    """Numbers of both signs."""
    return np.random.default_rng(3).normal(size=SHAPE)


def test_cells_are_computed_as_in_python(backend, program, numbers):
    expected = np.zeros(SHAPE)
    for cell in cells():
        limited_slope(*cell, numbers, 0.3, expected)
    found = backend.zeros(SHAPE, "f8")
    program.run("limited_slope", REGION, backend.upload(numbers), 0.3, found)
    np.testing.assert_allclose(backend.download(found), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("colour", [0, 1])
def test_one_colour_is_computed_alone(backend, program, numbers, colour):
    found = backend.upload(numbers)
    for cell in cells(colour):
        smooth(*cell, numbers)
    program.run("smooth", REGION, found, parity=colour)
    np.testing.assert_allclose(backend.download(found), numbers, rtol=1e-14, atol=1e-15)


def test_planes_are_summed_and_searched(backend, program, numbers):
    inside = numbers[1:4, 1:5, 1:6]
    on_device = backend.upload(numbers)
    sums = program.reduce("square", REGION, on_device)
    largest = program.reduce("size", REGION, on_device)
    np.testing.assert_allclose(sums, (inside**2).sum(axis=(1, 2)), rtol=1e-14)
    np.testing.assert_array_equal(largest, np.abs(inside).max(axis=(1, 2)))


def test_other_reductions_leave_one_that_is_under_way(backend, program, numbers):
    """And the arrays may change once it is queued."""
    on_device = backend.upload(numbers)
    expected = program.reduce_each(("square", REGION, on_device), ("size", REGION, on_device))
    wait = program.reduce_ahead(("square", REGION, on_device), ("size", REGION, on_device))
    program.run("smooth", REGION, on_device)
    others = program.reduce("square", REGION, backend.upload(2.0 * numbers))
    for found, one in zip(wait(), expected, strict=True):
        np.testing.assert_array_equal(found, one)
    np.testing.assert_array_equal(others, 4.0 * expected[0])


@pytest.mark.parametrize("rows", [31, 32, 33, 70])
def test_all_rows_of_planes_are_summed_and_searched(backend, program, rows):
    numbers = np.random.default_rng(3).normal(size=(4, rows + 2, 9))
    numbers[2, rows, 4] = np.nan
    region = (1, 4, 1, rows + 1, 1, 8)
    inside = numbers[1:4, 1 : rows + 1, 1:8]
    sums = program.reduce("square", region, backend.upload(numbers))
    largest = program.reduce("size", region, backend.upload(numbers))
    np.testing.assert_allclose(sums, (inside**2).sum(axis=(1, 2)), rtol=1e-13)
    np.testing.assert_array_equal(largest, np.abs(inside).max(axis=(1, 2)))


@pytest.mark.parametrize("shape", [SHAPE, (12, 13, 31)], ids=["few", "rounds"])
def test_a_sequence_does_what_its_calls_do(backend, program, shape):
    """Each call needs what those before have written."""
    region = (2, shape[0] - 1, 1, shape[1] - 1, 1, shape[2] - 1)
    given = np.random.default_rng(5).normal(size=shape)
    found = [backend.upload(given) for _ in range(2)]
    slopes = [backend.zeros(shape, "f8") for _ in range(2)]

    def change(a, slope):
        for most in (0.3, 0.7, -0.2):
            program.run("limited_slope", region, a, most, slope)
            program.run("smooth", region, slope, parity=0)
            program.run("smooth", region, slope, parity=1)
            program.run("limited_slope", region, slope, most, a)

    change(found[0], slopes[0])
    for _ in range(2):  # the second time the device knows the calls
        found[1][...] = backend.upload(given)
        slopes[1][...] = 0.0
        with program.sequence():
            change(found[1], slopes[1])
        for one_by_one, together in (found, slopes):
            expected = backend.download(one_by_one)
            np.testing.assert_array_equal(backend.download(together), expected)
        assert np.abs(expected).max() > 0.0


def test_a_sequence_that_fails_is_not_begun(backend, program, numbers):
    on_device = backend.upload(numbers)
    with pytest.raises(KeyError), program.sequence():
        program.run("smooth", REGION, on_device, parity=0)
        program.run("unknown", REGION, on_device)
    with program.sequence():
        pass
    program.run("smooth", REGION, on_device, parity=1)


def test_a_rehearsal_refuses_what_is_not_for_sequences(program):
    rehearsal = Rehearsal(program.functions)
    with rehearsal.sequence():
        rehearsal.run("smooth", REGION)
        with pytest.raises(AssertionError, match="square"):
            rehearsal.run("square", REGION)
    rehearsal.run("square", REGION)
    assert rehearsal.names == ["smooth", "square"]


ENDLESS = """
from hybrid_nbody.backends.cells import Cells, Int, over_cells

@over_cells
def forever(k: Int, j: Int, i: Int, a: Cells) -> None:
    while a[k, j, i] > 0.0:
        a[k, j, i] -= 1.0
"""


def test_what_cannot_be_translated_is_refused(tmp_path):
    path = tmp_path / "endless.py"
    path.write_text(ENDLESS)
    spec = importlib.util.spec_from_file_location("endless", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(TranslationError, match="may assign, branch, loop and return"):
        translated([module])


def test_no_function_takes_the_place_of_another():
    with pytest.raises(TranslationError, match="there is a function .* already"):
        translated([cell_functions, cell_functions])


def test_compiled_beforehand_is_what_is_called(numbers):
    program = make_program(make_backend("cpu", threads=2), [cell_functions], "f8")
    compiled = [name for name, function in program.functions.items() if function.role]
    program.compile(compiled, width=4)
    loops = [getattr(program.loops, f"run_{name}") for name in compiled]
    before = [list(loop.signatures) for loop in loops]
    program.run("limited_slope", REGION, numbers, 0.3, np.zeros(SHAPE))
    program.run("smooth", REGION, numbers, parity=1)
    program.reduce("square", REGION, numbers)
    program.reduce("size", REGION, numbers)
    assert [list(loop.signatures) for loop in loops] == before
    assert all(len(signatures) == 1 for signatures in before)
