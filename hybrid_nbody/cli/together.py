"""A sweep whose points are small systems, which a device computes side by side."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hybrid_nbody.analysis.runs_table import text_of, write_csv
from hybrid_nbody.api.together import Drawer, Piece, Point, check, pieces_of
from hybrid_nbody.errors import STOPPED_EARLY, InputError, NumericalError
from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.parallel.communicator import Communicator, alone
from hybrid_nbody.running.members import Member, Progress
from hybrid_nbody.running.start import told_by_the_guard
from hybrid_nbody.simulation.signals import StopSignals

FILES = "systems-*.h5"
"""Pattern of the names of the files; the star stands for a number."""

FAILED = "failed"
FINISHED = Progress.FINISHED.value
BEGUN = Progress.BEGUN.value

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
    shown: Sequence[str],
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
    shown : sequence of str
        Columns on a terminal, beside the values, the state and the time.

    Raises
    ------
    InputError
        On every rank, if a member cannot be computed so, or there are other systems in the files.
    FileError
        A file cannot be written, or is damaged.
    """
    folder = table.parent
    itself = communicator if communicator.size == 1 else alone()
    points, failed = communicator.on_root(lambda: _points(file, members, itself))
    communicator.only_on_root(lambda: _prepare(folder, overwrite))
    pieces = list(enumerate(pieces_of(points)))[communicator.rank :: communicator.size]
    with StopSignals() as signals, told_by_the_guard():
        own = communicator.together(
            lambda: _computed(pieces, folder, itself, lambda: not signals.received)
        )
    rows = failed | {name: row for some in communicator.gather(own) for name, row in some.items()}
    return communicator.on_root(lambda: _ended(rows, members, table, shown))


def _prepare(folder: Path, overwrite: bool) -> None:
    """Make the directory; remove the files of an earlier sweep if they may go."""
    with file_errors(folder, "making the folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(FILES) if overwrite else ():
            path.unlink()


def _points(
    file: str, members: Sequence[Member], itself: Communicator
) -> tuple[list[Point], Table]:
    """Return the points that can be computed, and the rows of the others; for the root alone."""
    drawer = Drawer(itself)
    points: list[Point] = []
    failed: Table = {}
    for member in members:
        try:
            config = member.configuration(file)
        except InputError as error:
            failed[member.name] = {"state": FAILED, "reason": str(error)}
        else:
            points.append(drawer.point(member.name, check(config)))
    return points, failed


def _computed(
    pieces: Sequence[tuple[int, Sequence[Point]]],
    folder: Path,
    itself: Communicator,
    goes_on: Callable[[], bool],
) -> Table:
    """Compute pieces with their numbers, and return the rows of their points."""
    rows: Table = {}
    for number, points in pieces:
        piece = Piece(points, folder / FILES.replace("*", str(number)), itself)
        piece.run(goes_on, lambda text: print(f"  {text}", flush=True))
        state = FINISHED if piece.finished else BEGUN
        for point, columns in piece.rows():
            rows[point.name] = {"state": FAILED if columns["reason"] else state, **columns}
    return rows


def _ended(rows: Table, members: Sequence[Member], table: Path, shown: Sequence[str]) -> int:
    """Write the table and print it; return the exit code."""
    columns = [{**member.values, **rows[member.name]} for member in members]
    write_csv(table, columns)
    print(text_of(columns, [*members[0].values, "state", "time", *shown]))
    named = zip(members, columns, strict=True)
    faults = [f"{member.name}: {row['reason']}" for member, row in named if row["reason"]]
    for fault in faults[:MOST_REASONS]:
        print(fault)
    print(f"table in {table}", flush=True)
    states = {row["state"] for row in columns}
    if FAILED in states:
        return NumericalError.exit_code
    if BEGUN in states:
        print("not all runs are finished: give the same command again", flush=True)
        return STOPPED_EARLY
    return 0
