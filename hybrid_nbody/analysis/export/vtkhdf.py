"""Export of frames as VTKHDF for ParaView: bodies as points, fluids as cells of an image.

The layout is that of the VTKHDF file format, version 2.2 (Kitware).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hybrid_nbody.analysis.export.source import FrameField, Source
from hybrid_nbody.analysis.export.target import mark
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.cells import Volume
from hybrid_nbody.files.views import Array

VERSION = (2, 2)
"""Version of the format."""

TOPOLOGIES = ("Vertices", "Lines", "Polygons", "Strips")
"""Groups that every ``PolyData`` has; ours are empty but for the vertices."""

BLOCK = 1 << 20
"""Indices written at a time."""


def size(source: Source) -> int:
    """Return the bytes that `write` writes, without tables."""
    frames = len(source.frames) * sum(field.bytes for field in source.fields.values())
    constants = sum(values.nbytes for values in source.constants.values())
    return (
        frames + constants + 16 * len(source.constants.get("mass", ())) + 200 * len(source.frames)
    )


def write(source: Source, path: Path) -> None:
    """Write frames as steps in time.

    Raises
    ------
    InputError
        The cells of a fluid are not evenly apart.
    """
    box = None if source.volume is None else _box(source.volume, source.path)
    with h5py.File(path, "w") as file:
        mark(file, source)
        if box is None:
            _write_bodies(source, file)
        else:
            _write_fluid(source, file, box)


def new_group(file: h5py.File, vtk_type: str) -> h5py.Group:
    """Return the group that VTK reads, for a data set of a VTK type such as ``PolyData``."""
    group = file.create_group("VTKHDF")
    group.attrs["Version"] = np.array(VERSION, dtype=np.int64)
    group.attrs["Type"] = np.bytes_(vtk_type.encode("ascii"))
    return group


# --- bodies ---------------------------------------------------------------------------------------


def _write_bodies(source: Source, file: h5py.File) -> None:
    group = new_group(file, "PolyData")
    count = len(source.constants["mass"])
    write_vertices(group, count)
    points = group.create_group("PointData")
    _write_rows(source, source.fields["position"], group, "Points")
    moving = {name: count for name in source.fields if name != "position"}
    for name in moving:
        _write_rows(source, source.fields[name], points, name)
    for name, values in source.constants.items():
        points[name] = values
    times = source.time[list(source.frames)]
    if len(times) > 1:
        _write_steps(group, times, count, moving | dict.fromkeys(source.constants, 0))
    else:
        write_time(group, times[0])


def _write_rows(source: Source, field: FrameField, group: h5py.Group, name: str) -> None:
    """Write the frames of a field one after the other."""
    rows = field.shape[0]
    values = group.create_dataset(name, (len(source.frames) * rows, *field.shape[1:]), field.dtype)
    if source.units:
        values.attrs["units"] = field.units
    for index, frame in enumerate(source.frames):
        for first, block in field.blocks(frame):
            start = index * rows + first
            values[start : start + len(block)] = block


def write_vertices(group: h5py.Group, count: int) -> None:
    """Write what all steps share: the number of points, each of which is a vertex."""
    group["NumberOfPoints"] = np.array([count], dtype=np.int64)
    for name in TOPOLOGIES:
        number = count if name == "Vertices" else 0
        part = group.create_group(name)
        part["NumberOfCells"] = np.array([number], dtype=np.int64)
        part["NumberOfConnectivityIds"] = np.array([number], dtype=np.int64)
        _write_numbers(part, "Connectivity", number)
        _write_numbers(part, "Offsets", number + 1)


def _write_numbers(group: h5py.Group, name: str, count: int) -> None:
    """Write 0, 1, 2, …"""
    values = group.create_dataset(name, (count,), np.int64)
    for start in range(0, count, BLOCK):
        values[start : start + BLOCK] = np.arange(start, min(start + BLOCK, count))


def write_time(group: h5py.Group, time: float) -> None:
    """Write the time of a single frame, for which VTK has no steps."""
    group["FieldData/TimeValue"] = np.array([time], dtype=np.float64)


def _write_steps(group: h5py.Group, times: Array, count: int, strides: Mapping[str, int]) -> None:
    """Write the times of the steps, and where those of bodies begin in each array.

    Parameters
    ----------
    group : h5py.Group
        See `new_group`.
    times : sequence of float
        (F,), one for each step.
    count : int
        Number of points of a step.
    strides : dict of str to int
        For each array of the points, the number of rows from the start of a step to the start of
        the next: 0 for arrays that all steps share.
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


def _new_steps(group: h5py.Group, times: Array) -> h5py.Group:
    """Write the times of the steps and return their group."""
    steps = group.create_group("Steps")
    steps.attrs["NSteps"] = np.int64(len(times))
    steps["Values"] = np.asarray(times, dtype=np.float64)
    return steps


# --- a fluid --------------------------------------------------------------------------------------


def _write_fluid(source: Source, file: h5py.File, box: Mapping[str, Any]) -> None:
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


def _write_cells(source: Source, field: FrameField, group: h5py.Group, name: str) -> None:
    """Write the frames of a field; a single frame has no axis of time."""
    single = len(source.frames) == 1
    values = group.create_dataset(
        name, field.shape if single else (len(source.frames), *field.shape), field.dtype
    )
    for index, frame in enumerate(source.frames):
        for first, block in field.blocks(frame):
            rows = slice(first, first + len(block))
            values[rows if single else (index, rows)] = block


def _box(volume: Volume, path: Path) -> dict[str, Array]:
    """Return the attributes that place the cells, each as wide as the gap to the next."""
    spacing = [_gap(volume, axis, path) for axis in range(3)]
    centres = [volume.centres(axis) for axis in range(3)]
    extent = [end for along in centres for end in (0, len(along))]
    origin = [along[0] - gap / 2 for along, gap in zip(centres, spacing, strict=True)]
    return {
        "WholeExtent": np.array(extent, dtype=np.int64),
        "Origin": np.array(origin),
        "Spacing": np.array(spacing),
        "Direction": np.eye(3).ravel(),
    }


def _gap(volume: Volume, axis: int, path: Path) -> float:
    """Return the gap between the centres of stored cells along an axis."""
    gaps = np.unique(np.diff(volume.stored[axis]))
    if len(gaps) > 1:
        planes = ", ".join(map(str, volume.stored[axis]))
        raise InputError(
            f"{path}: the planes {planes} of z are not evenly apart, as vtkhdf needs; "
            "export them as npz"
        )
    return float(gaps[0] if len(gaps) else 1) * volume.spacing
