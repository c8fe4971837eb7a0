"""Several runs beside the first of them: how far each is from it, with a name for each."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hybrid_nbody.analysis.compare import Comparison, compare, name_of
from hybrid_nbody.analysis.compare_series import Series
from hybrid_nbody.analysis.runs_table import text_in_blocks
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.finding import find_trajectory
from hybrid_nbody.progress import OnProgress, counter

RUN = "run"


@dataclass(frozen=True)
class Several:
    """Comparisons of runs with the first of them.

    Attributes
    ----------
    labels : sequence of str
        Of all runs, the first one included.
    paths : sequence of Path
        Their trajectories.
    comparisons : sequence of Comparison
        Of each but the first, with the first.
    """

    labels: Sequence[str]
    paths: Sequence[Path]
    comparisons: Sequence[Comparison]

    @property
    def quantities(self) -> list[str]:
        """Return the names of all quantities that are compared, fields first."""
        fields = [one.name for found in self.comparisons for one in found.fields]
        others = [one.name for found in self.comparisons for one in found.diagnostics]
        return list(dict.fromkeys([*fields, *others]))


def compare_several(
    paths: Sequence[str | Path],
    labels: Sequence[str] | None = None,
    progress: OnProgress | None = None,
) -> Several:
    """Compare runs with the first of them.

    Parameters
    ----------
    paths : sequence of str or Path
        Directories or trajectories of runs, two at least; those of other bodies or cells than the
        first are compared by their diagnostics.
    labels : sequence of str, optional
        A name for each; by default that of its directory.
    progress : callable, optional
        Called with the numbers of runs compared and of all, after each.

    Raises
    ------
    InputError
        There is no such run; there is not one label for each; or two runs are of different models
        or have no time in common.
    FileError
        A run cannot be read.
    """
    found = [find_trajectory(path) for path in paths]
    names = _labels(found) if labels is None else list(labels)
    if len(names) != len(found) or len(set(names)) != len(names):
        given = ", ".join(names)
        raise InputError(
            f"--labels: {len(found)} different ones are needed, one a run (got {given})"
        )
    step = counter(progress, len(found) - 1)
    comparisons = []
    for path in found[1:]:
        comparisons.append(compare(found[0], path, of_any_bodies=True))
        step()
    return Several(names, found, comparisons)


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return the names of directories, with as many folders before them as make them differ."""
    parts = [Path(name_of(path)).parts for path in paths]
    for number in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-number:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    raise InputError("compare: the same run twice; give each once")


def table_of_several(found: Several) -> str:
    """Return comparisons as text for the terminal: a row for each run, in blocks that fit it."""
    lines = [
        f"{len(found.labels)} runs, each against {found.labels[0]}:",
        "the largest difference, relative to the largest value there",
    ]
    rows = [
        {RUN: label} | {one.name: _relative(one) for one in (*each.fields, *each.diagnostics)}
        for label, each in zip(found.labels[1:], found.comparisons, strict=True)
    ]
    width = shutil.get_terminal_size().columns
    table = text_in_blocks(rows, RUN, found.quantities, width)
    return "\n".join([*lines, table, *_notes(found)])


def _notes(found: Several) -> list[str]:
    """Return what was matched and left out: once where it is so of all runs."""
    first, *others = found.comparisons
    common = [note for note in first.notes if all(note in each.notes for each in others)]
    own = [
        f"{label}: {note}"
        for label, each in zip(found.labels[1:], found.comparisons, strict=True)
        for note in each.notes
        if note not in common
    ]
    return [*common, *own]


def _relative(one: Series) -> str:
    """Return the largest difference relative to the largest value of the first run."""
    largest = one.largest[one.worst]
    return f"{largest / one.scale:.3g}" if one.scale > 0 else f"{np.nan}"
