"""Fields of a run as arrays of xarray that are read when their numbers are used.

xarray is imported here: import this module only where it is known to be installed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from hybrid_nbody.files.views import Array

if TYPE_CHECKING:
    from hybrid_nbody.files.run import Run

SPACE = 3
"""Components of a vector, and axes of a grid."""


class LazyField(BackendArray):
    """A field in all frames, of which only the parts asked for are read.

    Parameters
    ----------
    run : Run
        An open run.
    name : str
        Such as ``bodies/position``.
    """

    def __init__(self, run: "Run", name: str) -> None:
        self.run = run
        self.name = name
        self.shape = (run.number_of_frames, *run.shape(name)[1:])
        self.dtype = run.field(name, slice(0, 0)).dtype

    def __getitem__(self, key: Any) -> Any:
        support = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[int | slice, ...]) -> Array:
        frames, *where = key
        if not isinstance(frames, slice):
            return self.run.part(self.name, frames, tuple(where))
        wanted = range(self.shape[0])[frames]
        parts = [self.run.part(self.name, frame, tuple(where)) for frame in wanted]
        if parts:
            return np.stack(parts)
        return np.empty(self.shape, self.dtype)[(slice(0, 0), *where)]


def lazy_fields(run: "Run") -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the name, dimensions, values and attributes of each field of the frames."""
    for name in run.fields:
        short = name.rpartition("/")[2]
        values = indexing.LazilyIndexedArray(LazyField(run, name))
        meaning = {"units": run.units(name), "description": run.description(name)}
        yield short, (("time", *_dimensions(run, name)), values, meaning)


def _dimensions(run: "Run", name: str) -> list[str]:
    """Return the names of the axes of a field in one frame."""
    shape = run.shape(name)[1:]
    vector = ["axis"] if len(shape) > 1 and shape[-1] == SPACE else []
    scalar = shape[: len(shape) - len(vector)]
    if name.startswith("bodies/") and len(scalar) == 1:
        return ["body", *vector]
    if len(scalar) == SPACE and "grid" in run.config:
        return ["z", "y", "x", *vector]
    short = name.rpartition("/")[2]
    return [f"{short}_{axis}" for axis in range(len(scalar))] + vector
