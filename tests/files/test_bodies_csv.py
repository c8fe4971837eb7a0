"""Bodies of a plane in the course's format, with comments, a trailing f and empty cells."""

import numpy as np
import pytest

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.files.bodies_csv import RANDOM_SPEED

SPACE = "the columns are x,y,z,vx,vy,vz,m"
PLANE = "the columns are x,y,vx,vy,m"


@pytest.fixture
def bodies_of(in_folder):
    """Return a function that reads a table from text: (N, 7)."""

    def read(text, seed=1):
        (in_folder / "plane.csv").write_text(text)
        bodies = read_bodies("plane.csv", seed)
        return np.column_stack([bodies.position, bodies.velocity, bodies.mass])

    return read


@pytest.fixture
def refusal_of(in_folder, refused):
    """Return a function that gives the line that a text is refused with."""

    def line(text):
        (in_folder / "plane.csv").write_text(text)
        return refused(InputError, read_bodies, "plane.csv")

    return line


@pytest.mark.parametrize(
    "header", ["", "x,y,vx,vy,m\n", "# x, y, vx, vy, m\n\n", ' x , "y",vx,vy,m\n']
)
def test_with_a_header_or_without(bodies_of, header):
    table = bodies_of(header + "0.25, 0.5f, -1e-3F, .5, 1.f\n# the end of the first\n1,2,3,4,5\n")
    np.testing.assert_array_equal(table, [[0.25, 0.5, 0, -1e-3, 0.5, 0, 1], [1, 2, 0, 3, 4, 0, 5]])


def test_columns_in_the_order_of_the_header(bodies_of):
    np.testing.assert_array_equal(bodies_of("m,vy,vx,y,x\n5,4,3,2,1f\n"), [[1, 2, 0, 3, 4, 0, 5]])


@pytest.mark.parametrize(
    "text",
    [
        "id,x,y,z,vx,vy,vz,m\n9007199254740993,1,2,3,4,5,6,7\n-2,1,2,3,4,5,6,7\n",
        "x,y,vx,vy,m,id\n1,2f,,,7,9007199254740993\n1,2,,,7,-2\n",
    ],
)
def test_identities_beside_the_numbers(in_folder, text):
    """To the last digit, which float64 would lose."""
    (in_folder / "flat.csv").write_text(text)
    bodies = read_bodies("flat.csv")
    np.testing.assert_array_equal(bodies.id, np.array([9007199254740993, -2]))
    np.testing.assert_array_equal(bodies.mass, [7, 7])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,2,3,4,5,6,7,1.0", "column 'id': not a whole number (got '1.0')"),
        ("1,2,3,4,5,6,7,", "column 'id': not a whole number (got '')"),
        ("1,2,3,4,5,6,7,--1", "column 'id': not a whole number (got '--1')"),
        ("1,2,3,4,5,6,7,9223372036854775808", "beyond 64 bits (got '9223372036854775808')"),
        ("1,2,3,4,5,6,7", "column 'id': missing"),
        ("1,2,3,4,5,6,7,8,9", "9 cells, but the header has 8 columns"),
    ],
)
def test_identities_that_are_none(refusal_of, row, message):
    found = refusal_of(f"x,y,z,vx,vy,vz,m,id\n{row}\n")
    assert found.startswith("plane.csv:2: ") and found.endswith(message)


def test_empty_cells_are_drawn_from_the_seed(bodies_of):
    text = ",,,,\n" * 3 + "0.5,,,0,\n"
    table, again, other = bodies_of(text), bodies_of(text), bodies_of(text, seed=2)
    np.testing.assert_array_equal(table, again)
    assert (table[:3, [0, 1, 3, 4]] != other[:3, [0, 1, 3, 4]]).all()
    np.testing.assert_array_equal(table[:, 6], 1 / 4)
    assert (table[3, 0], table[3, 4]) == (0.5, 0)
    assert not table[:, [2, 5]].any()


def test_what_is_given_leaves_what_is_drawn_alone(bodies_of):
    first, second = bodies_of(",,,,\n,,,,\n"), bodies_of("9,,,,\n,,,,\n")
    np.testing.assert_array_equal(first[0, 1:], second[0, 1:])
    np.testing.assert_array_equal(first[1], second[1])


def test_what_is_drawn_fills_the_square(bodies_of):
    table = bodies_of(",,,,1\n" * 2000)
    for values, low, high in ((table[:, :2], 0, 1), (table[:, 3:5], -RANDOM_SPEED, RANDOM_SPEED)):
        assert low <= values.min() < low + 0.01
        assert high - 0.01 < values.max() <= high
        np.testing.assert_allclose(values.mean(axis=0), (low + high) / 2, rtol=0, atol=0.03)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,2,abc,4,5", "column 'vx': not a number (got 'abc')"),
        ("1,2,3,4,5ff", "column 'm': not a number (got '5ff')"),
        ("1,2,3,4,f", "column 'm': not a number (got 'f')"),
        ("1,0x1f,3,4,5", "column 'y': not a number (got '0x1f')"),
        ("inf,2,3,4,5", "column 'x': not finite (got 'inf')"),
        ("1,2,nan,4,5", "column 'vx': not finite (got 'nan')"),
        ("1,1e999f,3,4,5", "column 'y': not a number (got '1e999f')"),
        ("1,2,3,4", "column 'm': missing"),
        ("1,2,3,4,5,6", "6 cells, but the header has 5 columns"),
        ("1,2,3,4,-1f", "column 'm': negative mass (got '-1f')"),
    ],
)
def test_a_fault_names_line_and_column(refusal_of, row, message):
    assert refusal_of(f"# plane\n1,2,3,4,5\n\n{row}\n1,2,3,4,5\n") == f"plane.csv:4: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c,d,e\n", "plane.csv:1: column 'x': not a number (got 'a')"),
        ("x,y,vx,m\n", f"plane.csv:1: missing column 'vy'; {PLANE}"),
        ("x,y,z,vx,m\n", f"plane.csv:1: missing column 'vy', 'vz'; {SPACE}"),
        (
            "1,2,3,4\n",
            "plane.csv:1: expected the header row x,y,z,vx,vy,vz,m, or x,y,vx,vy,m of bodies "
            "in a plane (got '1,2,3,4')",
        ),
        ("x,y,vx,vy,m\n", "plane.csv: no bodies in it; at least one is needed"),
        ("", "plane.csv: an empty file, no bodies in it"),
    ],
)
def test_other_tables(refusal_of, text, message):
    assert refusal_of(text) == message


def test_empty_cells_of_bodies_in_space_are_faults(refusal_of):
    assert refusal_of("x,y,z,vx,vy,vz,m\n1,2,3,4,,6,7\n") == "plane.csv:2: column 'vy': missing"
    assert (
        refusal_of("x,y,z,vx,vy,vz,m\n1,2,3,4,5f,6,7\n")
        == "plane.csv:2: column 'vy': not a number (got '5f')"
    )
