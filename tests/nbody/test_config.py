"""The configuration of bodies: defaults, the number of steps, durations, values from Python."""

import math

import pytest
from pydantic import ValidationError

from hybrid_nbody.config.sections import Every, Time
from hybrid_nbody.nbody.config import NBodyConfig, NBodyTime
from hybrid_nbody.nbody.config_bodies import PlummerBodies, TwoBodies
from hybrid_nbody.nbody.config_output import BodyFrames, NBodyOutput


def test_defaults(config_of):
    config = config_of("")
    assert (config.title, config.seed) == ("", 1)
    assert config.gravity.model_dump() == {
        "G": 1.0,
        "softening": 0.0,
        "solver": "direct",
        "precision": "mixed",
        "external": None,
        "accuracy": 1e-4,
    }
    assert (config.time.integrator, config.time.wall_limit, config.time.max_energy_error) == (
        "leapfrog",
        None,
        0.1,
    )
    assert set(config.compute.model_dump().values()) == {"auto"}
    assert config.output.directory == "output/run"
    assert config.output.trajectory.every_steps == 100
    assert config.output.diagnostics.every_steps == 10
    assert (config.output.checkpoint.every_steps, config.output.checkpoint.keep) == (500, 2)


NOWHERE = (0.0, 0.0, 0.0)
PLACE = {"name": "", "seed": None, "rotation": NOWHERE, "offset": NOWHERE, "velocity": NOWHERE}
BODIES = {
    "plummer, n: 4": {"n": 4, "mass": 1.0, "scale": 3 * math.pi / 16},
    "uniform-sphere, n: 4": {"n": 4, "mass": 1.0, "radius": 1.0, "virial_ratio": 1.0},
    "cold-sphere, n: 1": {"n": 1, "mass": 1.0, "radius": 1.0},
    "random-box, n: 1e3": {"n": 1000, "half_width": 1.0, "mass": 1.0},
    "two-body": {"masses": (1.0, 1.0), "semi_major_axis": 1.0, "eccentricity": 0.0},
    "figure-eight": {},
    "lagrange-triangle": {"side": 1.0, "mass": 1.0},
    "random-square, n: 8": {"n": 8, "dimensions": 2},
    "hernquist, n: 4": {"n": 4, "mass": 1.0, "scale": 1.0},
    "nfw, n: 4": {"n": 4, "mass": 1.0, "scale": 1.0, "concentration": 10.0},
    "king, n: 4": {"n": 4, "mass": 1.0, "scale": 1.0, "central_potential": 6.0},
    "solar-system": {},
    "python, path: /a.py, n: 4": {"path": "/a.py", "function": "bodies", "n": 4},
    "file, path: /a.csv": {"path": "/a.csv", "dimensions": 3},
}


@pytest.mark.parametrize("text", BODIES)
def test_each_kind_of_bodies_has_its_keys_and_defaults(config_of, text):
    bodies = config_of(f"bodies: {{kind: {text}}}").bodies
    assert bodies.model_dump() == {"kind": text.split(",")[0], **PLACE, **BODIES[text]}


def test_null_switches_an_output_off(config_of):
    output = config_of("output: {trajectory: null, diagnostics: ~, checkpoint: null}").output
    assert (output.trajectory, output.diagnostics, output.checkpoint) == (None, None, None)


@pytest.mark.parametrize(
    ("dt", "end", "steps"),
    [
        # 1.0 / 1e-3 is 1000.0000000000001 or 999.9999999999999 elsewhere: not 1001
        (1e-3, 1.0, 1000),
        (0.1, 0.3, 3),  # 0.3 / 0.1 is 2.9999999999999996
        (0.1, 0.7, 7),  # 6.999999999999999
        (1.1, 3.3, 3),  # 3.0000000000000000 up to rounding
        (0.1, 0.25, 3),
        (1.0, 1.0 + 1e-8, 2),
        (1.0, 1.0 + 1e-10, 1),
        (2.0, 0.5, 1),
        (1e300, 1e-300, 1),
        (1e-15, 1.0, 10**15),
    ],
)
def test_the_end_is_rounded_up_to_whole_steps(dt, end, steps):
    assert Time(dt=dt, end=end).total_steps == steps


def test_steps_are_taken_as_they_are():
    assert Time(dt=0.3, steps=7).total_steps == 7


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h30m", 9000.0),
        ("90s", 90.0),
        ("1d", 86400.0),
        ("45m", 2700.0),
        ("3600", 3600.0),
        ("'3600'", 3600.0),
        ("1e3", 1000.0),
        ("1d2h3m4.5s", 93784.5),
        ("1.5h", 5400.0),
        ("null", None),
    ],
)
def test_a_duration_is_read_as_seconds(config_of, text, seconds):
    value = config_of("seed: 1", f"time.wall_limit={text}").time.wall_limit
    assert value == seconds
    assert value is None or type(value) is float


def test_a_configuration_cannot_be_changed(config_of):
    config = config_of("compute: {balance: [1, 2]}")
    with pytest.raises(ValidationError, match="frozen"):
        config.seed = 2
    with pytest.raises(ValidationError, match="frozen"):
        config.time.dt = 2.0
    assert isinstance(config.compute.balance, tuple)
    assert hash(config) == hash(config.model_copy(deep=True))


def test_python_code_builds_a_configuration_under_the_same_rules():
    config = NBodyConfig(
        model="nbody",
        bodies=PlummerBodies(kind="plummer", n=4),
        time=NBodyTime(dt=0.1, steps=2),
        output=NBodyOutput(trajectory=BodyFrames(every_time=0.5)),
    )
    assert config.output.trajectory.every_time == 0.5
    with pytest.raises(ValidationError, match="exactly one of end and steps"):
        Time(dt=0.1, steps=2, end=1.0)
    with pytest.raises(ValidationError, match="exactly one of every_steps and every_time"):
        Every()
    with pytest.raises(ValidationError, match="less than 1"):
        TwoBodies(kind="two-body", eccentricity=1.0)
