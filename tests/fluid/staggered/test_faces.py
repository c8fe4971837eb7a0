"""The faces of the box: what they are, what is refused, and the velocities that they give."""

import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_nbody.fluid.staggered.faces import Face, Faces
from hybrid_nbody.fluid.staggered.formula import Formula
from hybrid_nbody.fluid.staggered.profiles import Expression, Parabolic, Table, Uniform

WALL, SLIP, OUT, WRAP = (Face(kind) for kind in ("no-slip", "free-slip", "outflow", "periodic"))
IN = Face("inflow", Uniform((1.0, 0.0, 0.0)), {"density": 1.0})
BOX = (1.0, 0.5, 0.25)


def points(number=50, seed=3):
    """Return points of the face x- of the box."""
    values = np.random.default_rng(seed).random((number, 3)) * BOX
    values[:, 0] = 0.0
    return values


# --- faces ----------------------------------------------------------------------------------------


def test_faces_tell_their_axes():
    faces = Faces(IN, OUT, SLIP, SLIP, WRAP, WRAP)
    assert faces.pair(0) == (IN, OUT)
    assert faces.pair(2) == (WRAP, WRAP)
    assert list(faces) == [IN, OUT, SLIP, SLIP, WRAP, WRAP]
    assert faces.periodic == (False, False, True)
    assert faces.pair(0)[0].scalars == {"density": 1.0}


def test_faces_know_whether_they_change():
    still = Faces.of_axes(("no-slip", "free-slip", "periodic"))
    shaken = Faces(WALL, WALL, WALL, Face("no-slip", Expression(("sin(t)", "0", "0"))), WRAP, WRAP)
    assert still.steady
    assert not shaken.steady
    flow = Faces(IN, OUT, WALL, WALL, WALL, WALL)
    assert flow.steady


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Face("sticky"), "'sticky' is no kind of face; take one of free-slip, no-slip,"),
        (lambda: Face("inflow"), "an inflow needs a velocity"),
        (lambda: Face("outflow", Uniform((1.0, 0.0, 0.0))), "outflow has no velocity of its own"),
        (lambda: Face("no-slip", None, {"density": 1.0}), "no-slip gives no scalars"),
        (
            lambda: Faces(SLIP, SLIP, WRAP, SLIP, OUT, SLIP),
            "only one of the faces y- and y\\+ is periodic; make both so, or none",
        ),
        (
            lambda: Faces(IN, SLIP, SLIP, SLIP, SLIP, IN),
            "what flows in at x-, z\\+ cannot leave; make another face outflow",
        ),
    ],
)
def test_what_cannot_be_is_refused(made, message):
    with pytest.raises(ValueError, match=message):
        made()


# --- profiles -------------------------------------------------------------------------------------


def test_a_uniform_profile_is_the_same_everywhere():
    assert np.array_equal(Uniform((1.0, 2.0, 3.0)).values(points(), 0.0), [[1.0, 2.0, 3.0]] * 50)


def test_a_parabola_is_largest_in_the_middle_and_zero_at_the_edges():
    profile = Parabolic((2.0, 0.0, 0.0), BOX, (1, 2))
    middle = [[0.0, 0.25, 0.125], [0.0, 0.0, 0.1], [0.0, 0.5, 0.1], [0.0, 0.25, 0.0]]
    assert np.array_equal(profile.values(np.array(middle), 0.0)[:, 0], [2.0, 0.0, 0.0, 0.0])
    quarter = profile.values(np.array([[0.0, 0.125, 0.125]]), 0.0)
    np.testing.assert_allclose(quarter, [[1.5, 0.0, 0.0]], rtol=1e-15, atol=0)


def test_a_parabola_does_not_vary_along_a_periodic_axis():
    profile = Parabolic((2.0, 0.0, 0.0), BOX, (1,))
    ends = np.array([[0.0, 0.25, 0.0], [0.0, 0.25, 0.25]])
    assert np.array_equal(profile.values(ends, 0.0)[:, 0], [2.0, 2.0])


