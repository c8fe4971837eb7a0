"""Fluids of arrays that a person gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.api.checks import check_finite, in_cell
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import redistribute
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.simulation.model import Field

DENSITY = "density"
VELOCITY = "velocity"

Planes = NDArray[np.float64]

COMPONENTS = {DENSITY: (), VELOCITY: (3,)}
"""What stands behind the cells in the shape of a field."""


@dataclass(frozen=True)
class GivenFluid:
    """A fluid at the start.

    Attributes
    ----------
    cells : list of int
        Along x, y and z.
    arrays : mapping of str to (nz, ny, nx, ...) array
        Fields that are given, on the root; empty on other ranks. Others are 0.
    """

    cells: list[int]
    arrays: Mapping[str, NDArray[Any]]


def given_fluid(
    density: ArrayLike | None,
    velocity: ArrayLike | None,
    cells: int | Sequence[int] | None,
    communicator: Communicator,
) -> GivenFluid:
    """Return a fluid of arrays, of which other ranks than the root learn the shape.

    Parameters
    ----------
    density : (nz, ny, nx) array or None
    velocity : (nz, ny, nx, 3) array or None
    cells : int or (int, int, int) or None
        Along x, y and z; needed where there is no array.
    communicator : Communicator
        Every rank calls together.

    Raises
    ------
    InputError
        On every rank, if shapes do not fit, or a number is not finite.
    """
    checked = communicator.only_on_root(lambda: _checked(density, velocity, cells))
    shape = communicator.broadcast(checked.cells if checked else [])
    return checked or GivenFluid(shape, {})


def _checked(
    density: ArrayLike | None, velocity: ArrayLike | None, cells: int | Sequence[int] | None
) -> GivenFluid:
    """Return the fluid of arrays on the root."""
    given = {DENSITY: density, VELOCITY: velocity}
    arrays = {name: np.asarray(array) for name, array in given.items() if array is not None}
    wanted = None if cells is None else _three(cells)
    for name, array in arrays.items():
        wanted = _cells_of(name, array, wanted)
    if wanted is None:
        raise InputError("from_fluid: give density, velocity or cells")
    return GivenFluid(wanted, arrays)


def _three(cells: int | Sequence[int]) -> list[int]:
    """Return the cells along the three axes."""
    numbers = np.ravel(np.array(cells))
    if len(numbers) not in (1, 3) or numbers.dtype.kind not in "iu":
        raise InputError(f"cells: must be a whole number, or three (got {cells})")
    return [int(number) for number in np.broadcast_to(numbers, 3)]


def _cells_of(name: str, array: NDArray[Any], wanted: list[int] | None) -> list[int]:
    """Return the cells of an array, which must be those wanted, if any are."""
    behind = COMPONENTS[name]
    if array.ndim != 3 + len(behind) or array.shape[3:] != behind or array.dtype.kind not in "fiu":
        shape = ", ".join(["nz", "ny", "nx", *map(str, behind)])
        raise InputError(f"{name}: must be a ({shape}) array of numbers (got {array.shape})")
    cells = list(array.shape[2::-1])
    if wanted is not None and cells != wanted:
        there = tuple(reversed(wanted))
        raise InputError(f"{name}: its cells (z, y, x) must be {there} (got {array.shape[:3]})")
    check_finite(name, array, in_cell)
    return cells


def own_planes(fluid: GivenFluid, own: slice, communicator: Communicator) -> dict[str, Planes]:
    """Return this rank's planes of the arrays of a fluid, which the root sends; collective."""
    names = communicator.broadcast(list(fluid.arrays))
    return {name: _received(fluid, name, own, communicator) for name in names}


def _received(fluid: GivenFluid, name: str, own: slice, communicator: Communicator) -> Planes:
    """Return this rank's planes of an array whose planes are all on the root."""
    array = fluid.arrays.get(name, np.empty(0))
    field = Field(
        name=name,
        shape=(*reversed(fluid.cells), *COMPONENTS[name]),
        dtype=np.dtype(float),
        units="",
        description="",
        index=slice(0, len(array)),
        host=lambda start, stop: array[start:stop],
    )
    return redistribute(field, own, communicator)


def with_sections(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys of a configuration, with those of its section ``fluid`` in that.

    ``overrides``, and what the configuration has at its top, stay where they are; ``grid`` is that
    of the fluid, since the cells follow from arrays.
    """
    top = {"overrides", *MODELS["fluid"].schema.model_fields} - {"grid"}
    outside = {key: value for key, value in keys.items() if key in top}
    inside = {key: value for key, value in keys.items() if key not in top}
    return outside | {"fluid": inside | outside.get("fluid", {})}
