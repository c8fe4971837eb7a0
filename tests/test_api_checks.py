"""What a person gives to a simulation: refused in one line, before anything has changed."""

import math
import warnings

import numpy as np
import pytest
from support.ranks import alone, communicator

from hybrid_nbody import Simulation, closest, energy_error, escaped
from hybrid_nbody.errors import InputError

__all__ = ["alone", "communicator"]

pytestmark = [
    pytest.mark.filterwarnings("error::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:time.dt. .* is long beside"),
]

COMPUTE = {"backend": "cpu", "threads": 1}
RANDOM = np.random.default_rng(4)
POSITIONS, VELOCITIES = RANDOM.normal(size=(2, 6, 3))
MASSES = np.ones(6)


def bodies(communicator, positions=POSITIONS, velocities=VELOCITIES, masses=MASSES, **keys):
    """Return a simulation of a few bodies without an end, which stops at step 20 none the less."""
    given = {"dt": 1e-3, "softening": 0.1, "compute": COMPUTE, "communicator": communicator}
    simulation = Simulation.from_bodies(positions, velocities, masses, **(given | keys))
    simulation.every(steps=20)(lambda it: it.steps and it.stop("went on"))
    return simulation


def fluid(communicator, **keys):
    """Return a simulation of a fluid that has been stirred."""
    velocity = np.random.default_rng(5).normal(size=(6, 6, 6, 3))
    given = {"dt": 0.02, "compute": COMPUTE, "communicator": communicator}
    simulation = Simulation.from_fluid(np.ones((6, 6, 6)), velocity, **(given | keys))
    simulation.step()
    return simulation


def always(simulation):
    return True


# ---- How far -------------------------------------------------------------------------------------


def test_a_run_without_any_end_is_refused(alone, tmp_path):
    simulation = bodies(alone)
    simulation.save(tmp_path)
    for endless in (simulation, Simulation.resume(tmp_path, communicator=alone)):
        with pytest.raises(InputError) as caught:
            endless.run()
        text = "run: give until or steps: the simulation has no end of its own"
        assert str(caught.value) == text
        assert endless.steps == 0


def test_a_condition_is_an_end(alone):
    simulation = bodies(alone)
    simulation.stop_when(lambda it: it.steps == 3)
    simulation.run()
    assert simulation.steps == 3
    ended = bodies(alone, time={"steps": 5})
    assert (ended.run(), ended.steps) == ("finished", 5)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"steps": 1.5}, r"run: steps must be a whole number, at least 0 \(got 1\.5\)"),
        ({"steps": "3"}, r"run: steps must be a whole number, at least 0 \(got '3'\)"),
        ({"steps": True}, r"run: steps must be a whole number, at least 0 \(got True\)"),
        ({"steps": -1}, r"run: steps must be a whole number, at least 0 \(got -1\)"),
        ({"until": "3"}, r"run: until must be a finite number \(got '3'\)"),
        ({"until": math.nan}, r"run: until must be a finite number \(got nan\)"),
        ({"until": math.inf}, r"run: until must be a finite number \(got inf\)"),
        ({"until": 10**400}, "run: until must be a finite number"),
        ({"until": 1e300}, "run: until must be at most 1e15 steps of dt away"),
    ],
)
def test_wrong_ends_of_a_run_are_named(alone, arguments, text):
    simulation = bodies(alone)
    with pytest.raises(InputError, match=text):
        simulation.run(**arguments)
    assert (simulation.steps, type(simulation.steps)) == (0, int)


@pytest.mark.parametrize("number", [1.5, "3", True, None, -2, np.float64(2)])
def test_steps_are_whole_numbers(alone, number):
    simulation = bodies(alone)
    with pytest.raises(InputError, match="step: number must be a whole number, at least 0"):
        simulation.step(number)
    assert (simulation.steps, type(simulation.steps)) == (0, int)


def test_numbers_of_numpy_are_numbers(alone, tmp_path):
    simulation = bodies(alone)
    seen = []
    simulation.every(steps=np.int64(2))(lambda it: seen.append(it.steps))
    simulation.every(time=np.float32(1e-3))(always)
    simulation.stop_when(escaped(np.float32(1e3)), every=np.uint8(2))
    simulation.step(np.int32(3))
    simulation.run(until=np.array(5e-3))
    assert (seen, simulation.steps) == ([0, 2, 4], 5)
    assert simulation.save(tmp_path).name == "checkpoint-0000000005.h5"