def test_formulas_are_computed_as_they_are_written():
    at = points()
    x, y, z = at.T
    profile = Expression(("4*y*(1 - y)*sin(pi*t)", "where(y < z, -1, 2**3)", "max(x, y, z)/2"))
    expected = [4 * y * (1 - y) * np.sin(np.pi * 0.3), np.where(y < z, -1.0, 8.0)]
    expected.append(np.maximum(np.maximum(x, y), z) / 2)
    np.testing.assert_allclose(profile.values(at, 0.3), np.transpose(expected), rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    ("text", "value"), [("0 < 1 < 2", 1.0), ("2 > 1 == 0", 0.0), ("-+3", -3.0)]
)
def test_comparisons_are_one_or_zero(text, value):
    assert Formula(text)({}) == value


def test_a_formula_that_names_the_time_is_not_steady():
    assert not Expression(("y", "t", "0")).steady
    assert Expression(("tanh(y)", "z", "0")).steady


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4*q", "'q' is unknown in '4\\*q'; a formula has numbers, x, y, z, t, pi, "),
        ("sinh(y)", "the function 'sinh' is unknown"),
        ("y.real", "'y.real' is not allowed"),
        ("__import__('os').system('ls')", "the function .* is unknown"),
        ("[y for y in z]", "is not allowed"),
        ("lambda: 1", "is not allowed"),
        ("y if z else 1", "is not allowed"),
        ("(y := 2)", "is not allowed"),
        ("sin(y, z)", "sin takes 1 number in"),
        ("where(y, 1)", "where takes 3 numbers in"),
        ("min(y)", "min takes 2 or more numbers"),
        ("max(*y)", "max takes 2 or more numbers"),
        ("'1'", "'1' is no number"),
        ("True", "True is no number"),
        ("1j", "1j is no number"),
        ("1e400", "inf is no number"),
        ("y @ z", "an operator is not allowed"),
        ("not y", "an operator is not allowed"),
        ("y and z", "is not allowed"),
        ("y is z", "a comparison is not allowed"),
        ("4*(y", "is no formula"),
        ("", "is no formula"),
        ("(" * 300, "is no formula"),
        ("-" * 499 + "1", "nested 100 levels deep at most"),
        ("y" * 501, "at most 500 characters, not 501"),
    ],
)
def test_anything_else_is_no_formula(text, message):
    with pytest.raises(ValueError, match=message):
        Expression((text, "0", "0"))


@pytest.mark.parametrize("text", ["-" * 99 + "1", "1+" * 99 + "0", "-1**" * 49 + "1"])
def test_long_formulas_are_formulas(text):
    assert np.isfinite(Formula(text)({}))


def test_huge_powers_neither_hang_nor_warn():
    assert Formula("9**9**9**9")({}) == np.inf
    assert np.isnan(Formula("sqrt(-1)")({}))


def test_an_expression_of_constants_has_a_value_at_each_point():
    assert np.array_equal(Expression(("1", "0", "2")).values(points(2), 0.0), [[1.0, 0.0, 2.0]] * 2)


# --- tables ---------------------------------------------------------------------------------------


def linear(at):
    """Return velocities that grow along y and z, which linear interpolation gives exactly."""
    return np.stack([1 + at[:, 1] + 2 * at[:, 2], at[:, 1] - at[:, 2], 0 * at[:, 1]], axis=1)


def scattered():
    """Return points of x- that are no grid, its four corners among them."""
    corners = [[0.0, y, z] for y in (0.0, 0.5) for z in (0.0, 0.25)]
    return np.concatenate([corners, points(20, seed=8)])


def on_a_grid():
    y, z = np.meshgrid([0.0, 0.1, 0.5], [0.0, 0.2, 0.25], indexing="ij")
    at = np.stack([0 * y.ravel(), y.ravel(), z.ravel()], axis=1)
    return np.random.default_rng(0).permutation(at)


