"""Differences between two runs over time: of their diagnostics and fields.

Frames and rows of diagnostics are matched by their times, and the rows of a field by the ids that
stand beside it, such as those of bodies. Small frames are read several at a time, fields on a grid
a few planes at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hybrid_nbody.analysis.compare_rounding import is_rounding, natural_units
from hybrid_nbody.analysis.compare_series import Series
from hybrid_nbody.analysis.damage import on_whole_frames
from hybrid_nbody.analysis.volume import blocks, volume_of
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.names import TRAJECTORY_FILE
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.files.views import Array
from hybrid_nbody.progress import OnProgress, counter

TIME_TOLERANCE = 1e-9
"""Largest difference of equal times, relative to the largest time."""

BYTES_AT_ONCE = 4 << 20
"""Bytes of frames that are read together: reading one small frame takes as long as reading many."""


@dataclass
class Comparison:
    """The differences of two runs.

    Attributes
    ----------
    paths, titles, names : tuple of str
        The runs; their names are those of their directories.
    notes : list of str
        What was matched, and what was left out.
    fields, diagnostics : list of Series
        Of the frames, and of the time series.
    rounding : list of Series
        Of the time series, those that are zero in both runs but for rounding.
    """

    paths: tuple[str, str]
    titles: tuple[str, str]
    names: tuple[str, str]
    notes: list[str] = field(default_factory=list)
    fields: list[Series] = field(default_factory=list)
    diagnostics: list[Series] = field(default_factory=list)
    rounding: list[Series] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Return whether there is no difference at all."""
        return not any(
            one.largest.any() for one in (*self.fields, *self.diagnostics, *self.rounding)
        )


def compare(
    first: str | Path,
    second: str | Path,
    progress: OnProgress | None = None,
    of_any_bodies: bool = False,
) -> Comparison:
    """Compare two runs.

    Parameters
    ----------
    first, second : str or Path
        Directories or trajectories of the runs, which may still be running.
    progress : callable, optional
        Called with the numbers of frames compared and of all frames, after each.
    of_any_bodies : bool, optional
        Whether runs of different rows or cells may be compared, by their diagnostics alone.

    Raises
    ------
    InputError
        There is no such run; they are of two models, of different rows or cells, or have no time
        in common.
    FileError
        One of the runs cannot be read.
    """
    with open_run(first) as a, open_run(second) as b:
        if a.model != b.model:
            raise InputError(
                f"{a.path} is of model '{a.model}', {b.path} of '{b.model}': nothing to compare"
            )
        found = on_whole_frames(lambda: _compared(a, b, progress, of_any_bodies), a, b)
        if not found.fields and not found.diagnostics:
            raise InputError(
                f"{a.path} and {b.path}: no frame and no row of diagnostics at the same time"
            )
        return found


def _compared(a: Run, b: Run, progress: OnProgress | None, of_any_bodies: bool) -> Comparison:
    """Return the comparison of two runs of a model."""
    names = (name_of(a.path), name_of(b.path))
    found = Comparison((str(a.path), str(b.path)), (a.title, b.title), names)
    try:
        _compare_frames(a, b, found, progress)
    except InputError as error:
        if not of_any_bodies:
            raise
        found.notes.append(f"frames are left out: {error}")
    _compare_diagnostics(a, b, found)
    _set_rounding_apart(found, natural_units(a, found.fields))
    return found


def name_of(path: Path) -> str:
    """Return the name of a run: of its directory, as it was given."""
    return str(path.parent if path.name == TRAJECTORY_FILE and path.parent.name else path)


def _set_rounding_apart(found: Comparison, known: dict[str, float]) -> None:
    """Leave out diagnostics that are zero in both runs but for rounding."""
    found.rounding = [one for one in found.diagnostics if is_rounding(one, known)]
    if found.rounding:
        found.diagnostics = [one for one in found.diagnostics if not is_rounding(one, known)]
        names = ", ".join(one.name for one in found.rounding)
        found.notes.append(f"zero but for rounding, in both: {names}")


# --- matching -------------------------------------------------------------------------------------


def common_times(first: Array, second: Array) -> tuple[Array, Array]:
    """Return the indices of equal times in two ascending arrays, in the first and in the second."""
    if not len(first) or not len(second):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    slack = TIME_TOLERANCE * max(np.abs(first).max(), np.abs(second).max())
    right = np.searchsorted(second, first).clip(1, max(len(second) - 1, 1))
    left = right - 1
    right = np.minimum(right, len(second) - 1)
    near = np.where(np.abs(second[left] - first) <= np.abs(second[right] - first), left, right)
    same = np.abs(second[near] - first) <= slack
    return np.flatnonzero(same), near[same]


