"""Describing a file or the directory of a run as text for the terminal."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hybrid_nbody.analysis.presentation import Facts, PresentedModel, presented
from hybrid_nbody.errors import FileError, HybridNBodyError, InputError
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.files.checkpoint import checkpoint_path, open_checkpoint
from hybrid_nbody.files.finding import find_trajectory
from hybrid_nbody.files.hdf5 import SIGNATURE, attributes, check_regular_file, reading
from hybrid_nbody.files.names import CHECKPOINT_FILES, ORIGIN, TRAJECTORY_FILE
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.files.seals import SEAL_BYTES, is_sealed
from hybrid_nbody.files.views import Array

LOOKS = 5
"""Looks at the checkpoints of a run that removes all that were there at each."""

WIDTH = 14
"""Characters of the left column."""

NAMED_ELSEWHERE = {
    *("format", "format_version", "program_version", "config", "title", "model"),
    *("units", "time_units", "unit_length_in_m", "unit_mass_in_kg", "unit_time_in_s"),
    ORIGIN,
}
TIME = re.compile(r"(?<= )t = ([-+.\de]+),")
"""The time in the attribute `ORIGIN`."""

UNITS = ("bytes", "kB", "MB", "GB", "TB")


Models = Mapping[str, PresentedModel]


def describe(path: str | Path, *, models: Models) -> str:
    """Describe a run's directory, a trajectory, a checkpoint or a file of bodies.

    Parameters
    ----------
    path : str or Path
        A file or a directory.
    models : mapping of str to PresentedModel
        The models by name.

    Returns
    -------
    str
        Aligned lines of text without a final line break. Damaged checkpoints beside a run are named
        in it.

    Raises
    ------
    InputError
        There is nothing at `path`, or nothing that hybrid_nbody knows.
    FileError
        The file is damaged, unreadable or written by a newer program.
    """
    path = Path(path)
    with reading(path):
        if not path.exists():
            raise InputError(f"{path}: no such file or directory")
        if path.is_dir():
            return _describe_directory(path, models)
        head = _head(path)
    return _describe_file(path, head, models)


def check_trajectory(path: str | Path) -> None:
    """Check that the trajectory of a directory can be read; `describe` only mentions it.

    Raises
    ------
    FileError
        It is foreign, damaged, unreadable or written by a newer program.
    """
    trajectory = Path(path) / TRAJECTORY_FILE
    if trajectory.exists():
        open_run(trajectory).close()


def _head(path: Path) -> bytes:
    check_regular_file(path)
    with open(path, "rb") as file:
        return file.read(SEAL_BYTES)


def _describe_file(path: Path, head: bytes, models: Mapping[str, PresentedModel]) -> str:
    if is_sealed(head, "checkpoint"):
        return _describe_checkpoint(path, models)
    if (
        head.startswith(SIGNATURE)
        or is_sealed(head, "trajectory")
        or (not head and path.suffix in (".h5", ".hdf5"))
    ):  # an empty one says so
        return _describe_trajectory(path, models)
    if path.suffix in (".yaml", ".yml"):
        raise InputError(
            f"{path}: a configuration, not an output; look at it with: hybrid-nbody check {path}"
        )
    return _describe_bodies(path)


def _describe_directory(path: Path, models: Mapping[str, PresentedModel]) -> str:
    checkpoints = sorted(path.glob(CHECKPOINT_FILES))
    if not (path / TRAJECTORY_FILE).exists() and not checkpoints:
        find_trajectory(path)  # says what the directory holds instead
    lines = [f"{path}: the output of a run", *_lines_of_trajectory(path / TRAJECTORY_FILE, models)]
    lines += _listed("checkpoints", _lines_of_checkpoints(path) or ["none"])
    sizes = list(_sizes_of_files(path))
    return "\n".join([*lines, _line("size", f"{readable_size(sum(sizes))} in {len(sizes)} files")])


def _lines_of_checkpoints(folder: Path) -> list[str]:
    """Return a line on each checkpoint that is there; a run may remove them all the time."""
    for _ in range(LOOKS):
        lines = [_line_of_checkpoint(file) for file in sorted(folder.glob(CHECKPOINT_FILES))]
        if any(lines) or not lines:
            break
    return [line for line in lines if line]


def _sizes_of_files(folder: Path) -> Iterator[int]:
    """Yield the size of each file of a folder, less those that go meanwhile."""
    for entry in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if entry.is_file():
                yield entry.stat().st_size


def _lines_of_trajectory(path: Path, models: Mapping[str, PresentedModel]) -> list[str]:
    """Return lines on a trajectory, or why it cannot be read; checkpoints may still be good."""
    try:
        with open_run(path) as run:
            return _lines_of_run(run, presented(models, run.model))
    except HybridNBodyError as error:
        return [_line("trajectory", _reason(path, error))]


def _describe_trajectory(path: Path, models: Mapping[str, PresentedModel]) -> str:
    with open_run(path) as run:
        size = _line("size", readable_size(path.stat().st_size))
        lines = _lines_of_run(run, presented(models, run.model))
        return "\n".join([f"{path}: the trajectory of a run", *lines, size])


def _describe_checkpoint(path: Path, models: Mapping[str, PresentedModel]) -> str:
    size = _line("size", readable_size(path.stat().st_size))
    return "\n".join([f"{path}: a checkpoint", *_lines_of_checkpoint(path, models), size])


def _describe_bodies(path: Path) -> str:
    bodies = read_bodies(path)
    lines = [
        f"{path}: a file of bodies",
        _line("bodies", len(bodies)),
        _line("total mass", f"{bodies.mass.sum():g}"),
        _line("size", readable_size(path.stat().st_size)),
    ]
    return "\n".join(lines)


# --- a trajectory ---------------------------------------------------------------------------------


def _lines_of_run(run: Run, model: PresentedModel) -> list[str]:
    lines = _lines_of_origin(run.attributes)
    lines += [_line(name, text) for name, text in model.facts_of_run(run)]
    lines.append(_line("frames", _extent(run.number_of_frames, run.time, run.step)))
    diagnostics = run.diagnostics
    if not diagnostics.number_of_rows:
        return [*lines, _line("diagnostics", "none")]
    lines.append(
        _line(
            "diagnostics", _extent(diagnostics.number_of_rows, diagnostics.time, diagnostics.step)
        )
    )
    return lines + _listed("last values", _lines_of_values(run, model.highlights))


def _lines_of_origin(found: Mapping[str, Any]) -> list[str]:
    lines = [_line("title", found["title"])] if found.get("title") else []
    lines += [_line("started from", _brief(found[ORIGIN]))] if found.get(ORIGIN) else []
    lines.append(_line("model", found.get("model", "unknown")))
    lines += [_line("units", found["units"])] if found.get("units") else []
    written_by = (
        f", written by hybrid_nbody {found['program_version']}"
        if "program_version" in found
        else ""
    )
    lines.append(
        _line("format", f"{found['format']}, version {found['format_version']}{written_by}")
    )
    machine = [
        f"{name} {value}"
        for name, value in found.items()
        if name not in NAMED_ELSEWHERE and _is_brief(value)
    ]
    return lines + ([_line("ran with", ", ".join(machine))] if machine else [])


def _brief(origin: str) -> str:
    """Return where a run has started, as its files say it, with a time of a few digits."""
    return TIME.sub(lambda found: f"t = {float(found[1]):g},", origin)


def _is_brief(value: object) -> bool:
    return isinstance(value, (str, int, float)) and len(str(value)) <= 40


def _extent(count: int, times: Array, steps: Array) -> str:
    if not count:
        return "none yet"
    if count == 1:
        return f"1, at time {times[0]:g}, step {steps[0]}"
    return f"{count}, time {times[0]:g} to {times[-1]:g}, step {steps[0]} to {steps[-1]}"


def last_values(run: Run, highlights: Sequence[str]) -> list[tuple[str, str]]:
    """Return names and values of the last row of diagnostics, `highlights` first."""
    values = {
        name: value
        for name, value in run.diagnostics.row(-1).items()
        if name not in ("time", "step")
    }
    first = [name for name in highlights if name in values]
    names = first + [name for name in values if name not in first]
    return [(name, _numbers(values[name])) for name in names]


def _lines_of_values(run: Run, highlights: Sequence[str]) -> list[str]:
    values = last_values(run, highlights)
    width = max((len(name) for name, _ in values), default=0)
    return [f"{name.replace('_', ' '):<{width}}  {text}" for name, text in values]


def _numbers(value: Array) -> str:
    return "  ".join(f"{number: .6g}" for number in value.ravel()[:6])


# --- a checkpoint ---------------------------------------------------------------------------------


def _lines_of_checkpoint(path: Path, models: Mapping[str, PresentedModel]) -> list[str]:
    found, facts = _read_checkpoint(path, models)
    lines = _lines_of_origin(
        {name: found[name] for name in found if name not in ("step", "time", "scalars")}
    )
    contents = [_line(name, text) for name, text in facts]
    return [*lines, *contents, _line("state at", f"time {found['time']:g}, step {found['step']}")]


def _line_of_checkpoint(path: Path) -> str:
    """Return a line on a checkpoint; empty if it has been removed."""
    try:
        found, _ = _read_checkpoint(path, {})
    except HybridNBodyError as error:
        return f"{path.name}  cannot be used: {_reason(path, error)}" if path.exists() else ""
    renamed = "" if path == checkpoint_path(path.parent, found["step"]) else ", under another name"
    return f"{path.name}  time {found['time']:g}, step {found['step']}{renamed}"


def _read_checkpoint(
    path: Path, models: Mapping[str, PresentedModel]
) -> tuple[dict[str, Any], Facts]:
    """Return the attributes of a checkpoint, and the facts that its model finds in it."""
    with open_checkpoint(path) as file, reading(path):
        found = attributes(file)
        missing = [
            name for name in ("step", "time") if not isinstance(found.get(name), (int, float))
        ]
        if missing:
            raise FileError(f"{path}: damaged; no attribute '{missing[0]}' in it")
        model = presented(models, str(found.get("model", "")))
        return found, model.facts_of_checkpoint(file)


# --- text -----------------------------------------------------------------------------------------


def _line(name: str, text: object) -> str:
    return f"  {name:<{WIDTH}}{text}"


def _listed(name: str, texts: Sequence[str]) -> list[str]:
    return [_line(name, texts[0])] + [_line("", text) for text in texts[1:]] if texts else []


def _reason(path: Path, error: Exception) -> str:
    return str(error).removeprefix(f"{path}: ")


def readable_size(size: float, digits: int = 4) -> str:
    """Return a number of bytes with a decimal prefix."""
    rounded = float(f"{size:.{digits}g}")  # 999.99 kB is 1 MB
    power = min(int(math.log10(max(rounded, 1))) // 3, len(UNITS) - 1)
    return f"{rounded / 1000**power:.{digits}g} {UNITS[power]}"
