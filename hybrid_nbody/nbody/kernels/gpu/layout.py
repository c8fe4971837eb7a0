"""Layout of the sums over sources on a GPU, which fixes their order, and tuning of their speed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_nbody.backends import tuning
from hybrid_nbody.nbody.precision import CHUNK, chunk_capacity

RUN = 32
"""Sources that a warp loads at once, and lanes of a warp."""

PIECES_WANTED = 64
"""With few bodies, chunks are cut into pieces until there are this many, or a piece is a run."""


def most_parts(number: int) -> int:
    """Return the most parts of a sum over `number` sources.

    For most sizes it divides the number of an H200's multiprocessors, 132: blocks then come in
    whole waves.
    """
    if number <= 1 << 14:
        return 48
    return 33 if number <= 1 << 20 else 16


@dataclass(frozen=True)
class Layout:
    """The order of a sum.

    It depends on the number of bodies alone, and of those with mass, so that no GPU, rank or tuning
    changes a bit.

    Attributes
    ----------
    piece : int
        Most sources that are summed in the working type.
    pieces : int
        Most pieces of a chunk.
    parts : int
        Partial sums of a target in float64, each by another warp.
    """

    piece: int
    pieces: int
    parts: int

    @classmethod
    def of(cls, number: int, sources: int | None = None) -> "Layout":
        """Return the layout for `number` bodies: enough parts to fill a GPU within its memory.

        It is made for sums over `sources` of them, by default all, and serves for all of them.
        """
        sources = sources or number
        piece = RUN
        while piece < CHUNK and 2 * piece * PIECES_WANTED <= sources:
            piece *= 2
        pieces = -(-min(number, CHUNK) // piece)
        parts = min(most_parts(number), -(-sources // piece))
        return cls(piece, pieces, max(1, parts))

    def slots(self, number: int) -> int:
        """Return the slots of packed sources: whole pieces of every chunk that there may be."""
        return chunk_capacity(number) * self.pieces * self.piece


TITLES = {
    "few": "bodies in one block",
    "targets": "targets of a lane",
    "jerk_targets": "targets with jerks",
}
"""What the attributes of a `Tuning` are called in words."""


def _in_words(value: int | tuple[tuple[int, int], ...]) -> str:
    if isinstance(value, int):
        return str(value)
    return ", ".join(f"{targets} up to {most}" for most, targets in value)


@dataclass(frozen=True)
class Tuning:
    """The launch settings of a sum: they change its speed and never a bit of it.

    Attributes
    ----------
    few : int
        Most bodies of which whole batches of steps run in one block of threads.
    targets : tuple of (int, int)
        Pairs (most bodies, targets of a lane), ascending: a rank takes the first pair whose bound
        it does not exceed, or the last one.
    jerk_targets : int
        Most targets of a lane where jerks are summed, too: they need twice the registers.
    """

    few: int
    targets: tuple[tuple[int, int], ...]
    jerk_targets: int

    def targets_for(self, number: int) -> int:
        """Return the targets of a lane on a rank of `number` bodies."""
        return next(
            (targets for most, targets in self.targets if number <= most), self.targets[-1][1]
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the content of a file."""
        return {
            "few": self.few,
            "targets": [list(pair) for pair in self.targets],
            "jerk_targets": self.jerk_targets,
        }

    def differences(self, default: "Tuning") -> list[str]:
        """Return in words how this tuning differs from the default one."""
        changed = []
        for name, title in TITLES.items():
            new, old = (_in_words(getattr(tuning, name)) for tuning in (self, default))
            if new != old:
                changed.append(f"{title}: {new} (default: {old})")
        return changed or ["as the defaults"]

    @classmethod
    def from_dict(cls, values: Any) -> "Tuning":
        """Return the tuning in the content of a file.

        Raises
        ------
        ValueError, TypeError, KeyError
            If `values`, of any type, is not the content of such a file.
        """
        targets = tuple(
            (_whole(most, 1), _whole(count, 1, MOST_TARGETS)) for most, count in values["targets"]
        )
        bounds = [most for most, _ in targets]
        if not bounds or bounds != sorted(set(bounds)):
            raise ValueError("numbers of bodies do not ascend")
        return cls(
            _whole(values["few"], 0, MOST_FEW),
            targets,
            _whole(values["jerk_targets"], 1, MOST_TARGETS),
        )


def _whole(value: Any, least: int, most: int | None = None) -> int:
    """Return `value` if it is a whole number within its bounds."""
    if type(value) is not int or value < least or (most is not None and value > most):
        raise ValueError(f"{value!r} is out of bounds")
    return value


MOST_TARGETS = 8
"""Targets of a lane beyond which no compiler keeps the sums in registers."""

MOST_FEW = 128
"""Most bodies that fit into the shared memory of one block, in every precision."""


DEFAULTS = {
    "single": Tuning(few=128, targets=((4096, 2), (131072, 4)), jerk_targets=2),
    "mixed": Tuning(few=128, targets=((1024, 1), (4096, 2), (131072, 3)), jerk_targets=4),
    "double": Tuning(few=128, targets=((8192, 2), (131072, 3)), jerk_targets=3),
}
"""Measured on an NVIDIA H200; ``hybrid-nbody bench tune`` measures them for another GPU."""


def tuning_for(device: str, precision: str) -> Tuning:
    """Return the tuning of a model of GPU, or the defaults where none can be read."""
    try:
        return Tuning.from_dict(tuning.load(device, _entry(precision)))
    except (ValueError, TypeError, KeyError):
        return DEFAULTS[precision]


def keep_tuning(device: str, precision: str, measured: Tuning) -> Path:
    """Save the tuning of a model of GPU for `tuning_for`; return the file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    return tuning.store(device, _entry(precision), measured.as_dict())


def _entry(precision: str) -> str:
    return f"gravity-{precision}"