def _matched(
    found: Comparison, what: str, first: Array, second: Array
) -> tuple[list[int], list[int]]:
    """Return the indices of equal times in both runs, and note how many there are."""
    left, right = common_times(first, second)
    if len(left):
        span = f"time {first[left[0]]:g} to {first[left[-1]]:g}"
        of = "" if len(left) == len(first) == len(second) else f" of {len(first)} and {len(second)}"
        found.notes.append(f"{what}: {len(left)}{of} at the same times, {span}")
    else:
        found.notes.append(f"{what}: none of {len(first)} and {len(second)} at the same time")
    return left.tolist(), right.tolist()


def order_of(first: Run, second: Run, group: str) -> tuple[Array, Array]:
    """Return the rows of the same ids in two runs.

    Parameters
    ----------
    first, second : Run
    group : str
        The group of data sets whose rows are matched, such as ``bodies``.

    Raises
    ------
    InputError
        The ids of the two runs differ.
    """
    first_id = first.constant(f"{group}/id")
    second_id = second.constant(f"{group}/id")
    if len(first_id) != len(second_id):
        sizes = f"{len(first_id)} {group}, {second.path} {len(second_id)}"
        raise InputError(f"{first.path} has {sizes}; only runs of the same {group} can be compared")
    first_order = np.argsort(first_id, kind="stable")
    second_order = np.argsort(second_id, kind="stable")
    if not np.array_equal(first_id[first_order], second_id[second_order]):
        raise InputError(
            f"{first.path} and {second.path} have {group} of different ids ({group}/id)"
        )
    return first_order, second_order


def _check_cells(first: Run, second: Run, name: str) -> None:
    cells = [volume_of(run, name) for run in (first, second)]
    same = all(np.array_equal(a, b) for a, b in zip(cells[0].stored, cells[1].stored, strict=True))
    if cells[0].cells != cells[1].cells or not same:
        texts = [" x ".join(map(str, volume.cells)) for volume in cells]
        more = " of which the frames hold different ones" if texts[0] == texts[1] else ""
        raise InputError(
            f"{first.path} has {texts[0]} cells, {second.path} {texts[1]}{more}; "
            "they cannot be compared"
        )


# --- differences ----------------------------------------------------------------------------------


def _compare_frames(a: Run, b: Run, found: Comparison, progress: OnProgress | None) -> None:
    names = [name for name in a.fields if name in b.fields]
    left, right = _matched(found, "frames", a.time, b.time)
    if not left:
        return
    differences = [_differences(a, b, name) for name in names]
    step = counter(progress, len(left))
    parts = []
    for i, j in _stretches(left, right, _at_once(a, names)):
        parts.append([of_frames(i, j) for of_frames in differences])
        for _ in range(i.start, i.stop):
            step()
    for name, rows in zip(names, zip(*parts, strict=True), strict=True):
        found.fields.append(
            _series(name.partition("/")[2], _units(a, b, name), a.time[left], np.concatenate(rows))
        )


