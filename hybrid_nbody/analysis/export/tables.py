"""Frames as a table in CSV, and as NumPy arrays."""

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hybrid_nbody.analysis.export.source import Source
from hybrid_nbody.files.views import Array

BYTES_OF_A_ROW = 8 * 25
"""Bytes of a row at most: a float64 takes up to 24 characters, and a separator."""

ROWS = 1 << 14
"""Rows converted to Python's numbers at a time; these take several times the memory of NumPy's."""


# --- CSV ------------------------------------------------------------------------------------------


def size_of_csv(source: Source) -> int:
    """Return the bytes that `write_csv` writes at most."""
    return BYTES_OF_A_ROW * len(source.constants["mass"])


def write_csv(source: Source, path: Path) -> None:
    """Write one frame of bodies as a table that ``bodies: {kind: file}`` reads back to the bit."""
    (frame,) = source.frames
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"# {' '.join(source.title.split())}\n" if source.title.strip() else "")
        file.write(f"# time {float(source.time[frame])!r}, step {source.step[frame]}\n")
        file.write(f"# units {source.units.text}\n" if source.units else "")
        file.write("x,y,z,vx,vy,vz,m,id\n")
        for rows in _rows(source, frame):
            # repr is the shortest text that becomes the same float64 again
            file.writelines(",".join(map(repr, row)) + "\n" for row in rows)


def _rows(source: Source, frame: int) -> Iterator[list[tuple[float | int, ...]]]:
    positions, velocities = (source.fields[name].blocks(frame) for name in ("position", "velocity"))
    for (first, position), (_, velocity) in zip(positions, velocities, strict=True):
        own = slice(first, first + len(position))
        table = np.column_stack([position, velocity, source.constants["mass"][own]])
        identities = source.constants["id"][own]
        for start in range(0, len(table), ROWS):
            piece = slice(start, start + ROWS)
            columns = [*table[piece].T.tolist(), identities[piece].tolist()]
            yield list(zip(*columns, strict=True))


# --- NumPy ----------------------------------------------------------------------------------------


def size_of_npz(source: Source) -> int:
    """Return the bytes that `write_npz` writes, but for headers."""
    frames = len(source.frames) * (
        16 + sum(field.bytes for field in (source.fields | source.maps).values())
    )
    return (
        frames
        + sum(values.nbytes for values in source.constants.values())
        + 8 * sum(map(len, _centres(source)))
    )


def write_npz(source: Source, path: Path) -> None:
    """Write frames as uncompressed NumPy arrays; all frames get an axis of frames in front.

    One frame of bodies holds exactly what ``bodies: {kind: file}`` reads, and the activity map,
    which that ignores.
    """
    frames = list(source.frames)
    with zipfile.ZipFile(path, "w") as archive:
        for name, field in (source.fields | source.maps).items():
            shape = (len(frames), *field.shape) if source.whole else field.shape
            pieces = (block for frame in frames for _, block in field.blocks(frame))
            _write_array(archive, name, shape, field.dtype, pieces)
        for name, values in (source.constants | _beside(source)).items():
            _write_array(archive, name, values.shape, values.dtype, [values])


def _beside(source: Source) -> dict[str, Array]:
    """Return times and steps of the frames and, of a grid, the positions of its cells."""
    if source.of_bodies and not source.whole:
        return {}
    which = list(source.frames) if source.whole else source.frames[0]
    when = {"time": np.asarray(source.time[which]), "step": np.asarray(source.step[which])}
    return when | dict(zip("xyz", _centres(source), strict=False))


def _centres(source: Source) -> list[Array]:
    """Return the centres of the stored cells of a grid along x, y and z."""
    return [] if source.volume is None else [source.volume.centres(axis) for axis in range(3)]


def _write_array(
    archive: zipfile.ZipFile,
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    pieces: Iterable[Array],
) -> None:
    """Write an array piece by piece; `numpy.savez` needs all of it in memory."""
    # A ZipInfo of its own has no clock in it: the same frames give the same file.
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
        header = {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": tuple(shape),
        }
        np.lib.format.write_array_header_2_0(file, header)
        for piece in pieces:
            file.write(
                np.ascontiguousarray(piece, dtype=dtype).data.cast("B") if piece.size else b""
            )
