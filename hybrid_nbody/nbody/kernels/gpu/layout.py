"""How a GPU lays out the sums over sources: what their order depends on, and what only their speed depends on."""

from dataclasses import dataclass
from pathlib import Path

from hybrid_nbody.backends import tuning
from hybrid_nbody.nbody.kernels.precision import CHUNK, chunk_capacity

RUN = 32
"""Sources that a warp fetches at once; targets that it serves for each target of a lane."""

PIECES_WANTED = 64
"""With few bodies, chunks are cut into pieces until there are so many, as far as a run reaches."""


@dataclass(frozen=True)
class Layout:
    """The order of a sum: it depends on the number of bodies alone, so that no GPU, rank or tuning changes a bit.

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
    def of(cls, number: int) -> "Layout":
        """Return the layout for `number` sources: enough parts to fill a GPU, not more than its memory bears.

        For most sizes their number divides that of an H200's multiprocessors, 132: blocks then come
        in whole waves.
        """
        piece = RUN
        while piece < CHUNK and 2 * piece * PIECES_WANTED <= number:
            piece *= 2
        most = 48 if number <= 1 << 14 else 33 if number <= 1 << 20 else 16
        return cls(piece, -(-min(number, CHUNK) // piece), max(1, min(most, -(-number // piece))))

    def slots(self, number: int) -> int:
        """Return the room that the packed sources take: whole pieces of every chunk that there may be."""
        return chunk_capacity(number) * self.pieces * self.piece


@dataclass(frozen=True)
class Tuning:
    """What changes the speed of a sum and never a bit of it.

    Attributes
    ----------
    few : int
        Up to so many bodies, whole batches of steps run in one block of threads.
    targets : tuple of (int, int)
        Pairs (bodies, targets of a lane), ascending: a rank with up to so many bodies takes so many
        targets a lane; a rank with more than the last pair says takes what that one says.
    jerk_targets : int
        Most targets of a lane where jerks are summed, too: they need twice the registers.
    """

    few: int
    targets: tuple[tuple[int, int], ...]
    jerk_targets: int

    def targets_for(self, number: int) -> int:
        """Return how many targets a lane serves on a rank of `number` bodies."""
        return next(
            (targets for most, targets in self.targets if number <= most), self.targets[-1][1]
        )

    def as_dict(self) -> dict:
        """Return what is kept in a file."""
        return {
            "few": self.few,
            "targets": [list(pair) for pair in self.targets],
            "jerk_targets": self.jerk_targets,
        }

    @classmethod
    def from_dict(cls, values) -> "Tuning":
        """Return what `as_dict` gave.

        Raises
        ------
        ValueError, TypeError, KeyError
            If `values`, of any type, can be no such thing.
        """
        targets = tuple(
            (_whole(most, 1), _whole(count, 1, MOST_TARGETS)) for most, count in values["targets"]
        )
        if not targets or any(
            low >= high for (low, _), (high, _) in zip(targets, targets[1:], strict=False)
        ):
            raise ValueError("numbers of bodies do not ascend")
        return cls(
            _whole(values["few"], 0, MOST_FEW),
            targets,
            _whole(values["jerk_targets"], 1, MOST_TARGETS),
        )


def _whole(value, least, most=None):
    """Return `value` if it is a whole number within its bounds."""
    if type(value) is not int or value < least or (most is not None and value > most):
        raise ValueError(f"{value!r} is out of bounds")
    return value


MOST_TARGETS = 8
"""Targets of a lane beyond which no compiler keeps the sums in registers."""

MOST_FEW = 128
"""Bodies up to which one block has shared memory for all that ``pair_force.cu`` keeps there, in
every precision."""


DEFAULTS = {
    "single": Tuning(few=128, targets=((4096, 2), (131072, 4)), jerk_targets=2),
    "mixed": Tuning(few=128, targets=((1024, 1), (4096, 2), (131072, 3)), jerk_targets=4),
    "double": Tuning(few=128, targets=((8192, 2), (131072, 3)), jerk_targets=3),
}
"""Measured on an NVIDIA H200; ``hybrid-nbody bench tune`` measures them for another GPU."""


def tuning_for(device: str, precision: str) -> Tuning:
    """Return what was measured for a model of GPU, or the defaults: also where what is kept is damaged."""
    try:
        return Tuning.from_dict(tuning.load(device, _entry(precision)))
    except (ValueError, TypeError, KeyError):
        return DEFAULTS[precision]


def keep_tuning(device: str, precision: str, measured: Tuning) -> Path:
    """Keep what was measured for a model of GPU, for `tuning_for` to find; return the file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    return tuning.store(device, _entry(precision), measured.as_dict())


def _entry(precision):
    return f"gravity-{precision}"
