"""Bodies are read exactly from CSV, NumPy and our HDF5; faults are refused and located."""

import io
import os
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.presented import export_run

from hybrid_nbody.errors import HybridNBodyError, InputError
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.files.bodies_csv import COLUMNS
from hybrid_nbody.files.checkpoint import verify

HEADER = "x,y,z,vx,vy,vz,m\n"
ROW = "1,2,3,4,5,6,7\n"


@pytest.fixture
def refusal_of(in_folder, refused):
    """Return a function that gives the line a file of some content is refused with."""

    def line(content, name="bodies.csv"):
        (in_folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return refused(InputError, read_bodies, name)

    return line


def same(bodies, table):
    """Whether bodies are the rows (N, 7) of a table, to the bit."""
    np.testing.assert_array_equal(
        np.column_stack([bodies.position, bodies.velocity, bodies.mass]), table
    )
    for values in (bodies.position, bodies.velocity, bodies.mass):
        assert values.dtype == np.float64
        assert values.flags.c_contiguous
    return True


# --- CSV ------------------------------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False)
rows = st.lists(st.tuples(*[numbers] * 6, numbers.map(abs)), min_size=1, max_size=8)


@given(
    rows,
    st.permutations(COLUMNS),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", " ", "\t"]),
)
def test_csv_round_trip(tmp_path_factory, rows, columns, line_end, space):
    """Any finite numbers, in any order of the columns, with spaces around them."""
    path = tmp_path_factory.getbasetemp() / "round.csv"
    lines = [columns] + [[repr(row[COLUMNS.index(column)]) for column in columns] for row in rows]
    text = line_end.join(f"{space},{space}".join(cells) + space for cells in lines)
    path.write_text(text, newline="")
    bodies = read_bodies(path)
    assert len(bodies) == len(rows)
    assert bodies.id is None
    assert same(bodies, np.array(rows))


def test_csv_as_people_and_spreadsheets_write_it(in_folder):
    header = '\n# made by hand\n "m", x ,y,z,vx,vy,vz\n\n'
    text = header + " 1e-3,+1,.5,-3.,4,5e0,6\n# the end\n  0 ,1,1,1,1,1,1"
    (in_folder / "bodies.txt").write_text(text, encoding="utf-8-sig")
    bodies = read_bodies("bodies.txt")
    assert same(bodies, [[1, 0.5, -3, 4, 5, 6, 1e-3], [1, 1, 1, 1, 1, 1, 0]])
    assert repr(bodies) == "BodiesTable of 2 bodies, total mass 0.001"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,2,3,4,abc,6,7", "column 'vy': not a number (got 'abc')"),
        ("1,2,3,4,,6,7", "column 'vy': missing"),
        ("1,2,3,4, ,6,7", "column 'vy': missing"),
        ("1,2,3,4,5,6", "column 'm': missing"),
        ("1,2,3,4,5,6,7,8", "8 cells, but the header has 7 columns"),
        ("1,2,3,nan,5,6,7", "column 'vx': not finite (got 'nan')"),
        ("-inf,2,3,4,5,6,7", "column 'x': not finite (got '-inf')"),
        ("1,1e999,3,4,5,6,7", "column 'y': not finite (got '1e999')"),
        ("1,2,3,4,5,6,-1.5", "column 'm': negative mass (got '-1.5')"),
        ("1_000,2,3,4,5,6,7", "column 'x': not a number (got '1_000')"),
        ("1;2;3;4;5;6;7", "column 'x': not a number (got '1;2;3;4;5;6;7')"),
        ("1,2,3,4,5,6," + "9" * 80 + "x", "column 'm': not a number (got '" + "9" * 60 + "…')"),
    ],
)
def test_csv_names_row_and_column(refusal_of, row, message):
    """The faulty row is the sixth line: comments and empty lines count as an editor counts them."""
    assert (
        refusal_of("# bodies\n" + HEADER + ROW + "\n" + ROW + row + "\n" + ROW)
        == f"bodies.csv:6: {message}"
    )


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("x,y,z,vx,vy,vz,mass", "unknown column 'mass'; the columns are x,y,z,vx,vy,vz,m"),
        ("x,y,z,vx,vy,vz,m,m", "column 'm' appears 2 times"),
        ("x,y,z,vx,m", "missing column 'vy', 'vz'; the columns are x,y,z,vx,vy,vz,m"),
        (
            "1,2,3,4,5,6,7",
            "expected the header row x,y,z,vx,vy,vz,m, or x,y,vx,vy,m of bodies in a plane "
            "(got '1,2,3,4,5,6,7')",
        ),
        (
            "x;y;z;vx;vy;vz;m",
            "expected the header row x,y,z,vx,vy,vz,m, or x,y,vx,vy,m of bodies in a plane "
            "(got 'x;y;z;vx;vy;vz;m')",
        ),
    ],
)
def test_csv_header(refusal_of, header, message):
    assert refusal_of(f"# bodies\n{header}\n{ROW}") == f"bodies.csv:2: {message}"


