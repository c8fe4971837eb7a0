"""The plan of a run: its work, memory and files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


def no_bytes(message_cells: int) -> int:
    """Return 0."""
    return 0


@dataclass(frozen=True)
class Memory:
    """The memory of the arrays of a rank.

    Attributes
    ----------
    rank_bytes : int
        Bytes of the largest rank.
    reason : str
        What they are.
    of : str
        What to take fewer of to need less memory, such as ``cells``.
    more_bytes : callable
        ``more_bytes(message_cells)`` returns what a rank needs besides, on a device that relaxes
        a grid of some cells in the time of a message.
    """

    rank_bytes: int
    reason: str
    of: str = "cells"
    more_bytes: Callable[[int], int] = no_bytes

    def on(self, message_cells: int) -> int:
        """Return the bytes of the largest rank on such a device."""
        return self.rank_bytes + self.more_bytes(message_cells)


PREPARING = (
    "preparing the run; its kernels are compiled now if this machine has not run them before"
)
"""What takes long at first, in words."""


class Workers(NamedTuple):
    """What computes a run.

    Attributes
    ----------
    backends : tuple of str
        Those of all ranks, by their names.
    threads : float
        CPU threads of all ranks that work at a time.
    pace : float
        Their speed here, as measured: what the builder of the model calls its pace.
    several_nodes : bool
        Whether ranks run on several nodes.
    """

    backends: tuple[str, ...]
    threads: float
    pace: float = 1.0
    several_nodes: bool = False


Lines = Sequence[tuple[str, str]]
"""Names and texts."""


def no_lines(workers: Workers) -> Lines:
    """Return nothing."""
    return []


@dataclass(frozen=True)
class Plan:
    """The work, memory and files of a run.

    Attributes
    ----------
    problem : sequence of (str, str)
        Names and texts of the lines on what is computed; the first tells its size.
    work : str
        How much there is to compute.
    frame_bytes, checkpoint_bytes, static_bytes : int
        Bytes of the numbers in a frame, in a checkpoint, and in what a trajectory holds once.
    memory : Memory, optional
        What a rank holds, where that is known.
    on_devices : callable
        ``on_devices(workers)`` returns lines on what depends on the devices.
    """

    problem: Lines
    work: str
    frame_bytes: int
    checkpoint_bytes: int
    static_bytes: int = 0
    memory: Memory | None = None
    on_devices: Callable[[Workers], Lines] = no_lines


def rows_per_rank(counts: Sequence[int], rows: str = "") -> str:
    """Return how many rows the ranks hold, such as ``10 to 11 planes per rank on 3 ranks``."""
    least = min(counts)
    most = max(counts)
    number = f"{least}" if least == most else f"{least} to {most}"
    held = f"{number} {rows}".rstrip()
    ranks = "1 rank" if len(counts) == 1 else f"{len(counts)} ranks"
    return f"{held} per rank on {ranks}"
