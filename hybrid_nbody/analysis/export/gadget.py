"""Export of one frame of bodies as a Gadget-HDF5 snapshot, for yt and pynbody.

Links within the file let ParaView read the same arrays.

The layout is that of GADGET-2 (V. Springel, user guide) with all bodies in ``PartType1``, which
feel gravity alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hybrid_nbody.analysis.export import vtkhdf
from hybrid_nbody.analysis.export.source import Source
from hybrid_nbody.analysis.export.target import mark
from hybrid_nbody.analysis.export.units import CGS, Units

TYPES = 6
BODIES = 1
SECONDS_OF_A_GYR = 1e9 * 365.25 * 86400.0

SPACE = {"BoxSize": 0.0, "Redshift": 0.0, "Omega0": 0.0, "OmegaLambda": 0.0, "HubbleParam": 1.0}
"""A space without edges or expansion."""

FLAGS = ("Sfr", "Cooling", "StellarAge", "Metals", "Feedback")
"""What a snapshot may hold beside bodies, and does not."""

MOVING = {"position": "Coordinates", "velocity": "Velocities"}
"""Data sets of the fields."""

SCALINGS = {
    "Coordinates": {"length_scaling": 1.0, "mass_scaling": 0.0, "velocity_scaling": 0.0},
    "Velocities": {"length_scaling": 0.0, "mass_scaling": 0.0, "velocity_scaling": 1.0},
    "Masses": {"length_scaling": 0.0, "mass_scaling": 1.0, "velocity_scaling": 0.0},
}
"""Powers of the units in each data set."""

STATIC = {"a_scaling": 0.0, "h_scaling": 0.0}
"""Space does not expand; without these attributes pynbody assumes comoving lengths."""

LINKS = {"Points": "Coordinates", "velocity": "Velocities", "mass": "Masses", "id": "ParticleIDs"}


def size(source: Source) -> int:
    """Return the bytes that `write` writes, without tables."""
    return vtkhdf.size(source)


def write(source: Source, path: Path) -> None:
    """Write one frame of bodies."""
    (frame,) = source.frames
    count = len(source.constants["mass"])
    with h5py.File(path, "w") as file:
        mark(file, source)
        units = source.units or CGS
        header = _header(count, float(source.time[frame]), units)
        file.create_group("Header").attrs.update(header)
        double = all(source.fields[name].dtype == np.float64 for name in MOVING)
        file["Header"].attrs["Flag_DoublePrecision"] = np.int32(double)
        _write_bodies(source, frame, file.create_group(f"PartType{BODIES}"), units)
        _link(file, count, source.time[frame])


def _header(count: int, time: float, units: Units) -> dict[str, Any]:
    """Return the header; a run that does not say its units has cgs units for readers."""
    counts = np.zeros(TYPES, dtype=np.uint64)
    counts[BODIES] = count
    return {
        "NumPart_ThisFile": counts.astype(np.uint32),
        "NumPart_Total": counts.astype(np.uint32),
        "NumPart_Total_HighWord": (counts >> np.uint64(32)).astype(np.uint32),
        "MassTable": np.zeros(TYPES),
        "Time": time,
        "Time_GYR": time * units.time / SECONDS_OF_A_GYR,
        "NumFilesPerSnapshot": np.int32(1),
        **{f"Flag_{name}": np.int32(0) for name in FLAGS},
        **SPACE,
        "UnitLength_in_cm": units.length,
        "UnitMass_in_g": units.mass,
        "UnitVelocity_in_cm_per_s": units.velocity,
    }


def _write_bodies(source: Source, frame: int, group: h5py.Group, units: Units) -> None:
    for name, stored in MOVING.items():
        field = source.fields[name]
        values = group.create_dataset(stored, field.shape, field.dtype)
        for first, block in field.blocks(frame):
            values[first : first + len(block)] = block
    group["Masses"] = source.constants["mass"]
    group["ParticleIDs"] = source.constants["id"].astype(np.uint64)
    for name, powers in SCALINGS.items():
        group[name].attrs.update(powers | STATIC | {"to_cgs": _to_cgs(powers, units)})


def _to_cgs(powers: Mapping[str, float], units: Units) -> float:
    """Return the size of a unit, made of those of length, mass and velocity, in cgs units."""
    length = units.length ** powers["length_scaling"]
    mass = units.mass ** powers["mass_scaling"]
    return float(length * mass * units.velocity ** powers["velocity_scaling"])


def _link(file: h5py.File, count: int, time: float) -> None:
    """Add links by which VTK finds the same arrays."""
    group = vtkhdf.new_group(file, "PolyData")
    vtkhdf.write_vertices(group, count)
    points = group.create_group("PointData")
    for name, stored in LINKS.items():
        (group if name == "Points" else points)[name] = h5py.SoftLink(f"/PartType{BODIES}/{stored}")
    vtkhdf.write_time(group, time)
