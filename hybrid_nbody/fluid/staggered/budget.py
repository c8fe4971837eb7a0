"""The budget of scalars in a closed box: what a step makes or loses, and how totals are kept.

Advection along paths does not conserve. Cells that gained in a step must have gained what the
others have lost. If they gained more, all their gains are scaled down; if they gained less, all
losses are. Each cell then lies between what it held before and what the step made of it.

Where fluid flows in or out, a total has no value that it must have, and nothing is corrected.
"""

from collections.abc import Sequence

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.staggered.grid import Grid


class Budget:
    """The changes of scalars in each step, and their correction.

    Parameters
    ----------
    grid : Grid
    before : array
        A field that nothing else uses from `begin` to `finish`.
    names : sequence of str
        The scalars.
    conserves : bool
        Whether changes are corrected in a closed box.

    Attributes
    ----------
    closed : bool
        Whether totals have values that they must have: only then are changes summed.
    made : dict of float
        For each scalar what steps have made of it before it was corrected (lost: less than 0),
        relative to the sum of its magnitudes at each step.
    """

    def __init__(self, grid: Grid, before: Array, names: Sequence[str], conserves: bool) -> None:
        self.grid = grid
        self.before = before
        self.closed = all(face.kind not in ("inflow", "outflow") for face in grid.faces)
        self.conserves = conserves and self.closed
        self.made = dict.fromkeys(names, 0.0)

    def begin(self, field: Array) -> None:
        """Note what a field holds before it changes."""
        if self.closed:
            self.grid.program.run("copy", self.grid.region, field, self.before)

    def finish(self, name: str, field: Array) -> None:
        """Sum the changes of a field since `begin`, and correct them if asked for; collective."""
        if not self.closed:
            return
        region = self.grid.region
        gained = self.grid.total("gained", region, self.before, field)
        lost = self.grid.total("lost", region, self.before, field)
        held = self.grid.total("magnitude", region, self.before)
        self.made[name] += (gained - lost) / held if held else 0.0
        if self.conserves:
            self._correct(field, gained, lost)

    def _correct(self, field: Array, gained: float, lost: float) -> None:
        """Scale down the larger of what cells gained and of what they lost."""
        of_gains = lost / gained if gained > lost else 1.0
        of_losses = gained / lost if lost > gained else 1.0
        given = (self.before, field, of_gains, of_losses)
        self.grid.program.run("scale_changes", self.grid.region, *given)