def write_csv(path, at, velocities):
    rows = np.concatenate([at[:, 1:], velocities], axis=1)
    lines = ["y, z, u, v, w", *(",".join(map(repr, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("made", [scattered, on_a_grid])
def test_a_table_is_interpolated_linearly(tmp_path, made):
    profile = Table(write_csv(tmp_path / "t.csv", made(), linear(made())), 0)
    np.testing.assert_allclose(profile.values(points(), 0.0), linear(points()), rtol=0, atol=1e-14)


def test_an_npz_file_does_as_well(tmp_path):
    at = on_a_grid()
    velocities = linear(at)
    arrays = dict(zip(("y", "z", "u", "v", "w"), (*at.T[1:], *velocities.T), strict=True))
    np.savez(tmp_path / "t.npz", **arrays)
    values = Table(str(tmp_path / "t.npz"), 0).values(points(), 0.0)
    np.testing.assert_allclose(values, linear(points()), rtol=0, atol=1e-14)


def test_a_table_along_one_axis_is_the_same_along_the_other(tmp_path):
    (tmp_path / "t.csv").write_text("y,u,v,w\n0,0,0,0\n0.5,1,0,0\n0.25,1,0,0\n")
    at = np.array([[0.0, 0.125, 0.0], [0.0, 0.125, 0.2], [0.0, 0.4, 0.1], [0.0, 0.9, 0.1]])
    values = Table(str(tmp_path / "t.csv"), 0).values(at, 0.0)
    np.testing.assert_allclose(values[:, 0], [0.5, 0.5, 1.0, 1.0], rtol=1e-15, atol=0)


@pytest.mark.parametrize("made", [scattered, on_a_grid])
def test_beyond_a_table_there_is_what_is_nearest(tmp_path, made):
    profile = Table(write_csv(tmp_path / "t.csv", made(), linear(made())), 0)
    beyond, corner = np.array([[0.0, 0.6, 0.3]]), np.array([[0.0, 0.5, 0.25]])
    np.testing.assert_allclose(profile.values(beyond, 0.0), linear(corner), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "y,z,u,v\n0,0,1,1\n",
            "has the columns y, z, u, v; .* has the columns u, v, w and y and z",
        ),
        ("x,u,v,w\n0,1,1,1\n", "has the columns x, u, v, w; a profile of this face"),
        ("y,u,v,w\n", "at least one"),
        ("y,u,v,w\n0,1,1\n", "must have 4 numbers in each line"),
        ("y,u,v,w\n0,1,fast,1\n", "has an entry that is no number: .*fast"),
        ("y,u,v,w\n0,1,nan,1\n", "has an entry that is not a finite number"),
        ("y,u,v,w\n0,1,1,1\n0,2,1,1\n", "has a point twice"),
        ("y,z,u,v,w\n0,0,1,1,1\n1,1,1,1,1\n2,2,1,1,1\n", "has points that span no area"),
        ("", "is no CSV file"),
        ("\0\1", "columns|CSV"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        Table(str(tmp_path / "t.csv"), 0).values(points(), 0.0)


def test_what_is_no_npz_file_is_refused(tmp_path):
    (tmp_path / "t.npz").write_text("y,u,v,w\n")
    with pytest.raises(ValueError, match="is no NPZ file of arrays of numbers"):
        Table(str(tmp_path / "t.npz"), 0).values(points(), 0.0)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((10**20,), "is no NPZ file of arrays of numbers"), ((8,), "unpacks to more than 64 MiB")],
)
def test_an_npz_file_that_would_fill_the_memory_is_refused(tmp_path, shape, message):
    """Seventy MiB of zeros in the second."""
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    packed = zipfile.ZipFile(tmp_path / "t.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with packed, packed.open("u.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, header)
        member.write(bytes((70 << 20) if shape == (8,) else 64))
    with pytest.raises(ValueError, match=message):
        Table(str(tmp_path / "t.npz"), 0).values(points(), 0.0)


# --- bits -----------------------------------------------------------------------------------------

PROFILES = [
    Parabolic((1.0, 0.0, 0.0), BOX, (1, 2)),
    Expression(("sin(9*y)**3*exp(-z*t)", "sqrt(y) + tanh(z)", "where(y > 0.2, z, y**0.3)")),
]


@given(st.integers(0, 74), st.sampled_from([*PROFILES, "table"]))
def test_a_part_of_a_face_has_the_bits_of_the_whole(table, cut, profile):
    profile = table if profile == "table" else profile
    at = np.concatenate([points(), scattered()])  # those of the table lie in several triangles
    whole = profile.values(at, 0.7)
    parts = [profile.values(at[part], 0.7) for part in (slice(0, cut), slice(cut, None))]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    return Table(write_csv(path, scattered(), linear(scattered())), 0)