# ---- What is called, and what stops --------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"steps": 2.5}, r"every: steps must be a whole number, at least 1 \(got 2\.5\)"),
        ({"steps": "3"}, r"every: steps must be a whole number, at least 1 \(got '3'\)"),
        ({"steps": 0}, r"every: steps must be a whole number, at least 1 \(got 0\)"),
        ({"steps": True}, r"every: steps must be a whole number, at least 1 \(got True\)"),
        ({"time": "1"}, r"every: time must be a number greater than 0 \(got '1'\)"),
        ({"time": math.inf}, r"every: time must be a number greater than 0 \(got inf\)"),
        ({"wall": math.nan}, r"every: wall must be a number greater than 0 \(got nan\)"),
        ({"wall": -1}, r"every: wall must be a number greater than 0 \(got -1\)"),
        ({}, "every: give one of steps, time and wall"),
    ],
)
def test_wrong_schedules_are_named(alone, arguments, text):
    with pytest.raises(InputError, match=text):
        bodies(alone).every(**arguments)


def test_what_cannot_be_called_is_refused_at_once(alone):
    with pytest.raises(InputError, match=r"every: give a function to call \(got 5\)"):
        bodies(alone).every(steps=3)(5)


@pytest.mark.parametrize("every", [-1, 0, 2.5, "3", True])
def test_looks_are_whole_steps_apart(alone, every):
    for condition in (always, escaped(50)):
        with pytest.raises(InputError, match="stop_when: every must be a whole number, at least 1"):
            bodies(alone).stop_when(condition, every=every)


@pytest.mark.parametrize("condition", [3, "far", None, True])
def test_what_is_no_condition_is_refused(alone, condition):
    with pytest.raises(InputError, match="stop_when: give a function, or a condition such as"):
        bodies(alone).stop_when(condition)


@pytest.mark.parametrize("make", [escaped, closest, energy_error])
@pytest.mark.parametrize("number", ["a", None, True, math.nan, math.inf, 0, -1, 1j])
def test_conditions_are_of_numbers_greater_than_0(make, number):
    with pytest.raises(InputError, match=rf"{make.__name__}: \w+: must be a number greater than 0"):
        make(number)


def test_a_function_that_holds_at_the_first_look_stops_at_once(alone):
    """Conditions of bodies stop when they begin to hold: see `docs/stopping.md`."""
    simulation = bodies(alone)
    simulation.stop_when(always)
    assert (simulation.run(steps=5), simulation.steps) == ("always", 0)
    simulation = bodies(alone)
    with pytest.warns(UserWarning, match="already: it stops when that happens anew"):
        simulation.stop_when(escaped(1e-3))
    assert (simulation.run(steps=5), simulation.steps) == ("finished", 5)


# ---- Arrays --------------------------------------------------------------------------------------


def with_one(array, place, number):
    """Return a copy with another number at a place."""
    changed = np.array(array, float)
    changed[place] = number
    return changed


SET = {"positions": POSITIONS, "velocities": VELOCITIES, "masses": MASSES}


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("positions", with_one(POSITIONS, (3, 1), np.nan), r"got nan in row 3, body 4\)"),
        ("velocities", with_one(VELOCITIES, (2, 0), np.inf), r"got inf in row 2, body 3\)"),
        ("masses", with_one(MASSES, 4, np.nan), r"got nan in row 4, body 5\)"),
        ("masses", with_one(MASSES, 4, -2), r"masses: negative mass \(got -2 in row 4, body 5\)"),
        ("positions", "abc", "positions: must be an array of real numbers"),
        ("velocities", VELOCITIES + 1j, r"must be an array of real numbers \(got complex128\)"),
        ("positions", [[1, 2, 3], [4, 5]], "positions: must be an array of real numbers"),
        ("masses", None, r"masses: "),
        ("positions", [1, 2, 3], r"positions: this rank needs an array of shape \(5, 3\)"),
    ],
)
def test_a_wrong_array_changes_no_body(alone, name, values, text):
    simulation = bodies(alone)
    simulation.remove([1])  # an identity is not a row
    simulation.step(2)
    if isinstance(values, np.ndarray):
        values = values[:5]
    before = {one: getattr(simulation, one) for one in SET}
    with pytest.raises(InputError, match=text):
        setattr(simulation, name, values)
    for one, array in before.items():
        np.testing.assert_array_equal(getattr(simulation, one), array)
    simulation.step()
    assert np.isfinite(simulation.energy)


