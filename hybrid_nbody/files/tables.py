"""Runs as tables of pandas and as labelled arrays of xarray, which are imported when asked for."""

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.cells import volume_of
from hybrid_nbody.files.views import Array, column_names

if TYPE_CHECKING:
    import pandas
    import xarray

    from hybrid_nbody.files.run import Run

BODIES = "bodies/"

GRID_AXES = 3


def needed(package: str) -> Any:
    """Import a package that the program does without.

    Raises
    ------
    InputError
        It is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(
            f"{package} is not installed; install it with: pip install 'hybrid_nbody[tables]', "
            f"or pip install {package}"
        ) from error


# --- pandas ---------------------------------------------------------------------------------------


def pandas_of(run: "Run", frame: int | None) -> "pandas.DataFrame":
    """Return diagnostics, or the bodies of a frame, as a table; see `Run.to_pandas`."""
    pandas = needed("pandas")
    if frame is None:
        table = pandas.DataFrame(run.diagnostics)
        return table.set_index("time") if "time" in table else table
    columns = _columns_of_bodies(run, frame)
    index = pandas.Index(run.id, name="id") if run.has("bodies/id") else None
    return pandas.DataFrame(columns, index=index)


def _columns_of_bodies(run: "Run", frame: int) -> dict[str, Array]:
    """Return the columns of a table of bodies by name.

    Raises
    ------
    InputError
        The frames hold none.
    """
    fields = [name for name in run.fields if name.startswith(BODIES)]
    if not fields:
        raise InputError(
            f"{run.path}: no bodies in the frames of this run of model '{run.model}'; "
            "to_xarray() has the fields on a grid"
        )
    columns: dict[str, Array] = {"mass": run.mass} if run.has("bodies/mass") else {}
    for field in fields:
        values = run.field(field, frame)
        short = field.removeprefix(BODIES)
        for name, place in column_names(short, values.shape[1:]):
            column: tuple[int | slice, ...] = (slice(None), *place)
            columns[name] = values[column]
    return columns


# --- xarray ---------------------------------------------------------------------------------------


def xarray_of(run: "Run") -> "xarray.Dataset":
    """Return fields and diagnostics as labelled arrays; see `Run.to_xarray`."""
    labelled = needed("xarray")
    from hybrid_nbody.files.lazy_fields import lazy_fields

    variables = dict(lazy_fields(run)) | dict(_series(run))
    coordinates: dict[str, tuple[Any, ...]] = {
        "time": ("time", run.time, {"units": run.units("time")} if run.has("time") else {}),
        "step": ("time", run.step),
    }
    if run.has("bodies/id"):
        coordinates["id"] = ("body", run.id)
    if run.has("bodies/mass"):
        variables["mass"] = ("body", run.mass, _meaning(run, "bodies/mass"))
    dimensions = {name for names, *_ in variables.values() for name in names}
    if "axis" in dimensions:
        coordinates["axis"] = ("axis", list("xyz"))
    if "z" in dimensions:
        coordinates |= _centres(run)
    attributes = {name: value for name, value in run.attributes.items() if np.isscalar(value)}
    found: xarray.Dataset = labelled.Dataset(variables, coordinates, attributes)
    return found


def _centres(run: "Run") -> dict[str, tuple[str, Array]]:
    """Return the coordinates of the cells along each axis."""
    volume = volume_of(run, next(name for name in run.fields if len(run.shape(name)) > GRID_AXES))
    return {letter: (letter, volume.centres(axis)) for axis, letter in enumerate("xyz")}


def _series(run: "Run") -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the name, dimensions, values and meaning of each quantity of the diagnostics.

    Their rows have times of their own, which are not those of the frames.
    """
    names = {"time": "diagnostics_time", "step": "diagnostics_step"}
    for name in run.diagnostics:
        values = run.diagnostics[name]
        sizes = values.shape[1:]
        axes = ["axis" if size == 3 else f"{name}_{place}" for place, size in enumerate(sizes)]
        meaning = _meaning(run, f"diagnostics/{name}")
        yield names.get(name, name), (("diagnostics_time", *axes), values, meaning)


def _meaning(run: "Run", name: str) -> dict[str, str]:
    """Return units and description of a data set, as attributes of a variable."""
    return {"units": run.units(name), "description": run.description(name)}