def test_text_that_is_not_utf8(refusal_of):
    content = HEADER.encode() + ROW.encode() + "1,2,3,4,5,6,é\n".encode("latin-1")
    assert (
        refusal_of(content)
        == "bodies.csv:3: not UTF-8 text (byte 13 is 0xe9); save the file as UTF-8"
    )


@pytest.mark.parametrize("content", [HEADER, HEADER + "# nobody\n\n"])
def test_no_bodies(refusal_of, content):
    assert refusal_of(content) == "bodies.csv: no bodies in it; at least one is needed"


def test_a_csv_of_comments_alone(refusal_of):
    assert (
        refusal_of("# nothing\n")
        == "bodies.csv:1: expected the header row x,y,z,vx,vy,vz,m, or x,y,vx,vy,m of bodies "
        "in a plane (got '')"
    )


# --- NumPy ----------------------------------------------------------------------------------------


def arrays(count=3, **changed):
    """Return the arrays of a good archive, some of them changed."""
    table = np.arange(7.0 * count).reshape(count, 7)
    return {"position": table[:, :3], "velocity": table[:, 3:6], "mass": table[:, 6]} | changed


def npz(**content):
    file = io.BytesIO()
    np.savez(file, **content)
    return file.getvalue()


@pytest.mark.parametrize("name", ["bodies.npz", "bodies.csv", "bodies"])
def test_npz_whatever_its_name(in_folder, name):
    (in_folder / name).write_bytes(npz(**arrays(), id=[7, 8, 9]))
    bodies = read_bodies(name)
    assert same(bodies, np.arange(21.0).reshape(3, 7))
    assert bodies.id.tolist() == [7, 8, 9]


@pytest.mark.parametrize("dtype", [np.float32, np.int16, ">f8", np.longdouble])
def test_npz_of_other_numbers(in_folder, dtype):
    np.savez(
        "b.npz",
        **{name: np.asfortranarray(values.astype(dtype)) for name, values in arrays().items()},
    )
    bodies = read_bodies("b.npz")
    assert same(bodies, np.arange(21.0).reshape(3, 7))
    assert bodies.id is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"position": np.ones((3, 2))},
            "position has the shape (3, 2); for N bodies it must be (N, 3)",
        ),
        ({"position": np.float64(1)}, "position has the shape (); for N bodies it must be (N, 3)"),
        (
            {"velocity": np.ones((4, 3))},
            "velocity has the shape (4, 3); for the 3 bodies of position it must be (3, 3)",
        ),
        (
            {"mass": np.ones((3, 1))},
            "mass has the shape (3, 1); for the 3 bodies of position it must be (3,)",
        ),
        ({"id": [1, 2]}, "id has the shape (2,); for the 3 bodies of position it must be (3,)"),
        ({"id": [1, 2, 2]}, "id names some bodies twice"),
        ({"id": [1.0, 2, 3]}, "id holds float64, not whole numbers"),
        ({"mass": [1, -2, 3]}, "mass[1] is negative (got -2)"),
        ({"mass": ["a", "b", "c"]}, "mass holds <U1, not numbers"),
        ({"velocity": np.full((3, 3), 1j)}, "velocity holds complex128, not numbers"),
        (
            {"velocity": np.where(np.eye(3), np.nan, 0)[::-1]},
            "velocity[0, 2] is not finite (got nan)",
        ),
        ({"colour": [1]}, "unknown array 'colour'; known are position, velocity, mass, id"),
        (
            {"mass": np.array([{}, 1, 2])},
            "not a readable NumPy archive (it holds Python objects, which are not read for safety)",
        ),
    ],
)
def test_npz_with_a_wrong_array(refusal_of, changed, message):
    assert refusal_of(npz(**arrays(**changed)), "b.npz") == f"b.npz: {message}"