@pytest.mark.parametrize("grid", ["collocated", "staggered"])
@pytest.mark.parametrize(
    ("name", "place", "number", "text"),
    [
        ("density", (1, 2, 3), np.nan, r"got nan in cell \(z, y, x\) = \(1, 2, 3\)"),
        ("velocity", (4, 0, 5, 2), np.inf, r"got inf in cell \(z, y, x\) = \(4, 0, 5\)"),
        ("density", (1, 2, 3), 1e300, r" in float32 \(got 1e\+300 in cell"),
    ],
)
def test_a_wrong_array_changes_no_cell(alone, grid, name, place, number, text):
    simulation = fluid(alone, grid=grid, dtype="float32")
    before = simulation.density, simulation.velocity
    with pytest.raises(InputError, match=f"{name}: every number must be finite.*{text}"):
        setattr(simulation, name, with_one(getattr(simulation, name), place, number))
    np.testing.assert_array_equal(simulation.density, before[0])
    np.testing.assert_array_equal(simulation.velocity, before[1])
    simulation.step()


def test_arrays_of_other_types_are_refused_at_the_start(alone):
    simulation = fluid(alone)
    with pytest.raises(InputError, match="density: must be an array of real numbers"):
        simulation.density = "abc"
    with pytest.raises(InputError, match="positions: must be an array of real numbers"):
        bodies(alone, positions="abc")


@pytest.mark.mpi
def test_masses_are_not_negative(communicator):
    wrong = with_one(MASSES, 2, -0.5)
    text = r"masses: negative mass \(got -0\.5 in row 2\)"
    with pytest.raises(InputError, match=text):
        bodies(communicator, masses=wrong)
    simulation = bodies(communicator, masses=with_one(MASSES, 2, 0.0))
    with pytest.raises(InputError, match=text):
        simulation.add(POSITIONS + 9, VELOCITIES, wrong)
    with pytest.raises(InputError, match="masses: negative mass"):
        simulation.masses = -simulation.masses - 1
    assert simulation.gathered("bodies/mass").tolist() == [1, 1, 0, 1, 1, 1]


def test_the_first_bad_row_is_named_at_the_start(alone):
    with pytest.raises(InputError, match=r"velocities: every .* \(got nan in row 5\)"):
        bodies(alone, velocities=with_one(VELOCITIES, (5, 0), np.nan))
    with pytest.raises(InputError, match=r"masses: every .* \(got -inf in row 0\)"):
        bodies(alone, masses=with_one(MASSES, 0, -np.inf))


@pytest.mark.parametrize("ids", ["abc", 2.7, [True] * 6, [[1.0]], None])
def test_bodies_are_removed_by_whole_numbers(alone, ids):
    simulation = bodies(alone)
    with pytest.raises(InputError, match="remove: ids must be whole numbers"):
        simulation.remove(ids)
    assert len(simulation.ids) == 6


# ---- Attributes ----------------------------------------------------------------------------------


def test_hasattr_finds_what_a_model_has(alone):
    of_bodies, of_fluid = bodies(alone), fluid(alone)
    names = ("positions", "velocities", "masses", "ids", "device", "density", "velocity")
    found = [[hasattr(one, name) for name in names] for one in (of_bodies, of_fluid)]
    assert found == [[True] * 5 + [False] * 2, [False] * 5 + [True] * 2]
    with pytest.raises(InputError, match="no field 'fluid/density'; there are bodies/") as caught:
        of_bodies.density = 3
    assert isinstance(caught.value, AttributeError)
    with pytest.raises(InputError, match="no field 'bodies/position'; there are fluid/density"):
        of_fluid.positions = POSITIONS


@pytest.mark.parametrize("name", ["time", "steps"])
def test_what_counts_steps_cannot_be_set(alone, name):
    simulation = bodies(alone)
    simulation.step(2)
    with pytest.raises(AttributeError, match=f"^{name} cannot be set: it counts from the start;"):
        setattr(simulation, name, 0)
    assert simulation.steps == 2


# ---- Ranks ---------------------------------------------------------------------------------------


