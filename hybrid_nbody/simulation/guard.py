"""Watching that the state is still made of numbers and that its energy has not run away."""

import math

import numpy as np

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.simulation.model import Role


class Guard:
    """Stops a run whose state has gone wrong, before anything of it is written.

    Parameters
    ----------
    simulation : Simulation
        Has the model.
    communicator : Communicator
        Its ranks.
    max_energy_error : float or None
        Largest relative energy error allowed; None for any.
    """

    def __init__(self, simulation, communicator, max_energy_error):
        self.simulation = simulation
        self.communicator = communicator
        self.max_energy_error = max_energy_error
        self.good_step = self.calm_step = (
            self.model.step
        )  # the last whose numbers, and whose energy, were good

    @property
    def model(self):
        """The workload."""
        return self.simulation.model

    def check_numbers(self) -> None:
        """Check that every number of the state is finite.

        Raises
        ------
        NumericalError
            On every rank, naming the step and the first bad row.
        """
        fields = [field for field in self.model.fields().values() if field.role is not Role.SHOWN]
        first = self.communicator.minimum(
            np.array([_first_bad_row(field) for field in fields], dtype=np.int64)
        )
        for field, row in zip(fields, first.tolist(), strict=True):
            if row < field.shape[0]:
                name = field.name.rpartition("/")[2]
                what = f"{name} of {self.model.row_name} {row} is not a finite number"
                raise self._error(what, self.good_step)
        self.good_step = self.model.step

    def check_energy(self, diagnostics) -> None:
        """Check that the energy has not run away.

        Raises
        ------
        NumericalError
            On every rank, naming the step and a suspect.
        """
        error = diagnostics.get("relative_energy_error", 0.0)
        limit = math.inf if self.max_energy_error is None else self.max_energy_error
        if not abs(error) <= limit:
            raise self._error(
                f"the energy ran away: its relative error is {error:.3g}, more than time.max_energy_error = "
                f"{limit:g}; {self.model.suspect()}",
                self.calm_step,
            )
        self.calm_step = self.model.step

    def _error(self, what, good_step):
        where = f"step {self.model.step} (t = {self.model.time:g}): {what}"
        if self.model.step == 0:
            advice = self.model.advice["start"]
        else:
            known = (
                f"; the state was good at step {good_step}" if good_step < self.model.step else ""
            )
            advice = f"{self.model.advice['run']}; checkpoints written before are kept"
            where += known
        return NumericalError(f"{where}. {advice}").on_all_ranks()


def _first_bad_row(field) -> int:
    """Return the global index of this rank's first row that is not finite; the number of all rows if there is none."""
    rows = (field.check or field.host)(0, field.rows)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim))))
    return int(field.global_rows(bad).min()) if len(bad) else field.shape[0]