def test_npz_without_an_array(refusal_of):
    assert (
        refusal_of(npz(mass=[1], x=[1]), "b.npz") == "b.npz: no array 'position'; there are mass, x"
    )
    assert refusal_of(npz(**arrays(0)), "b.npz") == "b.npz: no bodies in it; at least one is needed"


def test_npz_of_all_frames(in_folder, write_run, refused):
    write_run(frames=3)
    export_run("out", "npz", "all.npz", frame="all")
    assert refused(InputError, read_bodies, "all.npz") == (
        "all.npz: it holds many frames; export one: hybrid-nbody export … --format npz --frame N"
    )


def test_zip_that_is_no_npz(refusal_of):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("sheet.xml", "<x/>")
    assert refusal_of(file.getvalue(), "b.npz") == "b.npz: no array 'position'; there are sheet.xml"


def test_a_broken_npz(refusal_of):
    whole = npz(**arrays())
    assert (
        refusal_of(whole[:100], "b.npz")
        == "b.npz: not a readable NumPy archive (File is not a zip file)"
    )
    flipped = bytearray(whole)
    flipped[200] ^= 255
    assert refusal_of(bytes(flipped), "b.npz").startswith(
        "b.npz: not a readable NumPy archive (Bad CRC-32"
    )


def test_a_single_numpy_array(refusal_of):
    file = io.BytesIO()
    np.save(file, np.ones((3, 7)))
    assert refusal_of(file.getvalue(), "b.npy") == (
        "b.npy: a single NumPy array; save position, velocity and mass together with numpy.savez"
    )


# --- our own HDF5 ---------------------------------------------------------------------------------


def test_the_last_frame_of_a_trajectory(write_run):
    path = write_run(frames=3) / "trajectory.h5"
    bodies = read_bodies(path)
    position = 200.0 + np.arange(4)[:, None] + 0.1 * np.arange(3)
    assert same(bodies, np.column_stack([position, -position, np.linspace(1, 2, 4)]))
    assert bodies.id.tolist() == [10, 11, 12, 13]


def test_a_directory_of_a_run(write_run, refused):
    write_run("first")
    assert refused(InputError, read_bodies, "first") == (
        "first: a directory, not a file; to take the last frame of its run name first/trajectory.h5"
    )


def test_a_checkpoint_whatever_its_name(write_checkpoint):
    bodies = read_bodies(write_checkpoint("state.csv"))
    position = np.arange(4)[:, None] + 0.1 * np.arange(3)
    assert same(bodies, np.column_stack([position, -position, np.linspace(1, 2, 4)]))
    assert bodies.id.tolist() == [10, 11, 12, 13]


def test_the_checkpoints_here_are_as_the_run_writes_them(write_checkpoint):
    verify(write_checkpoint("c.h5"))


def test_a_trajectory_without_bodies(in_folder, refused):
    with h5py.File("t.h5", "w") as file:
        file.attrs.update(
            {"format": "hybrid_nbody trajectory", "format_version": 1, "model": "fluid"}
        )
    assert (
        refused(InputError, read_bodies, "t.h5") == "t.h5: a run of model 'fluid' holds no bodies"
    )
    with h5py.File("t.h5", "r+") as file:
        file["bodies/mass"] = [1.0]
    assert refused(InputError, read_bodies, "t.h5") == "t.h5: no complete frame in this trajectory"


