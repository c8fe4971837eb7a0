"""Files that stand at their place when they are whole, and not before."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hybrid_nbody.errors import FileError


@contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """Yield the name of a file to write, which takes the place of `target` when all went well, else nothing is left.

    It is in a new folder beside `target`, hidden and ending in .part: others who write the same file do not meet it.

    Raises
    ------
    OSError
        The folder cannot be made, or the file cannot take its place.
    """
    with TemporaryDirectory(".part", ".", target.parent, ignore_cleanup_errors=True) as folder:
        partial = Path(folder) / target.name
        yield partial
        partial.replace(target)


def write_whole(target: Path, contents: bytes, what: str) -> None:
    """Write the bytes of a file, or leave what was there before.

    Raises
    ------
    FileError
        It cannot be written; the message calls it `what`.
    """
    try:
        with written_beside(target) as partial:  # a full disk must not cost the picture of before
            partial.write_bytes(contents)
    except OSError as error:
        raise FileError(f"{target}: cannot write the {what} ({error.strerror or error})") from error
