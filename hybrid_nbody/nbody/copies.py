"""Copies of a moving state, which a device takes between its steps."""

from dataclasses import dataclass

from hybrid_nbody.backends.base import Array, Backend


@dataclass(frozen=True)
class Motion:
    """Positions and velocities of n bodies.

    Attributes
    ----------
    position, velocity : (n, 3) array of float64
    """

    position: Array
    velocity: Array

    def copy_to(self, target: "Motion", backend: Backend) -> None:
        """Copy both on their device."""
        backend.copy(self.position, target.position)
        backend.copy(self.velocity, target.velocity)


class Motions(Motion):
    """Positions and velocities of n bodies at several times.

    Attributes
    ----------
    position, velocity : (times, n, 3) array of float64
    """

    def __len__(self) -> int:
        """Return the number of times."""
        return len(self.position)

    def at(self, time: int) -> Motion:
        """Return those at one of the times, as views."""
        return Motion(self.position[time], self.velocity[time])

    def between(self, first: int, last: int) -> "Motions":
        """Return those at the times first … last - 1, as views."""
        return Motions(self.position[first:last], self.velocity[first:last])


@dataclass
class StateCopies:
    """Copies of the state that are due at equal intervals, and the memory for them.

    Attributes
    ----------
    interval : int
        Steps from copy to copy.
    memory : Motions
        Takes the copies.
    taken : int
        Copies that are there already.
    since : int
        Steps since the last of them.
    """

    interval: int
    memory: Motions
    taken: int = 0
    since: int = 0

    @property
    def steps_left(self) -> int:
        """Return the steps until the last copy."""
        return self.interval * (len(self.memory) - self.taken) - self.since

    @property
    def next(self) -> Motions:
        """Return the memory for the copies that are not taken yet."""
        return self.memory.between(self.taken, len(self.memory))

    def steps_to_next(self, within_step: bool = False) -> int:
        """Return the steps until the next copy; 0 right after one, unless `within_step`."""
        return self.interval - self.since if self.since or within_step else 0

    def note_steps(self, steps: int) -> Motions | None:
        """Take note of queued steps; return the memory of copies among them, None without one."""
        first = self.taken
        copies, self.since = divmod(self.since + steps, self.interval)
        self.taken += copies
        return self.memory.between(first, self.taken) if copies else None
