"""Finding the trajectory of a run by the name of its directory."""

from pathlib import Path

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.hdf5 import reading
from hybrid_nbody.files.names import TRAJECTORY_FILE
from hybrid_nbody.files.parts import heads_in, parts_folder


def find_trajectory(path: str | Path) -> Path:
    """Return the trajectory file of a run's directory, or the file itself.

    Raises
    ------
    InputError
        There is nothing at `path`, or a directory that holds no run.
    FileError
        The directory cannot be read.
    """
    path = Path(path)
    with reading(path):
        if not path.exists():
            raise InputError(f"{path}: no such file or directory")
        if not path.is_dir():
            return path
        trajectory = path / TRAJECTORY_FILE
        if not trajectory.exists() and not heads_in(parts_folder(trajectory)):
            raise InputError(f"{path}: no {TRAJECTORY_FILE} here; {_contents(path)}")
    return trajectory


def _contents(directory: Path, shown: int = 4) -> str:
    """Return in a few words what a directory holds."""
    names = sorted(entry.name for entry in directory.iterdir() if not entry.name.startswith("."))
    if not names:
        return "the directory is empty"
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"it holds only {', '.join(names[:shown])}{more}"