def test_a_checkpoint_without_bodies(write_checkpoint, seal, refused):
    with h5py.File(write_checkpoint("c.h5"), "r+") as file:
        del file["bodies/velocity"]
    seal(Path("c.h5"))
    message = "c.h5: no data set 'bodies/velocity' in it; it holds no complete set of bodies"
    assert refused(InputError, read_bodies, "c.h5") == message


def test_a_checkpoint_that_holds_nan(write_checkpoint, seal, refused):
    with h5py.File(write_checkpoint("c.h5"), "r+") as file:
        file["bodies/position"][2, 1] = np.nan
    seal(Path("c.h5"))
    assert (
        refused(InputError, read_bodies, "c.h5") == "c.h5: position[2, 1] is not finite (got nan)"
    )


@pytest.mark.parametrize("offset", [*range(32, 110, 13), 600, 2500, -1])
def test_a_checkpoint_with_a_flipped_bit(write_checkpoint, refused, offset):
    path = write_checkpoint("c.h5")
    contents = bytearray(path.read_bytes())
    contents[offset] ^= 1
    path.write_bytes(contents)
    assert (
        refused(InputError, read_bodies, "c.h5")
        == "c.h5: damaged: its contents do not match its digest"
    )


@pytest.mark.parametrize("offset", [0, 31])
def test_a_checkpoint_with_a_damaged_beginning(write_checkpoint, refused, offset):
    path = write_checkpoint("c.h5")
    contents = bytearray(path.read_bytes())
    contents[offset] ^= 1
    path.write_bytes(contents)
    message = "c.h5: not a checkpoint of hybrid_nbody, or its beginning is damaged"
    assert refused(InputError, read_bodies, "c.h5") == message


def test_truncated_hdf5(write_run, write_checkpoint, refused, cut):
    for size in (2000, 300):
        cut(write_checkpoint("c.h5"), size)
        assert (
            refused(InputError, read_bodies, "c.h5")
            == "c.h5: damaged: its contents do not match its digest"
        )
    path = write_run() / "trajectory.h5"
    size = path.stat().st_size
    cut(path, 2000)
    assert refused(InputError, read_bodies, "out/trajectory.h5") == (
        f"out/trajectory.h5: truncated, 2000 of {size} bytes are there; copy it again, or "
        "use an older one"
    )


def test_foreign_hdf5(in_folder, refused):
    h5py.File("x.h5", "w").close()
    assert (
        refused(InputError, read_bodies, "x.h5")
        == "x.h5: an HDF5 file, but not one that hybrid_nbody wrote"
    )


# --- what is no file of bodies --------------------------------------------------------------------


def test_no_file_at_all(in_folder, refused):
    assert refused(InputError, read_bodies, "b.csv") == "b.csv: no such file"
    assert refused(InputError, read_bodies, in_folder) == f"{in_folder}: a directory, not a file"
    os.mkfifo("pipe")
    assert refused(InputError, read_bodies, "pipe") == "pipe: a pipe or a device, not a file"


def test_other_content(refusal_of):
    assert refusal_of(b"") == "bodies.csv: an empty file, no bodies in it"
    no_text = "bodies.csv: no text; neither a CSV table, nor HDF5, nor a NumPy archive"
    assert refusal_of(b"x,y\0\n") == no_text
    assert refusal_of(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR") == no_text
    assert refusal_of(bytes(range(1, 32)) * 9) == no_text
    assert refusal_of(HEADER.encode("utf-16")).endswith("save the file as UTF-8")


def test_any_damage_is_told_in_one_line(in_folder):
    """Flipped bytes give bodies or one line; never another exception."""
    whole, random, outcomes = npz(**arrays(), id=[1, 2, 3]), np.random.default_rng(5), set()
    for _ in range(300):
        damaged = bytearray(whole)
        for offset in random.integers(2, len(whole), size=2):
            damaged[offset] = random.integers(256)
        (in_folder / "b.npz").write_bytes(damaged)
        try:
            outcomes.add(len(read_bodies("b.npz")))
        except HybridNBodyError as error:
            assert "\n" not in str(error)
            outcomes.add("refused")
    assert outcomes == {3, "refused"}
