"""What the HDF5 files share: room set aside, and errors that say what to do about."""

import errno
import os
import resource
import signal

import h5py
import numpy as np
import pytest

from hybrid_nbody.errors import FileError
from hybrid_nbody.output import hdf5

# ---- Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "the disk quota is used up"),
        (OSError(errno.EFBIG, "File too large"), "the file size limit is reached"),
        (OSError(errno.EACCES, "Permission denied"), "Permission denied"),
        (
            OSError("Can't write data (write failed: errno = 28, error message = 'No space')"),
            "the disk is full",
        ),
        (
            RuntimeError("Unable to flush (errno = 27, error message = 'Too large')"),
            "the file size limit is reached",
        ),
        (RuntimeError("Can't decrement id ref count (errno = 5, more)"), os.strerror(errno.EIO)),
        (OSError("bad object header version number"), "bad object header version number"),
    ],
)
def test_the_file_the_deed_and_the_reason_are_named(tmp_path, error, reason):
    with pytest.raises(FileError) as caught, hdf5.file_errors(tmp_path / "x.h5", "writing"):
        raise error
    assert str(caught.value) == f"{tmp_path / 'x.h5'}: writing failed: {reason}"
    assert caught.value.__cause__ is error
    assert caught.value.exit_code == 4


def test_other_errors_pass():
    for error in (FileError("ours"), ZeroDivisionError("a fault")):
        with pytest.raises(type(error)) as caught, hdf5.file_errors("x.h5", "writing"):
            raise error
        assert caught.value is error


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, os.strerror(errno.ENOENT)),
        (lambda path: path.mkdir(), os.strerror(errno.EISDIR)),
        (lambda path: path.write_text("no HDF5 at all"), "file signature not found"),
    ],
)
def test_what_h5py_says_is_understood(tmp_path, make, reason):
    path = tmp_path / "x.h5"
    make(path)
    with pytest.raises(FileError) as caught, hdf5.file_errors(path, "opening"):
        h5py.File(path, "r")
    assert str(caught.value).startswith(f"{path}: opening failed: ")
    assert reason in str(caught.value)


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
        f"{tmp_path / 'x.h5'}: making room for 50001 bytes failed: the file size limit is reached"
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
    dataset = hdf5.growing(file, "grows", shape, "f8", "length", "what it is")
    assert (dataset.shape, dataset.maxshape, dataset.chunks) == (
        (0, *shape),
        (None, *shape),
        chunks,
    )
    assert dataset.dtype == np.float64
    assert {name: hdf5.text(value) for name, value in dataset.attrs.items()} == {
        "units": "length",
        "description": "what it is",
    }
    assert np.prod(chunks) * 8 <= hdf5.CHUNK_BYTES


@pytest.mark.parametrize("value", ["", "plain", "ü ☉ π", "two\nlines", "x" * 30_000])
def test_texts_come_back_as_they_were_stored(file, value):
    hdf5.write_header(file, "hybrid_nbody kind", {"title": value, "ranks": 3})
    assert hdf5.text(file.attrs["title"]) == value
    assert file.attrs["ranks"] == 3
    assert hdf5.text(file.attrs["format"]) == "hybrid_nbody kind"
