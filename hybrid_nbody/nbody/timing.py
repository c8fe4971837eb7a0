"""How long the parts of a step take, by marks in a device's queue of work."""


class Laps:
    """Marks, and the names of what lies between them.

    Parameters
    ----------
    backend : Backend
        Whose queue it is; the first lap begins now.
    """

    def __init__(self, backend):
        self.backend = backend
        self.marks = [backend.mark()]
        self.names = []

    def lap(self, name: str) -> None:
        """End a lap: what was queued since the last one counts under `name`."""
        self.names.append(name)
        self.marks.append(self.backend.mark())

    def seconds(self, name: str) -> float:
        """Return the seconds of all laps of that name; waits for the last of them."""
        laps = zip(self.names, self.marks, self.marks[1:], strict=False)
        return sum(self.backend.elapsed(start, end) for lap, start, end in laps if lap == name)


class NoLaps:
    """The same where nobody wants to know: in work that is recorded, to be replayed."""

    def lap(self, name: str) -> None:
        """Do nothing."""
