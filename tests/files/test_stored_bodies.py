"""Some rows of a file of bodies: those of the whole file, checked with their own numbers."""

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


@pytest.fixture(params=["checkpoint", "trajectory", "csv", "npz"])
def path(request, write_checkpoint, write_run, in_folder):
    """A file of bodies in each format."""
    checkpoint = write_checkpoint(bodies=NUMBER)
    if request.param == "checkpoint":
        return checkpoint
    if request.param == "trajectory":
        return write_run(frames=3, bodies=NUMBER) / "trajectory.h5"
    bodies = read_bodies(checkpoint)
    if request.param == "npz":
        arrays = {name: getattr(bodies, name) for name in NAMES}
        np.savez(in_folder / "bodies.npz", **arrays)
        return in_folder / "bodies.npz"
    table = np.column_stack([bodies.position, bodies.velocity, bodies.mass, bodies.id])
    lines = [",".join([*map(repr, row[:-1]), str(int(row[-1]))]) for row in table.tolist()]
    (in_folder / "bodies.csv").write_text("\n".join(["x,y,z,vx,vy,vz,m,id", *lines]))
    return in_folder / "bodies.csv"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, NUMBER), max_size=3))
def test_any_split_gives_the_rows_of_the_whole(path, cuts):
    whole = read_bodies(path)
    edges = [0, *sorted(cuts), NUMBER]
    with open_bodies(path) as stored:
        file = BodiesFile(stored.path, stored.number, stored.frame)
        parts = [stored.rows(a, b) for a, b in zip(edges, edges[1:], strict=False)]
        if stored.in_ranges:
            again = [file.rows(a, b) for a, b in zip(edges, edges[1:], strict=False)]
            assert all(same(*both) for both in zip(parts, again, strict=True))
            np.testing.assert_array_equal(file.masses(), whole.mass)
    for name in NAMES:
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))


@pytest.mark.parametrize("path", ["checkpoint", "trajectory"], indirect=True)
def test_files_that_we_write_are_read_in_ranges(path):
    with open_bodies(path) as stored:
        assert stored.in_ranges


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


def test_the_memory_of_a_rank_is_that_of_its_rows(write_checkpoint):
    """A body takes 64 bytes; HDF5 needs some for a file, whatever it holds."""
    file = BodiesFile(write_checkpoint(bodies=100000), 100000)
    file.rows(0, 1)
    for rows in (12500, 25000, 50000):
        tracemalloc.start()
        file.rows(100000 - rows, 100000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 64 * rows < peak < 1.25 * 64 * rows + 50000


def test_a_file_that_has_gone_is_refused(write_checkpoint):
    path = write_checkpoint(bodies=10)
    file = BodiesFile(path, 10)
    path.unlink()
    with pytest.raises(InputError, match="no such file"):
        file.rows(0, 5)
