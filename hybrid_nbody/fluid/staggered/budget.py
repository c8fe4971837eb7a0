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

    def __init__(self, grid: Grid, names: Sequence[str], conserves: bool) -> None:
        self.grid = grid
        self.closed = all(face.kind not in ("inflow", "outflow") for face in grid.faces)
        self.conserves = conserves and self.closed
        self.made = dict.fromkeys(names, 0.0)

    def finish(self, name: str, before: Array, field: Array) -> None:
        """Sum the changes of a field in a step, and correct them if asked for; collective."""
        if not self.closed:
            return
        region = self.grid.region
        gained, lost, held = self.grid.totals(
            ("gained", region, before, field),
            ("lost", region, before, field),
            ("magnitude", region, before),
        )
        self.made[name] += (gained - lost) / held if held else 0.0
        if self.conserves:
            self._correct(before, field, gained, lost)

    def _correct(self, before: Array, field: Array, gained: float, lost: float) -> None:
        """Scale down the larger of what cells gained and of what they lost."""
        of_gains = lost / gained if gained > lost else 1.0
        of_losses = gained / lost if lost > gained else 1.0
        given = (before, field, of_gains, of_losses)
        self.grid.program.run("scale_changes", self.grid.region, *given)