def _at_once(run: Run, names: Sequence[str]) -> int:
    """Return the number of frames of a run that are read together."""
    numbers = max((int(np.prod(run.shape(name)[1:])) for name in names), default=1)
    return max(1, BYTES_AT_ONCE // (8 * max(numbers, 1)))


def _stretches(left: list[int], right: list[int], most: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of at most `most` matched frames that are consecutive in both runs."""
    start = 0
    for end in range(1, len(left) + 1):
        follows = (
            end < len(left) and left[end] == left[end - 1] + 1 and right[end] == right[end - 1] + 1
        )
        if not follows or end - start == most:
            yield slice(left[start], left[end - 1] + 1), slice(right[start], right[end - 1] + 1)
            start = end


def _differences(a: Run, b: Run, name: str) -> Callable[[slice, slice], Array]:
    """Return a function of a slice of frames of each run; its result is that of `_of_rows`."""
    if len(a.shape(name)) >= 4:  # on a grid of cells (frame, z, y, x)
        _check_cells(a, b, name)
        return lambda i, j: np.array(
            [_of_pieces(_pieces(a, b, name, *pair)) for pair in _one_by_one(i, j)]
        )
    group = name.partition("/")[0]
    if a.has(f"{group}/id"):
        rows = order_of(a, b, group)
        return lambda i, j: _of_rows(a.field(name, i)[:, rows[0]], b.field(name, j)[:, rows[1]])
    if a.shape(name)[1:] != b.shape(name)[1:]:
        raise InputError(
            f"{name}: {a.shape(name)[1:]} numbers in {a.path}, {b.shape(name)[1:]} in {b.path}"
        )
    return lambda i, j: _of_rows(a.field(name, i), b.field(name, j))


def _one_by_one(i: slice, j: slice) -> Iterable[tuple[int, int]]:
    return zip(range(i.start, i.stop), range(j.start, j.stop), strict=True)


def _pieces(a: Run, b: Run, name: str, i: int, j: int) -> Iterator[tuple[Array, Array]]:
    """Yield the planes of a field on a grid in a frame of each run, side by side."""
    for (_, one), (_, two) in zip(blocks(a, name, i), blocks(b, name, j), strict=True):
        yield one, two


def _of_pieces(pairs: Iterable[tuple[Array, Array]]) -> tuple[float, float, float]:
    """Return the largest difference, the rms of all, and the largest value of the first run."""
    largest = 0.0
    square = 0.0
    count = 0
    scale = 0.0
    for one, two in pairs:
        difference = _difference(one, two)
        largest = max(largest, float(difference.max(initial=0.0)), key=_nan_last)
        square += float((difference**2).sum())
        count += difference.size
        scale = max(scale, float(np.abs(one).max(initial=0.0, where=np.isfinite(one))))
    return largest, float(np.sqrt(square / max(count, 1))), scale


def _units(a: Run, b: Run, name: str) -> str:
    """Return the units of a quantity, which both runs have in the same.

    Raises
    ------
    InputError
        They do not.
    """
    here = a.units(name)
    there = b.units(name)
    if here != there:
        raise InputError(
            f"{name} is in {here} in {a.path}, in {there} in {b.path}; only runs in the same units "
            "can be compared"
        )
    return here


def _difference(one: Array, two: Array) -> Array:
    """Return the sizes of differences; there is none where neither is a number."""
    difference = np.abs(np.subtract(one, two, dtype=np.float64))
    both = np.isnan(one) & np.isnan(two) if one.dtype.kind == "f" == two.dtype.kind else False
    return np.where(both, 0.0, difference)


def _nan_last(value: float) -> float:
    return np.inf if np.isnan(value) else value


def _compare_diagnostics(a: Run, b: Run, found: Comparison) -> None:
    if not a.diagnostics.number_of_rows or not b.diagnostics.number_of_rows:
        found.notes.append("diagnostics: one of the runs has none")
        return
    left, right = _matched(found, "rows of diagnostics", a.diagnostics.time, b.diagnostics.time)
    names = [
        name for name in a.diagnostics if name in b.diagnostics and name not in ("time", "step")
    ]
    for name in names if left else ():
        rows = _of_rows(a.diagnostics[name][left], b.diagnostics[name][right])
        units = _units(a, b, f"diagnostics/{name}")
        found.diagnostics.append(_series(name, units, a.diagnostics.time[left], rows))


def _of_rows(one: Array, two: Array) -> Array:
    """Return the three numbers of `_of_pieces` for each row of two arrays: (rows, 3)."""
    components = tuple(range(1, one.ndim))
    difference = _difference(one, two)
    count = max(1, difference[:1].size)
    rms = np.sqrt(np.sum(difference**2, axis=components) / count)
    scale = np.abs(one).max(axis=components, initial=0.0, where=np.isfinite(one))
    return np.column_stack([difference.max(axis=components, initial=0.0), rms, scale])


def _series(name: str, units: str, time: Array, rows: Array) -> Series:
    largest, rms, scales = np.array(rows).T
    return Series(name.replace("_", " "), units, time, largest, rms, float(scales.max()))


# --- text -----------------------------------------------------------------------------------------


def table_of(found: Comparison) -> str:
    """Return a comparison as text for the terminal."""
    lines = [
        f"{found.names[0]} against {found.names[1]}",
        *(f"  {note}" for note in found.notes),
    ]
    series = [*found.fields, *found.diagnostics]
    width = max((len(one.name) for one in series), default=0)
    lines.append(f"  {'':<{width}}     largest    relative     at time         rms   units")
    lines += [_line(one, width) for one in series]
    if found.is_exact:
        lines.append("  no difference, to the last bit")
    return "\n".join(lines)


def _line(one: Series, width: int) -> str:
    worst = one.worst
    relative = one.largest[worst] / one.scale if one.scale > 0 else np.nan
    numbers = (one.largest[worst], relative, one.time[worst], one.overall_rms)
    texts = [f"{number:>10.4g}" for number in numbers]
    return f"  {one.name:<{width}}  {'  '.join(texts)}   {one.units}"
