"""The guard: what has gone wrong is named by its global row and step, the same on every rank."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from support.ranks import RowsModel, scattered_shares

from hybrid_nbody.backends.finite import first_bad
from hybrid_nbody.errors import NumericalError
from hybrid_nbody.parallel.rows import row_numbers
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.model import Field

pytestmark = pytest.mark.mpi

NUMBER = 11
ADVICE = "Take smaller steps; checkpoints written before are kept"


class SpoiltModel(RowsModel):
    """A model in which some numbers can be spoilt: ``bad[name, global row] = value``."""

    def __init__(self, communicator, weights=None, index=None):
        super().__init__(NUMBER, communicator, weights, index=index)
        self.bad = {}

    def fields(self):
        return {name: self._spoilt(field) for name, field in super().fields().items()}

    def _spoilt(self, field):
        def host(start, stop):
            rows = field.host(start, stop)
            for (name, row), value in self.bad.items():
                if name == field.name:
                    rows[row_numbers(field.index)[start:stop] == row, ...] = value
            return rows

        return Field(**vars(field) | {"host": host})


@pytest.fixture(params=["equal", "one rank without rows", "permuted"])
def model(request, communicator):
    if request.param == "permuted":
        index = scattered_shares(NUMBER, communicator.size)[communicator.rank]
        return SpoiltModel(communicator, index=index)
    weights = [1.0] * communicator.size
    if request.param != "equal" and communicator.size > 1:
        weights[1] = 0.0
    return SpoiltModel(communicator, weights)


class DeviceModel(SpoiltModel):
    """The same, whose device answers for all arrays at once."""

    def __init__(self, communicator):
        super().__init__(communicator)
        self.looks = 0
        self.backend = self

    def start_look(self, *arrays):
        self.looks += 1
        found = [first_bad(array) for array in arrays]
        return lambda: found

    def _spoilt(self, field):
        field = super()._spoilt(field)
        return Field(**vars(field) | {"array": field.host(0, field.rows)})


def guard_of(model, communicator, max_energy_error):
    return Guard(SimpleNamespace(model=model), communicator, max_energy_error)


@pytest.fixture
def guard(model, communicator):
    return guard_of(model, communicator, max_energy_error=0.1)


def message_of(action):
    """Return the message of the numerical error that an action raises on every rank."""
    with pytest.raises(NumericalError) as caught:
        action()
    assert caught.value.shared
    assert caught.value.exit_code == 3
    return str(caught.value)


# ---- Numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("row", [0, 5, NUMBER - 1])
@pytest.mark.parametrize("name", ["bodies/position", "bodies/mass", "bodies/acceleration"])
def test_the_row_and_the_step_are_named(guard, model, communicator, value, row, name):
    model.at(4)
    guard.check_numbers()
    model.at(7).bad[name, row] = value
    message = message_of(guard.check_numbers)
    quantity = name.split("/")[1]
    assert message == (
        f"step 7 (t = 3.5): {quantity} of body {row} is not a finite number; the state was good "
        f"at step 4. {ADVICE}"
    )
    assert communicator.gather(message) == [message] * communicator.size


def test_one_bad_component_is_enough_and_the_first_bad_row_is_named(guard, model):
    model.bad["bodies/velocity", 9] = [0.0, 1.0, math.nan]
    model.bad["bodies/velocity", 3] = [math.inf, 0.0, 0.0]
    assert "velocity of body 3 is" in message_of(guard.check_numbers)
    del model.bad["bodies/velocity", 3]
    assert "velocity of body 9 is" in message_of(guard.check_numbers)


def test_the_largest_numbers_are_numbers_still(guard, model):
    model.bad["bodies/position", 2] = np.finfo(float).max
    model.bad["bodies/velocity", 2] = -0.0
    guard.check_numbers()
    assert guard.good_step == model.step == 0


def test_a_device_looks_at_all_arrays_at_once(communicator):
    model = DeviceModel(communicator)
    guard = guard_of(model, communicator, max_energy_error=0.1)
    guard.check_numbers()
    assert model.looks == 1
    model.bad["bodies/velocity", 9] = math.nan
    assert "velocity of body 9 is" in message_of(guard.check_numbers)


class ConstantModel(DeviceModel):
    """The same, whose masses are in one array as long as it stays as it is."""

    def __init__(self, communicator):
        super().__init__(communicator)
        self.seen = []
        self.mass = None

    def start_look(self, *arrays):
        self.seen.append(sum(array is self.mass for array in arrays))
        return super().start_look(*arrays)

    def _spoilt(self, field):
        field = super()._spoilt(field)
        if field.name != "bodies/mass":
            return field
        if self.mass is None:
            self.mass = field.array
        return Field(**vars(field) | {"array": self.mass})


def test_an_array_that_stays_as_it_is_is_looked_at_once(communicator):
    model = ConstantModel(communicator)
    guard = guard_of(model, communicator, max_energy_error=0.1)
    for _ in range(3):
        guard.check_numbers()
    assert model.seen == [1, 0, 0]
    model.mass = None
    model.bad["bodies/mass", 5] = math.nan
    assert "mass of body 5 is" in message_of(guard.check_numbers)


# ---- Energy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [0.2, -0.2, math.inf])
def test_an_energy_that_runs_away_is_named_with_a_suspect(guard, model, error):
    model.at(4)
    message = message_of(lambda: guard.check_energy({"relative_energy_error": error}))
    assert message == (
        f"step 4 (t = 2): the energy ran away: its relative error is {error:.3g}, more than "
        "time.max_energy_error = 0.1; body 7, the fastest, moves at 12; the state was good at "
        f"step 0. {ADVICE}"
    )


def test_an_energy_that_is_no_number_later_is_named_with_a_suspect(guard, model):
    model.at(4)
    message = message_of(lambda: guard.check_energy({"relative_energy_error": math.nan}))
    assert message == (
        "step 4 (t = 2): the energy is not a finite number; body 7, the fastest, moves at 12; "
        f"the state was good at step 0. {ADVICE}"
    )


def test_a_bad_initial_state_is_named_as_such(guard, model):
    message = message_of(lambda: guard.check_energy({"relative_energy_error": math.nan}))
    assert message.startswith("step 0 (t = 0): the energy is not a finite number; body 7")
    assert message.endswith("The initial state has bad rows")


def test_the_step_at_which_the_energy_ran_away_was_not_good(guard, model):
    model.at(3)
    guard.check_numbers()
    guard.check_energy({"relative_energy_error": -0.1})
    model.at(6)
    guard.check_numbers()  # made of numbers still
    message = message_of(lambda: guard.check_energy({"relative_energy_error": 0.5}))
    assert message.startswith("step 6 (t = 3): the energy ran away")
    assert message.endswith(f"the state was good at step 3. {ADVICE}")


@pytest.mark.parametrize("error", [0.0, 0.1, -0.1])
def test_an_error_up_to_the_limit_is_allowed(guard, error):
    guard.check_energy({"relative_energy_error": error})


def test_an_energy_that_is_no_number_is_refused_even_without_a_limit(model, communicator):
    message = message_of(
        lambda: guard_of(model, communicator, None).check_energy(
            {"relative_energy_error": math.nan}
        )
    )
    assert "the energy is not a finite number" in message


def test_without_a_limit_or_without_an_energy_anything_goes(guard, model, communicator):
    guard_of(model, communicator, None).check_energy({"relative_energy_error": 1e300})
    guard.check_energy({"total_density": math.nan})
