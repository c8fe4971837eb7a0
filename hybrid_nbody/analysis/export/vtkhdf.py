"""Frames as VTKHDF, which ParaView opens: bodies as points, fluids as cells of an image, both in time.

The layout is that of the VTKHDF file format, version 2.2 (Kitware).
"""

import h5py
import numpy as np

from hybrid_nbody.analysis.export.source import Source
from hybrid_nbody.analysis.export.target import mark
from hybrid_nbody.errors import InputError

VERSION = (2, 2)
TOPOLOGIES = ("Vertices", "Lines", "Polygons", "Strips")
BLOCK = 1 << 20
"""Indices written at a time."""


def size(source: Source) -> int:
    """Return the bytes that `write` writes, but for tables."""
    frames = len(source.frames) * sum(field.bytes for field in source.fields.values())
    constants = sum(values.nbytes for values in source.constants.values())
    return (
        frames + constants + 16 * len(source.constants.get("mass", ())) + 200 * len(source.frames)
    )


def write(source: Source, path):
    """Write frames as steps in time.

    Raises
    ------
    InputError
        The cells of a fluid are not evenly apart.
    """
    box = {} if source.of_bodies else _box(source)
    with h5py.File(path, "w") as file:
        mark(file, source)
        (_write_bodies if source.of_bodies else _write_fluid)(source, file, box)


def new_group(file, kind) -> h5py.Group:
    """Return the group that VTK reads, for a data set of a kind such as ``PolyData``."""
    group = file.create_group("VTKHDF")
    group.attrs["Version"] = np.array(VERSION, dtype=np.int64)
    group.attrs["Type"] = np.bytes_(kind.encode("ascii"))
    return group


# --- bodies ---------------------------------------------------------------------------------------


def _write_bodies(source, file, box):
    group = new_group(file, "PolyData")
    count = len(source.constants["mass"])
    write_vertices(group, count)
    points = group.create_group("PointData")
    _write_rows(source, source.fields["position"], group, "Points")
    _write_rows(source, source.fields["velocity"], points, "velocity")
    for name, values in source.constants.items():
        points[name] = values
    times = source.time[list(source.frames)]
    if len(times) > 1:
        _write_steps(group, times, count, {"velocity": count, "mass": 0, "id": 0})
    else:
        write_time(group, times[0])


def _write_rows(source, field, group, name):
    """Write the frames of a field one below the other."""
    rows = field.shape[0]
    values = group.create_dataset(name, (len(source.frames) * rows, *field.shape[1:]), field.dtype)
    for place, frame in enumerate(source.frames):
        for first, block in field.blocks(frame):
            start = place * rows + first
            values[start : start + len(block)] = block


def write_vertices(group, count):
    """Write what all steps share: how many points there are, and that each is a vertex."""
    group["NumberOfPoints"] = np.array([count], dtype=np.int64)
    for name in TOPOLOGIES:
        number = count if name == "Vertices" else 0
        part = group.create_group(name)
        part["NumberOfCells"] = np.array([number], dtype=np.int64)
        part["NumberOfConnectivityIds"] = np.array([number], dtype=np.int64)
        _write_numbers(part, "Connectivity", number)
        _write_numbers(part, "Offsets", number + 1)


def _write_numbers(group, name, count):
    """Write 0, 1, 2, …"""
    values = group.create_dataset(name, (count,), np.int64)
    for start in range(0, count, BLOCK):
        values[start : start + BLOCK] = np.arange(start, min(start + BLOCK, count))


def write_time(group, time):
    """Write when a single frame is; VTK takes no steps for it."""
    group["FieldData/TimeValue"] = np.array([time], dtype=np.float64)


def _write_steps(group, times, count, strides):
    """Write when the steps are, and where those of bodies begin in each array.

    Parameters
    ----------
    group : h5py.Group
        See `new_group`.
    times : sequence of float
        One a step, (F,).
    count : int
        Points of a step.
    strides : dict of str to int
        For each array of the points, how many rows further a step begins than the one before: 0 for
        what all share.
    """
    number = np.arange(len(times), dtype=np.int64)
    steps = _new_steps(group, times)
    steps["PointOffsets"] = number * count
    steps["PartOffsets"] = 0 * number
    steps["NumberOfParts"] = 0 * number + 1
    for name in ("CellOffsets", "ConnectivityIdOffsets"):
        steps[name] = np.zeros((len(times), len(TOPOLOGIES)), dtype=np.int64)
    for name, stride in strides.items():
        steps[f"PointDataOffsets/{name}"] = number * stride


def _new_steps(group, times):
    """Write the times of the steps and return their group."""
    steps = group.create_group("Steps")
    steps.attrs["NSteps"] = np.int64(len(times))
    steps["Values"] = np.asarray(times, dtype=np.float64)
    return steps


# --- a fluid --------------------------------------------------------------------------------------


def _write_fluid(source, file, box):
    group = new_group(file, "ImageData")
    group.attrs.update(box)
    times = source.time[list(source.frames)]
    if len(times) > 1:
        steps = _new_steps(group, times)
        for name in source.fields:
            steps[f"CellDataOffsets/{name}"] = np.arange(len(times), dtype=np.int64)
    else:
        write_time(group, times[0])
    for name, field in source.fields.items():
        _write_cells(source, field, group, f"CellData/{name}")


def _write_cells(source, field, group, name):
    """Write the frames of a field, of a single one without an axis of time."""
    single = len(source.frames) == 1
    values = group.create_dataset(
        name, field.shape if single else (len(source.frames), *field.shape), field.dtype
    )
    for place, frame in enumerate(source.frames):
        for first, block in field.blocks(frame):
            rows = slice(first, first + len(block))
            values[rows if single else (place, rows)] = block


def _box(source):
    """Return where the cells are: each is as wide as the gap to the next, and its value stands at its centre."""
    spacing = [_gap(source, axis) for axis in range(3)]
    places = [source.volume.place(axis) for axis in range(3)]
    return {
        "WholeExtent": np.array(
            [end for place in places for end in (0, len(place))], dtype=np.int64
        ),
        "Origin": np.array(
            [place[0] - gap / 2 for place, gap in zip(places, spacing, strict=True)]
        ),
        "Spacing": np.array(spacing),
        "Direction": np.eye(3).ravel(),
    }


def _gap(source, axis):
    """Return the gap between the centres of stored cells along an axis."""
    volume = source.volume
    gaps = np.unique(np.diff(volume.stored[axis]))
    if len(gaps) > 1:
        planes = ", ".join(map(str, volume.stored[axis]))
        raise InputError(
            f"{source.path}: the planes {planes} of z are not evenly apart, as vtkhdf needs; export them as npz"
        )
    return float(gaps[0] if len(gaps) else 1) * volume.spacing
