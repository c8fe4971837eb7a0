"""Writing files whole or not at all, and the reasons why writing fails."""

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hybrid_nbody.errors import FileError, InputError

NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file size limit is reached",
}


# --- reasons --------------------------------------------------------------------------------------


def system_error(error: Exception) -> int | None:
    """Return the operating system's error number, which HDF5 may hide in its text, or None."""
    hidden = re.search(r"errno = (\d+)", str(error))
    return getattr(error, "errno", None) or (int(hidden[1]) if hidden else None)


def reason(error: Exception) -> str:
    """Return in a few words why an operation on a file failed."""
    number = system_error(error)
    if number is None:
        return " ".join(str(error).split())
    return NO_ROOM.get(number) or os.strerror(number)


@contextmanager
def file_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn an error of the operating system or of HDF5 into one that names the file.

    Parameters
    ----------
    path : Path
        The file.
    doing : str
        What is being done to it, such as ``writing``.

    Raises
    ------
    FileError
        In place of the OSError or RuntimeError of the block.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises either when a write or a flush fails
        raise FileError(f"{path}: {doing} failed: {reason(error)}") from error


# --- writing --------------------------------------------------------------------------------------


def output_path(what: str, output: Path, name: str, endings: Sequence[str]) -> Path:
    """Return the path of a file to write.

    Parameters
    ----------
    what : str
        What the message of an error calls the file.
    output : Path
        The file, or an existing directory for it.
    name : str
        Its name in such a directory.
    endings : sequence of str
        The endings of names that are allowed.

    Raises
    ------
    InputError
        `output` is neither a directory nor a file with one of the endings.
    FileError
        The directory of the file does not exist.
    """
    target = output / name if output.is_dir() else output
    if target.suffix.lower() not in endings:
        allowed = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        raise InputError(f"{target}: neither an existing directory nor a file ending in {allowed}")
    if not target.parent.is_dir():
        raise FileError(f"{target}: cannot write the {what} (no such directory: {target.parent})")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise FileError(
            f"{target}: cannot write the {what} (no permission in {target.parent}); name another "
            "place with --output"
        )
    return target


@contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """Yield the name of a temporary file that replaces `target` if the block succeeds.

    If it fails, nothing is left. The temporary file is in a new hidden folder beside `target` that
    ends in .part, so that two writers of the same file do not meet. If `target` is a link, the file
    that it leads to is replaced.

    Raises
    ------
    OSError
        The folder cannot be made, or the file cannot replace `target`.
    """
    destination = target.resolve() if target.is_symlink() else target
    folder_of = destination.parent
    with TemporaryDirectory(".part", ".", folder_of, ignore_cleanup_errors=True) as folder:
        partial = Path(folder) / target.name
        yield partial
        partial.replace(destination)


def write_whole(target: Path, contents: bytes, what: str) -> None:
    """Replace the contents of a file; if that fails, the earlier file stays as it was.

    Raises
    ------
    FileError
        It cannot be written; the message calls it `what`.
    """
    try:
        with written_beside(target) as partial:
            partial.write_bytes(contents)
    except OSError as error:
        raise FileError(f"{target}: cannot write the {what} ({error.strerror or error})") from error
