"""Files of bodies that lead into other files or unpack to gigabytes are refused in a line."""

import io
import zipfile

import h5py
import numpy as np
import pytest

from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files import untrusted
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.files.run import open_run


def make_virtual(file):
    layout = h5py.VirtualLayout(shape=(3, 4, 3), dtype="f8")
    layout[:] = h5py.VirtualSource("secret.h5", "x", shape=(3, 4, 3))
    file.create_virtual_dataset("bodies/position", layout)


def make_external(file):
    file.create_dataset("bodies/position", (3, 4, 3), "f8", external=[("secret.bin", 0, 288)])


def make_link(file):
    file["bodies/position"] = h5py.ExternalLink("secret.h5", "x")


WAYS = {
    make_virtual: "is virtual, made of data sets of other files",
    make_external: "keeps its data in another file, secret.bin",
    make_link: "is a link to another file, secret.h5",
}


@pytest.fixture(autouse=True)
def secrets(in_folder):
    """Files that somebody else may not read through us."""
    values = np.arange(36.0).reshape(3, 4, 3)
    (in_folder / "secret.bin").write_bytes(values.tobytes())
    with h5py.File("secret.h5", "w") as file:
        file["x"] = values


@pytest.mark.parametrize("way", WAYS)
def test_data_of_other_files_is_not_read(write_run, refused, way):
    with h5py.File(write_run() / "trajectory.h5", "r+") as file:
        del file["bodies/position"]
        way(file)
    expected = f"bodies/position {WAYS[way]}, which is not read for safety; copy the data into one"
    for error, read, path in (
        (InputError, read_bodies, "out/trajectory.h5"),
        (FileError, open_run, "out"),
    ):
        assert refused(error, read, path).startswith(f"out/trajectory.h5: {expected}")


@pytest.mark.parametrize("way", WAYS)
def test_nor_that_of_a_checkpoint(write_checkpoint, seal, refused, way):
    path = write_checkpoint()
    with h5py.File(path, "r+") as file:
        del file["bodies/position"]
        way(file)
    seal(path)
    assert WAYS[way] in refused(InputError, read_bodies, path)


BODIES = 5_000_000


def npz_bomb():
    """Write an archive whose positions are zeros."""
    zeros = bytes(BODIES * 3)
    with zipfile.ZipFile("b.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, shape in (("position", (BODIES, 3)), ("velocity", (0, 3)), ("mass", (0,))):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                header = {"descr": "<f8", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                for _ in range(8 if shape[0] else 0):
                    file.write(zeros)
    return "b.npz"


def hdf5_bomb(write_run):
    """Write a trajectory of one frame that is packed."""
    path = write_run(frames=1) / "trajectory.h5"
    with h5py.File(path, "r+") as file:
        for name in ("position", "velocity"):
            del file[f"bodies/{name}"]
            shape = (1, BODIES, 3)
            file.create_dataset(
                f"bodies/{name}", shape, "f8", chunks=(1, 1 << 16, 3), compression="gzip"
            )
    return "out/trajectory.h5"


@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_a_bomb_is_not_unpacked(write_run, refused, monkeypatch, kind):
    monkeypatch.setattr(untrusted, "SMALL", 100 << 20)
    path = npz_bomb() if kind == "npz" else hdf5_bomb(write_run)
    line = refused(InputError, read_bodies, path)
    assert line.startswith(f"{path}: ")
    assert "more than 100 times as much is not unpacked for safety" in line


def test_more_than_the_memory_holds_is_not_read(write_run, refused, monkeypatch):
    monkeypatch.setattr(untrusted, "available_memory", lambda: 1000)
    write_run(frames=300, bodies=4)  # a frame of 4 bodies takes 192 bytes
    assert len(read_bodies("out/trajectory.h5")) == 4
    monkeypatch.setattr(untrusted, "available_memory", lambda: 100)
    line = refused(InputError, read_bodies, "out/trajectory.h5")
    assert line.endswith("of memory, and 1e-07 GB are free")


def test_what_packs_well_and_is_small_is_read(in_folder):
    bodies = 10_000
    arrays = {"position": np.zeros((bodies, 3)), "velocity": np.zeros((bodies, 3))}
    np.savez_compressed("b.npz", mass=np.ones(bodies), **arrays)
    assert len(read_bodies("b.npz")) == bodies


def test_npz_of_an_absurd_shape(in_folder, refused):
    """More bodies than a whole number of 64 bits counts."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 3), }\n"
    absurd = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("position", "velocity", "mass"):
            archive.writestr(f"{name}.npy", absurd)
    (in_folder / "b.npz").write_bytes(file.getvalue())
    assert refused(InputError, read_bodies, "b.npz") == (
        "b.npz: not a readable NumPy archive (the shape of an array is larger than any memory)"
    )
