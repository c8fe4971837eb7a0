"""How a GPU lays out the sums over sources: what their order depends on, and what only their speed depends on."""

from dataclasses import dataclass

from hybrid_nbody.backends import tuning
from hybrid_nbody.nbody.kernels.precision import CHUNK

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
    parts : int
        Partial sums of a target in float64, each by another warp.
    """

    piece: int
    parts: int

    @classmethod
    def of(cls, number: int) -> "Layout":
        """Return the layout for `number` sources: enough parts to fill a GPU, not more than its memory bears."""
        piece = RUN
        while piece < CHUNK and 2 * piece * PIECES_WANTED <= number:
            piece *= 2
        most = 64 if number <= 1 << 14 else 32 if number <= 1 << 18 else 16
        return cls(piece, max(1, min(most, -(-number // piece))))


@dataclass(frozen=True)
class Tuning:
    """What changes the speed of a sum and never a bit of it.

    Attributes
    ----------
    few : int
        Up to so many bodies, whole batches of steps run in one block of threads.
    targets : tuple of (int, int)
        Pairs (bodies, targets of a lane), ascending: a rank with up to so many bodies takes so many targets a lane;
        a rank with more than the last pair says takes what that one says.
    jerk_targets : int
        Most targets of a lane where jerks are summed, too: they need twice the registers.
    """

    few: int
    targets: tuple[tuple[int, int], ...]
    jerk_targets: int

    def targets_for(self, number: int) -> int:
        """Return how many targets a lane serves on a rank of `number` bodies."""
        return next((targets for most, targets in self.targets if number <= most), self.targets[-1][1])


DEFAULTS = {
    "single": Tuning(few=128, targets=((2048, 1), (65536, 4), (131072, 5)), jerk_targets=3),
    "mixed": Tuning(few=128, targets=((2048, 1), (8192, 2), (131072, 4)), jerk_targets=2),
    "double": Tuning(few=128, targets=((2048, 1), (8192, 2), (131072, 2)), jerk_targets=2),
}
"""Measured on an NVIDIA H200; ``hybrid-nbody bench tune`` measures them for another GPU."""


def tuning_for(device: str, precision: str) -> Tuning:
    """Return what was measured for a model of GPU, or the defaults."""
    found = tuning.load(device, f"gravity-{precision}")
    if found is None:
        return DEFAULTS[precision]
    return Tuning(found["few"], tuple((most, targets) for most, targets in found["targets"]), found["jerk_targets"])
