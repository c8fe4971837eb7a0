"""A sweep whose points are small systems, which a device computes side by side."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hybrid_nbody.analysis.excess import lines_of, worst_of
from hybrid_nbody.analysis.runs_table import text_of, write_csv
from hybrid_nbody.api.together import Drawer, Piece, Point, check, check_file, pieces_of
from hybrid_nbody.backends.base import Backend
from hybrid_nbody.cli.sweep_table import check_is_not_of_runs
from hybrid_nbody.errors import STOPPED_EARLY, InputError, NumericalError
from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.output.limits import Limits
from hybrid_nbody.parallel.communicator import Communicator, alone
from hybrid_nbody.parallel.placement import assign_device
from hybrid_nbody.running.contract import AnyKind
from hybrid_nbody.running.members import Member, MemberState
from hybrid_nbody.running.start import without_numpy_warnings
from hybrid_nbody.simulation.signals import StopSignals

FILES = "systems-*.h5"
"""Pattern of the names of the files; the star stands for a number."""

FAILED = "failed"
FINISHED = MemberState.FINISHED.value
BEGUN = MemberState.BEGUN.value

MOST_REASONS = 20
"""Most failures that are told of; the table has all."""

Table = dict[str, dict[str, Any]]
"""The columns of each member, by its name."""


def sweep_together(
    file: str,
    members: Sequence[Member],
    overwrite: bool,
    communicator: Communicator,
    table: Path,
    kind: AnyKind,
) -> int:
    """Compute all members, and write a table of them; return the exit code.

    Parameters
    ----------
    file : str
        The configuration.
    members : sequence of Member
    overwrite : bool
        Whether what there is goes.
    communicator : Communicator
        Each rank computes some of the files.
    table : Path
        Its name; the files are beside it.
    kind : ModelKind
        Of the configuration: columns on a terminal, and limits of quantities.

    Raises
    ------
    InputError
        On every rank, if a member cannot be computed so, or there are other systems in the files.
    FileError
        A file cannot be written, or is damaged.
    """
    folder = table.parent
    points, failed = communicator.on_root(lambda: _points(file, members))
    pieces = {folder / FILES.replace("*", str(k)): own for k, own in enumerate(pieces_of(points))}
    if not overwrite:
        communicator.only_on_root(lambda: check_is_not_of_runs(table))
    communicator.only_on_root(lambda: _prepare(folder, list(pieces), members, overwrite))
    devices = {place: _device(place, communicator) for place in sorted(_places(points))}
    mine = list(pieces.items())[communicator.rank :: communicator.size]
    communicator.together(lambda: _check_files(mine))
    with StopSignals() as signals, without_numpy_warnings():
        own = communicator.together(lambda: _computed(mine, devices, lambda: not signals.received))
    rows = failed | {name: row for some in communicator.gather(own) for name, row in some.items()}
    return communicator.on_root(lambda: _ended(rows, members, table, kind))


def _prepare(
    folder: Path, files: Sequence[Path], members: Sequence[Member], overwrite: bool
) -> None:
    """Make the directory, which may hold these files alone; remove all if they may go."""
    if any(member.folder.exists() for member in members):
        raise InputError(
            f"{folder} holds runs of a sweep without --together; take another --output"
        )
    with file_errors(folder, "making the folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(FILES) if overwrite else ():
            path.unlink()
    others = sorted(set(folder.glob(FILES)) - set(files))
    if others:
        raise InputError(f"{others[0]} is of another sweep; give --overwrite, or another --output")
    print("computed together: of output, nothing but the directory has an effect", flush=True)


def _points(file: str, members: Sequence[Member]) -> tuple[list[Point], Table]:
    """Return the points that can be computed, and the rows of the others; for the root alone."""
    drawer = Drawer(alone())
    points: list[Point] = []
    failed: Table = {}
    for member in members:
        try:
            config = member.configuration(file)
        except InputError as error:
            failed[member.name] = {"state": FAILED, "reason": str(error)}
            continue
        checked = check(config)
        try:
            points.append(drawer.point(member.name, checked))
        except InputError as error:
            failed[member.name] = {"state": FAILED, "reason": str(error)}
    return points, failed


def _places(points: Sequence[Point]) -> set[tuple[str, str | int]]:
    """Return where points are to be computed."""
    return {point.place for point in points}


def _device(place: tuple[str, str | int], communicator: Communicator) -> Backend:
    """Return the device of this rank; collective."""
    backend, threads = place
    return assign_device(backend, threads, communicator).backend


def _check_files(pieces: Sequence[tuple[Path, Sequence[Point]]]) -> None:
    """Check that the files that are there hold these points, before anything is computed."""
    for path, points in pieces:
        check_file(points, path)


def _computed(
    pieces: Sequence[tuple[Path, Sequence[Point]]],
    devices: Mapping[tuple[str, str | int], Backend],
    goes_on: Callable[[], bool],
) -> Table:
    """Compute the systems of files, and return the rows of their points."""
    rows: Table = {}
    for path, points in pieces:
        if not goes_on() and not path.exists():
            rows |= {point.name: {"state": BEGUN, "reason": ""} for point in points}
            continue
        device = devices[points[0].place]
        device.use()
        piece = Piece(points, path, alone(), device)
        piece.run(goes_on, lambda text: print(f"  {text}", flush=True))
        state = FINISHED if piece.finished else BEGUN
        for point, columns in piece.rows():
            rows[point.name] = {"state": FAILED if columns["reason"] else state, **columns}
    return rows


def _ended(rows: Table, members: Sequence[Member], table: Path, kind: AnyKind) -> int:
    """Write the table and print it; return the exit code."""
    limits = Limits(kind.quantities)
    excesses = {member.name: worst_of(limits.warnings(rows[member.name])) for member in members}
    columns = [
        {**member.values, **rows[member.name], "warning": ", ".join(excesses[member.name])}
        for member in members
    ]
    write_csv(table, columns)
    print(text_of(columns, [*members[0].values, "state", "warning", "time", *kind.highlights]))
    _tell_of_faults(members, columns)
    print(*lines_of(excesses), f"table in {table}", sep="\n", flush=True)
    return _exit_code({row["state"] for row in columns})


def _tell_of_faults(members: Sequence[Member], columns: Sequence[Mapping[str, Any]]) -> None:
    """Print why systems failed."""
    named = zip(members, columns, strict=True)
    faults = [f"{member.name}: {row['reason']}" for member, row in named if row["reason"]]
    for fault in faults[:MOST_REASONS]:
        print(fault)
    if len(faults) > MOST_REASONS:
        print(f"and {len(faults) - MOST_REASONS} more, as the table says")


def _exit_code(states: set[str]) -> int:
    if FAILED in states:
        return NumericalError.exit_code
    if BEGUN in states:
        print("not all runs are finished: give the same command again", flush=True)
        return STOPPED_EARLY
    return 0
