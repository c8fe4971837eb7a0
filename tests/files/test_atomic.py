"""A file appears when it is whole, whoever else writes it, and nothing else is left behind."""

import errno
import os
import stat
from pathlib import Path

import h5py
import pytest

from hybrid_nbody.analysis import encoders
from hybrid_nbody.analysis.export import tables
from hybrid_nbody.cli.main import main
from hybrid_nbody.errors import FileError
from hybrid_nbody.files import atomic as whole_file
from hybrid_nbody.files.atomic import file_errors, write_whole, written_beside


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_two_writers_of_one_file_do_not_meet(in_folder):
    target = Path("a.txt")
    with written_beside(target) as first, written_beside(target) as second:
        first.write_text("first")
        second.write_text("second")
        assert not target.exists()
        # so that it can be renamed
        assert first.parent.parent == second.parent.parent == target.parent
    assert target.read_text() == "first"  # the one that ended last
    assert left_in(in_folder) == ["a.txt"]


def test_a_file_can_be_read_by_whom_the_user_lets(in_folder):
    before = os.umask(0o027)
    try:
        write_whole(Path("a.txt"), b"text", "picture")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat("a.txt").st_mode) == 0o640


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_what_was_there_stays(in_folder, monkeypatch, error):
    (in_folder / "a.png").write_text("mine")

    def half(path, contents):
        path.write_text("half")
        raise error

    with monkeypatch.context() as patch, pytest.raises((FileError, KeyboardInterrupt)) as caught:
        patch.setattr(whole_file.Path, "write_bytes", half)
        write_whole(Path("a.png"), b"text", "picture")
    assert str(caught.value) in ("", "a.png: cannot write the picture (full)")
    assert (in_folder / "a.png").read_text() == "mine"
    assert left_in(in_folder) == ["a.png"]


def stop(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("module", "function", "words"),
    [
        (encoders.Gif, "add", ("movie", "out", "--output", "a.gif")),
        (tables, "_write_array", ("export", "out", "--format", "npz", "--output", "a.npz")),
    ],
)
def test_ctrl_c_leaves_nothing(write_run, in_folder, monkeypatch, capsys, module, function, words):
    write_run()
    monkeypatch.setattr(module, function, stop)
    assert main(list(words)) == 75
    assert capsys.readouterr().err == "hybrid_nbody: stopped by Ctrl-C\n"
    assert left_in(in_folder) == ["out"]


# --- reasons --------------------------------------------------------------------------------------


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
    with pytest.raises(FileError) as caught, file_errors(tmp_path / "x.h5", "writing"):
        raise error
    assert str(caught.value) == f"{tmp_path / 'x.h5'}: writing failed: {reason}"
    assert caught.value.__cause__ is error
    assert caught.value.exit_code == 4


def test_other_errors_pass():
    for error in (FileError("ours"), ZeroDivisionError("a fault")):
        with pytest.raises(type(error)) as caught, file_errors("x.h5", "writing"):
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
    with pytest.raises(FileError) as caught, file_errors(path, "opening"):
        h5py.File(path, "r")
    assert str(caught.value).startswith(f"{path}: opening failed: ")
    assert reason in str(caught.value)
