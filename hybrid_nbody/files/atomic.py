"""Files that stand at their place when they are whole, and not before."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hybrid_nbody.errors import FileError, InputError


def place_for(what: str, output: Path, name: str, endings: Sequence[str]) -> Path:
    """Return where to write a file: at `output`, or, if that is a directory, under `name` in it.

    Raises
    ------
    InputError
        `output` is neither a directory nor a file with one of the endings.
    FileError
        The directory of the file does not exist; the message calls the file `what`.
    """
    target = output / name if output.is_dir() else output
    if target.suffix.lower() not in endings:
        allowed = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        raise InputError(f"{target}: neither an existing directory nor a file ending in {allowed}")
    if not target.parent.is_dir():
        raise FileError(f"{target}: cannot write the {what} (no such directory: {target.parent})")
    return target


@contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """Yield the name of a file to write, which takes the place of `target` when all went well, else nothing is left.

    It is in a new folder beside `target`, hidden and ending in .part: others who write the same
    file do not meet it. Where `target` is a link, that stays, and what it leads to is replaced.

    Raises
    ------
    OSError
        The folder cannot be made, or the file cannot take its place.
    """
    place = target.resolve() if target.is_symlink() else target
    with TemporaryDirectory(".part", ".", place.parent, ignore_cleanup_errors=True) as folder:
        partial = Path(folder) / target.name
        yield partial
        partial.replace(place)


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
