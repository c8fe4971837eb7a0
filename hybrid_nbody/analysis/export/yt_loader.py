"""Opening a snapshot in yt with the right units and edges, which yt does not take from the file."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hybrid_nbody.analysis.export.units import Units
from hybrid_nbody.files.hdf5 import open_hdf5, reading
from hybrid_nbody.files.views import Array

ROWS = 1 << 20
"""Bodies read at a time."""

MARGIN = 1.05
"""Edge of the box given to yt, relative to the extent of the bodies."""


def load_yt(
    path: str | Path,
    length: tuple[float, str] | None = None,
    mass: tuple[float, str] | None = None,
    time: tuple[float, str] | None = None,
    **options: Any,
) -> Any:
    """Open a Gadget-HDF5 snapshot that `export_run` wrote in yt, which must be installed.

    Plain ``yt.load`` assumes kpc and a periodic box around the outermost bodies, and fails if all
    bodies lie in a plane.

    Parameters
    ----------
    path : str or Path
        The snapshot.
    length, mass, time : tuple of float and str, optional
        The units of the run, such as ``(1.0, "pc")``. By default those in the header of the
        snapshot: the `units` of the configuration, or else one cm, one g and one s.
    **options
        Passed on to ``yt.load``, for instance another ``bounding_box``.

    Returns
    -------
    yt.data_objects.static_output.Dataset
        The bodies are its particles ``PartType1``, in a box that is not periodic.

    Raises
    ------
    ImportError
        yt is not installed.
    FileError
        The file is missing or not such a snapshot.

    Examples
    --------
    >>> data = load_yt("plummer.hdf5", length=(1.0, "pc"), mass=(1e5, "Msun"), time=(0.047, "Myr"))
    >>> data.all_data()["PartType1", "Coordinates"].to("pc")
    """
    import yt

    units_in_header = _units_in_header(path)
    length = length or (units_in_header.length, "cm")
    mass = mass or (units_in_header.mass, "g")
    time = time or (units_in_header.time, "s")
    velocity = yt.YTQuantity(*length) / yt.YTQuantity(*time)
    units = {"length": length, "mass": mass, "velocity": (float(velocity.to("cm/s")), "cm/s")}
    # given a box, yt does not make space periodic
    return yt.load(str(path), unit_base=units, **{"bounding_box": _box_around(path)} | options)


def _units_in_header(path: str | Path) -> Units:
    """Return the units that the header of a snapshot tells."""
    with open_hdf5(path) as file, reading(path):
        found = file["Header"].attrs
        length = float(found["UnitLength_in_cm"])
        velocity = float(found["UnitVelocity_in_cm_per_s"])
        return Units("", length, float(found["UnitMass_in_g"]), length / velocity)


def _box_around(path: str | Path) -> list[list[float]]:
    """Return the edges of a cube around all bodies, one pair an axis."""
    with open_hdf5(path) as file, reading(path):
        low, high = _extent(file["PartType1/Coordinates"])
    half = MARGIN * float((high - low).max()) / 2 or 1.0  # a single body has no extent
    return [[middle - half, middle + half] for middle in (low + high) / 2]


def _extent(positions: h5py.Dataset) -> tuple[Array, Array]:
    low = np.full(3, np.inf)
    high = np.full(3, -np.inf)
    for first in range(0, len(positions), ROWS):
        block = positions[first : first + ROWS]
        low = np.minimum(low, block.min(axis=0))
        high = np.maximum(high, block.max(axis=0))
    return low, high
