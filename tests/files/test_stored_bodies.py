"""Some rows of a file of bodies: those of the whole file, checked with their own numbers."""

import pickle
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid_nbody.errors import InputError
from hybrid_nbody.files import stored_bodies
from hybrid_nbody.files.bodies import BodiesFile, open_bodies, read_bodies

NUMBER = 1000
NAMES = ("position", "velocity", "mass", "id")


def same(first, second):
    """Return whether two tables have the same bits."""
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in NAMES)


FORMATS = ["checkpoint", "trajectory", "csv", "npz", "compressed npz", "npz by columns"]


def reopened(path):
    """Return what a rank reads a file by after the root has opened it."""
    with open_bodies(path) as stored:
        return BodiesFile(stored.path, stored.number, stored.reopened)


@pytest.fixture(params=FORMATS)
def path(request, write_checkpoint, write_run, in_folder):
    """A file of bodies in each format."""
    checkpoint = write_checkpoint(bodies=NUMBER)
    if request.param == "checkpoint":
        return checkpoint
    if request.param == "trajectory":
        return write_run(frames=3, bodies=NUMBER) / "trajectory.h5"
    bodies = read_bodies(checkpoint)
    if "npz" in request.param:
        order = np.asfortranarray if "columns" in request.param else np.asarray
        save = np.savez_compressed if "compressed" in request.param else np.savez
        save(in_folder / "bodies.npz", **{name: order(getattr(bodies, name)) for name in NAMES})
        return in_folder / "bodies.npz"
    table = np.column_stack([bodies.position, bodies.velocity, bodies.mass, bodies.id])
    lines = [",".join([*map(repr, row[:-1]), str(int(row[-1]))]) for row in table.tolist()]
    (in_folder / "bodies.csv").write_text("\n".join(["x,y,z,vx,vy,vz,m,id", *lines]))
    return in_folder / "bodies.csv"


@pytest.fixture
def whole(path):
    """The bodies of that file."""
    return read_bodies(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, NUMBER), max_size=3))
def test_any_split_gives_the_rows_of_the_whole(path, whole, cuts):
    edges = [0, *sorted(cuts), NUMBER]
    with open_bodies(path) as stored:
        parts = [stored.rows(a, b) for a, b in zip(edges, edges[1:], strict=False)]
        if stored.reopened is not None:
            file = pickle.loads(pickle.dumps(BodiesFile(path, NUMBER, stored.reopened)))
            again = [file.rows(a, b) for a, b in zip(edges, edges[1:], strict=False)]
            assert all(same(*both) for both in zip(parts, again, strict=True))
            np.testing.assert_array_equal(file.masses(), whole.mass)
    for name in NAMES:
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))


@pytest.mark.parametrize(
    ("path", "in_ranges"),
    [
        ("checkpoint", True),
        ("trajectory", True),
        ("npz", True),
        ("compressed npz", False),
        ("npz by columns", False),
        ("csv", False),
    ],
    indirect=["path"],
)
def test_formats_that_can_be_read_in_ranges(path, in_ranges):
    with open_bodies(path) as stored:
        assert (stored.reopened is not None) == in_ranges


@pytest.mark.parametrize(("name", "value"), [("position", np.nan), ("mass", -2.0)])
def test_a_fault_is_named_by_its_number_in_the_file(
    write_checkpoint, seal, monkeypatch, name, value
):
    monkeypatch.setattr(stored_bodies, "PIECE", 64)
    with h5py.File(write_checkpoint("c.h5", bodies=NUMBER), "r+") as file:
        file[f"bodies/{name}"][700] = value
    seal(Path("c.h5"))
    with (
        pytest.raises(InputError, match=rf"c.h5: {name}\[700.* is (not finite|negative)"),
        open_bodies("c.h5") as stored,
    ):
        list(stored.pieces())


def test_identities_of_two_pieces_are_compared(write_checkpoint, seal):
    with h5py.File(write_checkpoint("c.h5", bodies=NUMBER), "r+") as file:
        file["bodies/id"][900] = file["bodies/id"][100]
    seal(Path("c.h5"))
    with (
        pytest.raises(InputError, match="c.h5: id names some bodies twice"),
        open_bodies("c.h5") as stored,
    ):
        stored.check_identities()


@pytest.mark.parametrize("archived", [False, True])
def test_the_memory_of_a_rank_is_that_of_its_rows(write_checkpoint, in_folder, archived):
    """A body takes 64 bytes; HDF5 needs some for a file, whatever it holds."""
    path = write_checkpoint(bodies=100000)
    if archived:
        np.savez(in_folder / "b.npz", **{name: getattr(read_bodies(path), name) for name in NAMES})
        path = in_folder / "b.npz"
    file = reopened(path)
    file.rows(0, 1)
    for rows in (12500, 25000, 50000):
        tracemalloc.start()
        file.rows(100000 - rows, 100000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 64 * rows < peak < 1.25 * 64 * rows + 50000


def test_a_file_that_has_gone_is_refused(write_checkpoint):
    path = write_checkpoint(bodies=10)
    file = reopened(path)
    path.unlink()
    with pytest.raises(InputError, match="no such file"):
        file.rows(0, 5)