def calls(simulation):
    """Return what each name in a message stands for."""
    return {
        "energy": lambda: simulation.energy,
        "diagnostics": lambda: simulation.diagnostics,
        "positions = ...": lambda: setattr(simulation, "positions", simulation.positions),
        "velocities = ...": lambda: setattr(simulation, "velocities", simulation.velocities),
        "masses = ...": lambda: setattr(simulation, "masses", simulation.masses),
        "device.changed": lambda: simulation.device.changed(),
        "run to step 3": lambda: simulation.run(steps=3),
        "step to step 1": lambda: simulation.step(),
        "every(steps=2)": lambda: simulation.every(steps=2),
        "every(time=0.5)": lambda: simulation.every(time=0.5),
        "stop_when(always, every=3)": lambda: simulation.stop_when(always, every=3),
        "stop_when(Escaped(radius=50.0), every=1)": lambda: simulation.stop_when(escaped(50)),
    }


def bodies_or_energy(simulation):
    """Make another simulation on the root, and ask for the energy of this one elsewhere."""
    if simulation.communicator.is_root:
        Simulation({}, communicator=simulation.communicator)
    else:
        simulation.energy  # noqa: B018


@pytest.mark.mpi(min_size=2)
def test_a_call_of_one_rank_alone_is_named_as_it_was_written(communicator):
    simulation = bodies(communicator)
    text = r"rank 0 calls Simulation\(\.\.\.\) while rank 1 calls Simulation\.energy"
    with pytest.raises(InputError, match=text):
        bodies_or_energy(simulation)
    for name, call in calls(simulation).items():
        here = call if communicator.is_root else lambda: simulation.gathered("bodies/id")
        with pytest.raises(InputError) as caught:
            here()
        text = f"rank 0 calls Simulation.{name} while rank 1 calls Simulation.gathered: all ranks"
        assert str(caught.value).startswith(text)
        assert caught.value.shared


@pytest.mark.mpi(min_size=2)
def test_ranks_are_given_the_same(communicator):
    simulation = bodies(communicator)
    root = communicator.is_root
    text = "calls Simulation.run to step 3 while rank 1 calls Simulation.run to step 5"
    with pytest.raises(InputError, match=text):
        simulation.run(steps=3 if root else 5)
    text = r"Simulation.every\(steps=2\) while rank 1 calls Simulation.every\(steps=3\)"
    with pytest.raises(InputError, match=text):
        simulation.every(steps=2 if root else 3)
    text = r"radius=2.0\), every=1\) while rank 1 calls .*radius=3.0\), every=1\)"
    with pytest.raises(InputError, match=text):
        simulation.stop_when(escaped(2 if root else 3))
    assert simulation.run(until=2e-3 if root else np.float64(0.0020000001)) == "finished"
    assert simulation.steps == 2


@pytest.mark.mpi(min_size=2)
def test_an_argument_that_is_wrong_on_one_rank_is_refused_on_all(communicator):
    simulation = bodies(communicator)
    root = communicator.is_root
    text = "run: steps must be a whole" if root else "rank 0 calls Simulation.run with wrong arg"
    with pytest.raises(InputError, match=text) as caught:
        simulation.run(steps=1.5 if root else 1)
    assert caught.value.shared
    before = simulation.gathered("bodies/velocity")
    with pytest.raises(InputError, match=r"^rank 0: velocities: every .* \(got inf in row 0, body"):
        simulation.velocities = simulation.velocities + (np.inf if root else 0.0)
    np.testing.assert_array_equal(simulation.gathered("bodies/velocity"), before)
    assert simulation.step() == "finished"


@pytest.mark.mpi(min_size=2)
def test_ranks_that_do_not_all_stop_are_told(communicator):
    simulation = bodies(communicator)
    simulation.stop_when(lambda it: it.steps == 3 and communicator.rank == 1)
    text = r"rank 0 calls Simulation\.run while rank 1 calls Simulation\.run, and stops as <lambda>"
    with pytest.raises(InputError, match=text) as caught:
        simulation.run(steps=9)
    assert caught.value.shared


@pytest.mark.mpi(min_size=2)
def test_identities_that_are_wrong_on_the_root_are_refused_on_all(communicator):
    simulation = bodies(communicator)
    with pytest.raises(InputError, match="remove: ids must be whole numbers") as caught:
        simulation.remove(["one"] if communicator.is_root else [1])
    assert caught.value.shared


def test_checks_leave_no_warning(alone):
    simulation = bodies(alone)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in (POSITIONS * np.nan, POSITIONS * np.inf, np.longdouble("1e4000") * POSITIONS):
            with pytest.raises(InputError, match="positions: every number must be finite"):
                simulation.positions = values
