"""Frames and rows of diagnostics that wait until they are written together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.downloads import Download
from hybrid_nbody.output.part import Values

Entry = Mapping[str, NDArray[Any] | Download]
"""The values of frames, or of a row of diagnostics; some may be on their way from a device."""


@dataclass
class Batch:
    """Frames and rows of diagnostics that go into one part.

    Attributes
    ----------
    frames, rows : list of mapping
        Their values.
    size : int
        Bytes of them.
    """

    frames: list[Entry] = field(default_factory=list)
    rows: list[Entry] = field(default_factory=list)
    size: int = 0

    def __bool__(self) -> bool:
        return bool(self.frames or self.rows)

    def add(self, values: Entry, is_frame: bool) -> None:
        """Add frames or a row of diagnostics."""
        (self.frames if is_frame else self.rows).append(values)
        self.size += bytes_of(values)

    def join(self, later: "Batch") -> None:
        """Add what came later."""
        self.frames += later.frames
        self.rows += later.rows
        self.size += later.size


def number_of(values: Entry) -> int:
    """Return the number of frames that some values hold; 1 for a row of diagnostics."""
    steps = values["step"]
    assert isinstance(steps, np.ndarray)  # the host knows them
    return steps.size


def bytes_of(values: Entry) -> int:
    """Return the bytes of the values of frames or of a row."""
    return sum(value.nbytes for value in values.values())


def on_host(values: Entry) -> Values:
    """Return values once all of them are on the host."""
    return {
        name: value.rows() if isinstance(value, Download) else value
        for name, value in values.items()
    }
