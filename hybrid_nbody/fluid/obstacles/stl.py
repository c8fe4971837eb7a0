"""Files of triangles in the format STL, binary or text."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Triangles = NDArray[np.float64]
"""Corners of triangles, shape (n, 3, 3): triangle, corner, axis."""

HEADER = 80
RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_stl(path: str | Path) -> Triangles:
    """Return the triangles of a file.

    Parameters
    ----------
    path : str or path-like
        The normals that it gives are not read: the order of corners tells them.

    Returns
    -------
    array of float64, shape (n, 3, 3)

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is no STL file, or has no triangles or numbers that are not finite.
    """
    content = Path(path).read_bytes()
    triangles = _binary(content)
    if triangles is None:
        triangles = _text(content)
    if not len(triangles):
        raise ValueError("has no triangles")
    if not np.isfinite(triangles).all():
        number = int(np.argmin(np.isfinite(triangles).all(axis=(1, 2)))) + 1
        raise ValueError(f"has a corner that is not finite, in triangle {number}")
    return triangles


def write_stl(path: str | Path, triangles: Triangles) -> None:
    """Write triangles, shape (n, 3, 3), as a binary file."""
    records = np.zeros(len(triangles), RECORD)
    records["corners"] = triangles
    count = np.array([len(triangles)], "<u4")
    Path(path).write_bytes(bytes(HEADER) + count.tobytes() + records.tobytes())


def _binary(content: bytes) -> Triangles | None:
    """Return the triangles of a binary file, None if its length is not that of one."""
    if len(content) < HEADER + 4:
        return None
    count = int(np.frombuffer(content, "<u4", 1, HEADER)[0])
    if len(content) != HEADER + 4 + count * RECORD.itemsize:
        return None
    records = np.frombuffer(content, RECORD, count, HEADER + 4)
    return np.array(records["corners"], np.float64)


def _text(content: bytes) -> Triangles:
    """Return the triangles of a file of text."""
    if not content.lstrip().startswith(b"solid") or b"\0" in content:
        raise ValueError(
            "is no STL file: neither text that starts with solid, nor as long as its number of "
            "triangles says"
        )
    words = np.array(content.lower().split())
    starts = np.flatnonzero(words == b"vertex")
    if len(starts) % 3 or not all(len(words) > starts[-1:] + 3):
        raise ValueError(f"is cut off: it has {len(starts)} corners, not three for each triangle")
    try:
        numbers: Triangles = np.array(words[starts[:, None] + np.array([1, 2, 3])], np.float64)
    except ValueError:
        raise ValueError("has a vertex without three numbers") from None
    return numbers.reshape(-1, 3, 3)
