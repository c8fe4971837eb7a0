"""The data sets of a trajectory, from the fields and diagnostics of a model."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hybrid_nbody.errors import DamagedFileError
from hybrid_nbody.files.listing import Variable, Variables
from hybrid_nbody.simulation.model import FRAME_ROLES, SHARED_ROLES, Field, Model, fields_of


def variables_of(model: Model) -> Variables:
    """Return what the trajectory of a model holds."""
    return Variables(
        shared=tuple(_variable(field) for field in fields_of(model, *SHARED_ROLES)),
        frames=tuple(_variable(field) for field in fields_of(model, *FRAME_ROLES)),
        diagnostics=tuple(_columns(model)),
    )


def _variable(field: Field) -> Variable:
    return Variable(field.name, field.shape, field.dtype, field.units, field.description)


def _columns(model: Model) -> Iterator[Variable]:
    for name, quantity in model.quantities.items():
        shape = (quantity.components,) if quantity.components > 1 else ()
        yield Variable(name, shape, np.dtype("f8"), quantity.units, quantity.description)


def continued(found: Variables, wanted: Variables, path: Path) -> Variables:
    """Return the data sets of a trajectory that goes on: those of the model, and old diagnostics.

    Raises
    ------
    DamagedFileError
        Frames of the model, or a diagnostic of the same name, have another shape.
    """
    shapes = {variable.name: variable.shape for variable in (*found.frames, *found.diagnostics)}
    for variable in (*wanted.frames, *wanted.diagnostics):
        shape = shapes.get(variable.name, variable.shape)
        if shape != variable.shape:
            raise DamagedFileError(
                f"{path}: {variable.name} has values of shape {shape}, not {variable.shape}"
            )
    if {field.name for field in found.frames} != {field.name for field in wanted.frames}:
        raise DamagedFileError(f"{path}: its frames hold other fields than those of this run")
    known = {column.name for column in wanted.diagnostics}
    others = tuple(column for column in found.diagnostics if column.name not in known)
    return Variables(found.shared, wanted.frames, (*wanted.diagnostics, *others))
