"""Fields of a fluid in its stored planes: those of the frames, and those that follow from them.

Derivatives are differences between the centres of the stored cells: central ones inside, one-sided
ones at the ends of the box. They are those of what is stored, at the stride of the frames; a
projection makes a divergence vanish that the solver measures in its own way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.analysis.style import label
from hybrid_nbody.analysis.volume import slice_of
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.cells import Volume, volume_of
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.fluid.figures import DENSITY, VELOCITY

PRESSURE = "fluid/pressure"

Gradients = tuple[Array, Array, Array]
"""The derivatives of a velocity along x, y and z, each (rows, columns, 3)."""


@dataclass(frozen=True)
class Shown:
    """A field that pictures and movies of a fluid show.

    Attributes
    ----------
    stored : str
        The data set that it is, or follows from.
    derivatives : int
        How many derivatives of the data set are multiplied in it: 0 if it is none.
    of : callable, optional
        From the derivatives of the velocity to the values; None for what needs no derivative.
    """

    stored: str
    derivatives: int = 0
    of: Callable[[Gradients], Array] | None = None


def _vorticity(gradients: Gradients) -> Array:
    """Return the magnitude of the curl."""
    along_x, along_y, along_z = gradients
    curl = (
        along_y[..., 2] - along_z[..., 1],
        along_z[..., 0] - along_x[..., 2],
        along_x[..., 1] - along_y[..., 0],
    )
    return np.asarray(np.sqrt(curl[0] ** 2 + curl[1] ** 2 + curl[2] ** 2))


def _q_criterion(gradients: Gradients) -> Array:
    """Return half of what rotation exceeds strain by; positive in vortices (Hunt et al. 1988).

    It is minus half of the trace of the square of the gradient and, beside that, half of the square
    of the divergence, which vanishes.
    """
    square = sum(
        gradients[row][..., column] * gradients[column][..., row]
        for row in range(3)
        for column in range(3)
    )
    return np.asarray(0.5 * (_divergence(gradients) ** 2 - square))


def _divergence(gradients: Gradients) -> Array:
    """Return the sum of the derivatives of each component along its axis."""
    return np.asarray(sum(along[..., axis] for axis, along in enumerate(gradients)))


FIELDS = {
    "density": Shown(DENSITY),
    "speed": Shown(VELOCITY),
    "vorticity": Shown(VELOCITY, 1, _vorticity),
    "pressure": Shown(PRESSURE),
    "divergence": Shown(VELOCITY, 1, _divergence),
    "q_criterion": Shown(VELOCITY, 2, _q_criterion),
}
"""By the names that ``--field`` takes; scalars of a run, such as its temperature, come to these."""

PREFIX = "fluid/"

STAGGERED = "staggered"

ON_FACES = (
    "from velocities averaged to the centres of cells; "
    "from those at faces, as the diagnostics have it, it vanishes"
)
"""Why a picture shows a divergence where a projection on the staggered grid leaves none."""


def scalars_of(run: Run) -> list[str]:
    """Return the names of further scalars in the frames of a run."""
    stored = [name for name in run.fields if name.startswith(PREFIX)]
    known = {shown.stored for shown in FIELDS.values()}
    return [name.removeprefix(PREFIX) for name in stored if name not in known]


def instead_of_density(run: Run) -> str:
    """Return the field that is shown of a run whose frames hold no density; empty if none."""
    if DENSITY in run.fields:
        return ""
    names = ["speed", *scalars_of(run), "pressure"]
    return next((name for name in names if shown_as(name).stored in run.fields), "")


def shown_as(field: str) -> Shown:
    """Return how a field is made: one of `FIELDS`, or a scalar of that name."""
    return FIELDS.get(field, Shown(f"{PREFIX}{field}"))


def missing(run: Run, field: str) -> str:
    """Return why a field cannot be shown; empty if it can."""
    shown = shown_as(field)
    name = shown.stored.rpartition("/")[2]
    if not run.number_of_frames or shown.stored not in run.fields:
        what = "" if name == field else f", from which the {field} follows"
        return f"no frames of the {name}{what}; output.fields names what frames hold"
    if shown.of is None:
        return ""
    volume = volume_of(run, shown.stored)
    if not volume.evenly:
        return f"the frames hold a few planes only, and the {field} needs their neighbours"
    flat = min(len(indices) for indices in volume.stored) < 2
    return f"the {field} needs two stored cells along each axis" if flat else ""


def require(run: Run, field: str) -> None:
    """Raise `InputError` if a field cannot be shown."""
    if reason := missing(run, field):
        raise InputError(f"{run.path}: {reason}")


def units_of(run: Run, field: str) -> str:
    """Return the units of a field."""
    shown = shown_as(field)
    units = run.units(shown.stored)
    if not shown.derivatives:
        return units
    power = "" if shown.derivatives == 1 else f"^{shown.derivatives}"
    return f"1 / time{power}" if units == "length / time" else f"({units} / length){power}"


def label_of(run: Run, field: str) -> str:
    """Return the name of a field with its units, and where its values are if that matters."""
    where = " at\ncell centres" if note_on(run, field) else ""
    return label(f"{field}{where}", units_of(run, field))


def note_on(run: Run, field: str) -> str:
    """Return what a picture says of a field whose values are others than a run measures."""
    settings = run.config.get("fluid") or {}
    return ON_FACES if field == "divergence" and settings.get("grid") == STAGGERED else ""


def plane_of(run: Run, field: str, frame: int, axis: int, index: int) -> Array:
    """Return a field in a plane of a frame.

    Parameters
    ----------
    run : Run
        An open run that holds enough for the field, see `missing`.
    field : str
        One of `FIELDS`, or a scalar of the run.
    frame : int
        Negative frames count from the end.
    axis, index : int
        The axis across the plane, and the index of the stored cells along it.

    Returns
    -------
    ndarray
        The other two axes, the later one first, as `volume.slice_of`.
    """
    shown = shown_as(field)
    if shown.of is not None:
        return shown.of(_gradients(run, frame, axis, index))
    values = slice_of(run, shown.stored, frame, axis, index)
    return np.linalg.norm(values, axis=-1) if shown.stored == VELOCITY else values


def _gradients(run: Run, frame: int, axis: int, index: int) -> Gradients:
    """Return the derivatives of the velocity in a plane, read with its neighbours."""
    volume = volume_of(run, VELOCITY)
    near = _neighbours(volume, axis, index)
    planes = [slice_of(run, VELOCITY, frame, axis, place) for place in near]
    velocity = np.stack(planes, axis=2 - axis).astype(np.float64)
    centres = [volume.centres(0), volume.centres(1), volume.centres(2)]
    centres[axis] = centres[axis][near]
    here: list[int | slice] = [slice(None)] * 3
    here[2 - axis] = near.index(index)
    x, y, z = (
        np.gradient(velocity, centres[along], axis=2 - along)[tuple(here)] for along in range(3)
    )
    return x, y, z


def _neighbours(volume: Volume, axis: int, index: int) -> Sequence[int]:
    """Return the indices of a stored plane and of those on both sides, where there are some."""
    last = len(volume.stored[axis]) - 1
    return list(range(max(index - 1, 0), min(index + 1, last) + 1))
