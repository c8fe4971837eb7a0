"""Exporting frames of a run to a file that another program opens."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hybrid_nbody.analysis.export import gadget, tables, vtkhdf
from hybrid_nbody.analysis.export.source import Source, open_source
from hybrid_nbody.analysis.export.target import check_target, written
from hybrid_nbody.analysis.presentation import PresentedModel
from hybrid_nbody.errors import InputError
from hybrid_nbody.progress import OnProgress


@dataclass(frozen=True)
class Format:
    """A file format, its writer and its abilities.

    Attributes
    ----------
    write : callable
        ``write(source, path)`` writes the chosen frames of a source.
    size : callable
        Returns the bytes that `write` writes, without tables.
    suffixes : tuple of str
        Endings of the names of its files.
    grids : bool
        Whether it can hold fields on a grid; every format can hold bodies.
    many : bool
        Whether it can hold many frames.
    maps : bool
        Whether it can hold maps, which belong neither to bodies nor to cells.
    needed : tuple of str
        Fields of bodies without which it cannot hold them.
    """

    write: Callable[[Source, Path], None]
    size: Callable[[Source], int]
    suffixes: tuple[str, ...]
    grids: bool = False
    many: bool = False
    maps: bool = False
    needed: tuple[str, ...] = ("position", "velocity")


FORMATS = {
    "gadget": Format(gadget.write, gadget.size, (".hdf5", ".hdf")),
    "vtkhdf": Format(
        vtkhdf.write, vtkhdf.size, (".vtkhdf", ".hdf"), grids=True, many=True, needed=("position",)
    ),
    "csv": Format(tables.write_csv, tables.size_of_csv, (".csv",)),
    "npz": Format(
        tables.write_npz,
        tables.size_of_npz,
        (".npz",),
        grids=True,
        many=True,
        maps=True,
        needed=(),
    ),
}
"""The formats by name."""


@dataclass(frozen=True)
class ExportOptions:
    """The frames of an export, and the file that it may replace.

    Attributes
    ----------
    frame : int or "all", optional
        Negative frames count from the end; by default the last.
    overwrite : bool, optional
        Whether an existing file is replaced.
    """

    frame: int | Literal["all"] = -1
    overwrite: bool = False


def export_run(
    path: str | Path,
    format: str,
    output: str | Path,
    options: ExportOptions = ExportOptions(),
    progress: OnProgress | None = None,
    *,
    models: Mapping[str, PresentedModel],
) -> Path:
    """Write frames of a run as a file that other programs open.

    Parameters
    ----------
    path : str or Path
        The run's directory, its trajectory, or a checkpoint; the run may still be going on.
    format : {"gadget", "vtkhdf", "csv", "npz"}
        ``gadget``: one frame of bodies for yt, pynbody and ParaView. ``vtkhdf``: bodies or a fluid
        for ParaView, in time. ``csv``: one frame of bodies as a table. ``npz``: bodies or a fluid
        as NumPy arrays.
    output : str or Path
        The file to write.
    options : ExportOptions, optional
        Which frames, and whether an existing file is replaced.
    progress : callable, optional
        Called with the numbers of parts done and of all parts, after each: a field of a frame, or
        64 MiB of it.
    models : mapping of str to PresentedModel
        The models by name, as in `hybrid_nbody.running.models.MODELS`.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InputError
        There is no such run, frame or format, the format does not hold such a run, or the file
        exists.
    FileError
        The run cannot be read or the file cannot be written; what stood there before is untouched.
    """
    chosen = _format(format)
    target = Path(output)
    with open_source(path, models) as source:
        check_target(target, source.path, chosen.suffixes, options.overwrite)
        _check_holds(format, source, options.frame)
        source = source.choose(options.frame)
        source = source if chosen.maps else replace(source, maps={})
        with written(target, chosen.size(source)) as partial:
            chosen.write(source.watched(progress), partial)
    return target


def _format(name: str) -> Format:
    if name not in FORMATS:
        near = difflib.get_close_matches(str(name), FORMATS, 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise InputError(f"no format '{name}'; there are {', '.join(FORMATS)}{hint}")
    return FORMATS[name]


def _check_holds(name: str, source: Source, frame: int | Literal["all"]) -> None:
    if not source.of_bodies and not FORMATS[name].grids:
        fit = ", ".join(other for other in FORMATS if FORMATS[other].grids)
        raise InputError(
            f"{source.path}: fields on a grid, and {name} holds bodies alone; export them as {fit}"
        )
    missing = [field for field in FORMATS[name].needed if field not in source.fields]
    if source.of_bodies and missing:
        raise InputError(
            f"{source.path}: the frames hold no {missing[0]}, which {name} needs; take npz"
        )
    if frame == "all" and not FORMATS[name].many:
        fit = ", ".join(other for other in FORMATS if FORMATS[other].many)
        raise InputError(f"{name} holds one frame; give its number, or export all as {fit}")
