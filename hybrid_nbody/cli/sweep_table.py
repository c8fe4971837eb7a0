"""The table of a sweep of single runs, and what stands in its way."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from hybrid_nbody.analysis.excess import worst_of
from hybrid_nbody.analysis.runs_table import Row
from hybrid_nbody.errors import HybridNBodyError, InputError
from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.files.log import read_log
from hybrid_nbody.output import directory
from hybrid_nbody.running.members import Member, MemberState, state_of

TABLE = "sweep.csv"
"""Name of the table in the directory of a sweep."""

DIRECTORY = "directory"
"""The column that only a table of single runs has."""

FAILED_STATE = "failed"


def row_of(file: str, member: Member) -> Row:
    """Return the row of a member in the table, by what its worker has written if it has ended."""
    warning = ", ".join(worst_of(warnings_of(member)))
    state, reason = _state_of(file, member)
    return Row(member.values, member.folder, state, reason, warning)


def _state_of(file: str, member: Member) -> tuple[str, str]:
    """Return how far a member is, and why it failed or what stopped it."""
    if member.reason:
        return FAILED_STATE, member.reason
    ended = member.ended
    for state in (MemberState.FINISHED, MemberState.STOPPED):
        if ended.startswith(state.value):
            return state.value, ended if state is MemberState.STOPPED else ""
    try:
        return state_of(member, member.configuration(file)).value, ""
    except HybridNBodyError as error:
        return FAILED_STATE, str(error)


def warnings_of(member: Member) -> list[str]:
    """Return what a member has warned of, as its log says."""
    return read_log(member.folder / "log.txt").warnings


# --- earlier sweeps -------------------------------------------------------------------------------


def check_members(file: str, members: Sequence[Member]) -> None:
    """Check that no member has a run of another configuration in its way.

    Raises
    ------
    InputError
        Naming the first such run, and the key that differs.
    """
    for member in members:
        if not directory.files_of_a_run(member.folder):
            continue
        try:
            config = member.configuration(file)
        except InputError:  # it fails when it is tried, and leaves the others
            continue
        state_of(member, config)


def check_is_of_runs(table: Path) -> None:
    """Check that a table, if there is one, is that of a sweep of single runs.

    Raises
    ------
    InputError
        It is another one, which would be overwritten.
    """
    rows = _rows(table)
    if rows and DIRECTORY not in rows[0]:
        raise InputError(
            f"{table} is not the table of a sweep of single runs: it has no column '{DIRECTORY}'; "
            "give --overwrite, or another --output"
        )


def check_is_not_of_runs(table: Path) -> None:
    """Check that a table, if there is one, is not that of a sweep of single runs.

    Raises
    ------
    InputError
        It is, and would be overwritten.
    """
    rows = _rows(table)
    if rows and DIRECTORY in rows[0]:
        raise InputError(
            f"{table} is of a sweep without --together; give --overwrite, or another --output"
        )


def kept_rows(table: Path, members: Sequence[Member]) -> list[Mapping[str, str]]:
    """Return the rows of an earlier table whose runs are still there and no members of this."""
    names = {member.folder.name for member in members}
    rows = [row for row in _rows(table) if row.get(DIRECTORY)]
    others = [row for row in rows if row[DIRECTORY] not in names]
    return [row for row in others if (table.parent / row[DIRECTORY]).is_dir()]


def _rows(table: Path) -> list[dict[str, str]]:
    """Return the rows of a table by column; none if there is no file."""
    if not table.exists():
        return []
    with (
        file_errors(table, "reading the table"),
        open(table, newline="", encoding="utf-8", errors="replace") as file,
    ):
        return list(csv.DictReader(file))
