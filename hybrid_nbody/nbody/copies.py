"""Copies of a moving state, which a device takes between its steps."""

from dataclasses import dataclass

from hybrid_nbody.backends.base import Array


@dataclass(frozen=True)
class Motion:
    """Positions and velocities of n bodies, or of n bodies at several times.

    Attributes
    ----------
    position, velocity : (n, 3) or (times, n, 3) array of float64
    """

    position: Array
    velocity: Array

    @property
    def times(self) -> int:
        """Return at how many times they are held."""
        return len(self.position)

    def at(self, times: int | slice) -> "Motion":
        """Return those at one time or at some times: views of these."""
        return Motion(self.position[times], self.velocity[times])


@dataclass
class StateCopies:
    """Where the state is copied to after every so many steps.

    Attributes
    ----------
    interval : int
        Steps from copy to copy.
    memory : Motion
        Takes the copies, (times, n, 3).
    taken : int
        Copies that are there already.
    since : int
        Steps since the last of them.
    """

    interval: int
    memory: Motion
    taken: int = 0
    since: int = 0

    @property
    def steps(self) -> int:
        """Return the steps until the last copy."""
        return self.interval * (self.memory.times - self.taken) - self.since

    def pass_by(self, steps: int) -> Motion:
        """Take note of steps that are queued; return the memory of the copies among them."""
        first = self.taken
        copies, self.since = divmod(self.since + steps, self.interval)
        self.taken += copies
        return self.memory.at(slice(first, self.taken))
