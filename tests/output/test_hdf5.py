"""Writing HDF5 files: disk space checked before a write, chunks, and texts."""

import os
import resource
import signal

import h5py
import numpy as np
import pytest

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.hdf5 import attributes
from hybrid_nbody.output import hdf5

# ---- Room ----------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["numbers"] = np.arange(1000)
        file.flush()
        yield file


def test_room_is_looked_for_and_given_back(file):
    before = os.stat(file.filename).st_size
    hdf5.reserve(file, 10_000_000)
    assert os.stat(file.filename).st_size == before
    assert os.stat(file.filename).st_blocks * 512 < before + 100_000
    assert file["numbers"][:].tolist() == list(range(1000))


@pytest.fixture
def file_size_limit():
    """Limit the size of files, as a full disk does, for the time of a test."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if hard < 0 else hard, hard))
    signal.signal(signal.SIGXFSZ, handler)


def test_no_room_is_an_error_and_the_file_is_unharmed(file, file_size_limit, tmp_path):
    before = (tmp_path / "x.h5").read_bytes()
    file_size_limit(len(before) + 50_000 + hdf5.SLACK_BYTES)
    hdf5.reserve(file, 50_000)  # just enough
    with pytest.raises(FileError) as caught:
        hdf5.reserve(file, 50_001)
    assert str(caught.value) == (
        f"{tmp_path / 'x.h5'}: reserving 50001 bytes failed: the file size limit is reached"
    )
    assert (tmp_path / "x.h5").read_bytes() == before


# ---- Data sets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((), (1024,)),
        ((3,), (1024, 3)),
        ((1, 3), (1024, 1, 3)),
        ((2, 3), (1, 2, 3)),
        ((16384, 3), (1, 16384, 3)),
        ((10**6, 3), (1, 43479, 3)),  # 23 equal pieces: the last wastes almost nothing
    ],
)
def test_data_sets_grow_row_by_row_in_chunks_of_a_fair_size(file, shape, chunks):
    dataset = hdf5.growing(file, "grows", shape, "f8")
    assert (dataset.shape, dataset.maxshape, dataset.chunks) == (
        (0, *shape),
        (None, *shape),
        chunks,
    )
    assert dataset.dtype == np.float64
    assert np.prod(chunks) * 8 <= hdf5.CHUNK_BYTES


def test_a_data_set_says_what_it_is(file):
    hdf5.describe(file["numbers"], "length", "what it is")
    assert attributes(file["numbers"]) == {"units": "length", "description": "what it is"}


@pytest.mark.parametrize("value", ["", "plain", "ü ☉ π", "two\nlines", "x" * 30_000])
def test_texts_come_back_as_they_were_stored(file, value):
    hdf5.write_header(file, "hybrid_nbody kind", {"title": value, "ranks": 3})
    assert attributes(file)["title"] == value
    assert file.attrs["ranks"] == 3
    assert attributes(file)["format"] == "hybrid_nbody kind"
