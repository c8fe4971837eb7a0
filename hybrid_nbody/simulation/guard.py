"""Watching that the state is made of finite numbers and that its energy has not run away."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hybrid_nbody.errors import HybridNBodyError, NumericalError
from hybrid_nbody.simulation.model import Diagnostics, Field, Model, Ranks, Role
from hybrid_nbody.simulation.snapshots import Snapshots

ENERGY_ERROR = "relative_energy_error"
"""The diagnostic by which a run knows that its energy has run away; not every model has it."""


NOT_GUARDED = (Role.SHOWN, Role.SHOWN_ONCE)
"""Roles of derived fields: the guard looks at the fields that they are derived from."""


class ModelHolder(Protocol):
    """Has the model that runs now: a `TimeLoop`, whose events may put another in its place."""

    @property
    def model(self) -> Model:
        """Return the model that runs now."""


@dataclass(frozen=True)
class Moment:
    """When a state was looked at."""

    step: int
    time: float

    @classmethod
    def of(cls, model: Model) -> "Moment":
        """Return the present of a model."""
        return cls(model.step, model.time)


@dataclass(frozen=True)
class Checked:
    """What a look at copies of the state has found.

    Attributes
    ----------
    snapshots : Snapshots
        The copies, of a model of which this rank has all rows.
    places : sequence of int
        The first number of each field that is not finite, counted through all copies.
    """

    snapshots: Snapshots
    places: Sequence[int]

    @property
    def good(self) -> int:
        """Return how many copies there are before the first one with such a number."""
        numbers = [place // field.array.size for place, field in self._found]
        return min(numbers, default=self.snapshots.taken)

    @property
    def bad_row(self) -> tuple[Field, int]:
        """Return a field of the first bad copy, and its first bad row."""
        first = self.good
        return next(
            (field, _row_at(field, place % field.array.size))
            for place, field in self._found
            if place // field.array.size == first
        )

    @property
    def _found(self) -> list[tuple[int, Field]]:
        return list(zip(self.places, self.snapshots.fields, strict=True))


class Guard:
    """Stops a run whose state has gone wrong, before anything of it is written.

    Parameters
    ----------
    simulation : TimeLoop
        Has the model.
    communicator : Communicator
        Its ranks.
    max_energy_error : float or None
        Largest relative energy error allowed; None for any.

    Attributes
    ----------
    good_step : int
        The last step whose numbers were finite.
    calm_step : int
        The last step whose energy was within the limit.
    """

    def __init__(
        self, simulation: ModelHolder, communicator: Ranks, max_energy_error: float | None
    ) -> None:
        self.simulation = simulation
        self.communicator = communicator
        self.max_energy_error = max_energy_error
        self.good_step = self.model.step
        self.calm_step = self.model.step
        self._known: list[object] = []

    @property
    def model(self) -> Model:
        """Return the model that runs now."""
        return self.simulation.model

    def check_numbers(self) -> None:
        """Check that every number of the state is finite; raises as `start_check`."""
        self.start_check()()

    def start_check(self) -> Callable[[], None]:
        """Start to check that every number of the state is finite; collective.

        Returns
        -------
        callable
            Waits for the answer, and not for steps that are queued after this; collective. Raises
            `NumericalError` on every rank, naming the step and the first bad row.
        """
        fields = [field for field in self.model.fields().values() if _is_guarded(field)]
        moment = Moment.of(self.model)
        first_rows = self._start_look(fields)
        return lambda: self._finish_check(fields, moment, first_rows())

    def _finish_check(self, fields: Sequence[Field], moment: Moment, own: Sequence[int]) -> None:
        """Look at the first bad rows of all ranks."""
        first = self.communicator.minimum(np.array(own, np.int64))
        for field, row in zip(fields, first.tolist(), strict=True):
            if row < field.shape[0]:
                raise self._not_finite(moment, field, row)
        self.good_step = moment.step

    def _not_finite(self, moment: Moment, field: Field, row: int) -> HybridNBodyError:
        """Return the error of a row with a number that is not finite."""
        name = field.name.rpartition("/")[2]
        what = f"{name} of {self.model.row_name} {row} is not a finite number"
        return self._error(moment, what, self.good_step)

    def start_check_of(self, snapshots: Snapshots) -> Callable[[], Checked]:
        """Start to check copies of what frames hold of the state; return what waits for the answer.

        All of the state is checked at the next event.
        """
        copies = [snapshots.copies[field.name] for field in snapshots.fields]
        look = self.model.backend.start_look(*copies)
        return lambda: Checked(snapshots, look())

    def accept(self, checked: Checked) -> None:
        """Note that copies of the state are good.

        Raises
        ------
        NumericalError
            One is not, naming its step and the first bad row.
        """
        snapshots = checked.snapshots
        good = checked.good
        if good:
            self.good_step = int(snapshots.steps[good - 1])
        if good < snapshots.taken:
            moment = Moment(int(snapshots.steps[good]), float(snapshots.times[good]))
            raise self._not_finite(moment, *checked.bad_row)

    def _start_look(self, fields: Sequence[Field]) -> Callable[[], list[int]]:
        """Return what waits for this rank's first bad row of each field.

        A look by the device at all arrays at once costs as much as at one: what takes the time is
        to wait for the answer. Arrays that stay as they are need no second look.
        """
        rows = [field.shape[0] for field in fields]
        new = [k for k, field in enumerate(fields) if not self._is_known(field)]
        self._known = [field.array for field in fields if field.role is Role.STATIC]
        on_device = [k for k in new if fields[k].array is not None]
        arrays = [fields[k].array for k in on_device]
        look = self.model.backend.start_look(*arrays) if arrays else list
        for k in new:
            if fields[k].array is None:
                rows[k] = _first_bad_row(fields[k])

        def found() -> list[int]:
            for k, place in zip(on_device, look(), strict=True):
                rows[k] = _row_at(fields[k], place)
            return rows

        return found

    def _is_known(self, field: Field) -> bool:
        """Return whether a field stays as it was when it was looked at."""
        return field.array is not None and any(field.array is known for known in self._known)

    def check_energy(self, diagnostics: Mapping[str, Diagnostics]) -> None:
        """Check that the energy has not run away.

        Raises
        ------
        NumericalError
            On every rank, naming the step and a suspect.
        """
        error = diagnostics.get(ENERGY_ERROR, 0.0)
        assert not isinstance(error, tuple)
        limit = math.inf if self.max_energy_error is None else self.max_energy_error
        if not abs(error) <= limit:
            what = f"{_runaway(error, limit)}; {self.model.suspect()}"
            raise self._error(Moment.of(self.model), what, self.calm_step)
        self.calm_step = self.model.step

    def _error(self, moment: Moment, what: str, good_step: int) -> HybridNBodyError:
        model = self.model
        where = f"step {moment.step} (t = {moment.time:g}): {what}"
        if moment.step == 0:
            return NumericalError(f"{where}. {model.advice['start']}").on_all_ranks()
        known = f"; the state was good at step {good_step}" if good_step < moment.step else ""
        advice = f"{model.advice['run']}; checkpoints written before are kept"
        return NumericalError(f"{where}{known}. {advice}").on_all_ranks()


def _runaway(error: float, limit: float) -> str:
    """Return what is wrong with an energy."""
    if math.isnan(error):
        return "the energy is not a finite number"
    excess = f"more than time.max_energy_error = {limit:g}"
    return f"the energy ran away: its relative error is {error:.3g}, {excess}"


def _is_guarded(field: Field) -> bool:
    """Return whether numbers of a field may be wrong without others being so."""
    return field.role not in NOT_GUARDED and field.dtype.kind not in "iu"


def _row_at(field: Field, place: int) -> int:
    """Return the global row of a number of this rank; the number of all rows if there is none."""
    if place >= field.array.size:
        return field.shape[0]
    row = place // math.prod(field.shape[1:])
    return int(field.global_rows(np.array([row]))[0])


def _first_bad_row(field: Field) -> int:
    """Return the global index of this rank's first row that is not finite.

    It is the number of all rows if there is none.
    """
    rows = (field.check or field.host)(0, field.rows)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim))))
    return int(field.global_rows(bad).min()) if len(bad) else field.shape[0]
