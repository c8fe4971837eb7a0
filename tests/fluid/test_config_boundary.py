"""The key fluid.boundary: words, mappings of faces, what is bad, and the way to a file and back."""

from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from hybrid_nbody.config import loader
from hybrid_nbody.config.loader import ConfigError, dump
from hybrid_nbody.config.sections import ModelConfig, Section
from hybrid_nbody.errors import InputError
from hybrid_nbody.fluid.config_boundary import (
    Boundaries,
    FaceTable,
    faces_of,
    faults_on_grid,
    kinds_of,
)
from hybrid_nbody.fluid.staggered.faces import NAMES
from hybrid_nbody.fluid.staggered.profiles import Expression, Parabolic, Uniform

CELLS = (8, 4, 2)


class Flow(Section):
    """A section with the key, as that of the fluid."""

    boundary: Boundaries = Field("free-slip", validate_default=True)


class FlowConfig(ModelConfig):
    """A model with that section."""

    model: Literal["flow"]
    fluid: Flow = Flow()


MODELS = {"flow": SimpleNamespace(schema=FlowConfig)}


def boundary_of(text, *overrides):
    """Return the value of the key from the YAML behind it."""
    text = f"model: flow\nfluid: {{boundary: {text}}}\n"
    return loader.loads(text, "x.yaml", overrides, models=MODELS).fluid.boundary


def kinds_in(text):
    """Return the kinds of the faces, which are also known without the grid."""
    boundary = boundary_of(text)
    kinds = [face.kind for face in faces_of(boundary, CELLS)]
    assert kinds_of(boundary) == tuple(kinds)
    return kinds


def faults_of(text):
    with pytest.raises(ConfigError) as caught:
        boundary_of(text)
    return [line.removeprefix("x.yaml:2: fluid.boundary") for line in str(caught.value).split("\n")]


# --- what is good ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no-slip", ("no-slip",) * 3),
        ("[periodic, no-slip, free-slip]", ("periodic", "no-slip", "free-slip")),
        ("{}", ("free-slip",) * 3),
        ("{x: periodic, all: no-slip}", ("periodic", "no-slip", "no-slip")),
        ("{y-: no-slip, y+: no-slip}", ("free-slip", "no-slip", "free-slip")),
    ],
)
def test_what_three_words_say_is_three_words(text, words):
    assert boundary_of(text) == words
    assert kinds_in(text) == [word for word in words for _ in range(2)]


def test_no_boundary_is_free_slip():
    assert Flow().boundary == ("free-slip",) * 3


def test_a_more_special_key_wins_whatever_the_order():
    text = "{y+: {moving: [1, 0, 0]}, all: no-slip, y: free-slip, z: periodic}"
    assert kinds_in(text) == ["no-slip"] * 2 + ["free-slip", "no-slip"] + ["periodic"] * 2
    lid = faces_of(boundary_of(text), CELLS).y_high
    assert lid.velocity == Uniform((1.0, 0.0, 0.0))


def test_the_axes_may_be_open():
    assert kinds_in("[outflow, no-slip, no-slip]") == ["outflow"] * 2 + ["no-slip"] * 4


def test_a_parabola_is_zero_at_edges_but_not_across_periodic_axes():
    inflow = "x-: {inflow: [1, 0, 0], profile: parabolic, density: 1, heat: 2}, x+: outflow"
    face = faces_of(boundary_of(f"{{{inflow}}}"), CELLS).x_low
    assert face.velocity == Parabolic((1.0, 0.0, 0.0), (1.0, 0.5, 0.25), (1, 2))
    assert face.scalars == {"density": 1.0, "heat": 2.0}
    flat = faces_of(boundary_of(f"{{{inflow}, z: periodic}}"), CELLS).x_low
    assert flat.velocity == Parabolic((1.0, 0.0, 0.0), (1.0, 0.5, 0.25), (1,))


def test_a_component_may_be_a_formula():
    text = '{z+: {inflow: [0, 0, "-x*  (1 - x)"]}, z-: outflow, y+: {moving: ["sin(t)", 0, 0]}}'
    faces = faces_of(boundary_of(text), CELLS)
    assert faces.z_high.velocity == Expression(("0.0", "0.0", "-x* (1 - x)"))
    assert faces.y_high.velocity == Expression(("sin(t)", "0.0", "0.0"))
    assert not faces.steady


def test_a_table_starts_at_the_folder_of_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "wind.csv").write_text("y,u,v,w\n0,0,0,0\n0.5,1,0,0\n")
    text = "model: flow\nfluid: {boundary: {x-: {inflow: wind.csv, density: 1}, x+: outflow}}\n"
    (tmp_path / "input" / "x.yaml").write_text(text)
    config = loader.load("input/x.yaml", models=MODELS)
    assert loader.loads(dump(config), "stored.yaml", models=MODELS) == config
    face = faces_of(config.fluid.boundary, CELLS).x_low
    at = np.array([[0.0, 0.25, 0.1]])
    assert np.array_equal(face.velocity.values(at, 0.0), [[0.5, 0.0, 0.0]])
    assert face.scalars == {"density": 1.0}


def test_faces_are_set_on_the_command_line():
    table = boundary_of("{x+: outflow}", "fluid.boundary.x-={inflow: [2, 0, 0]}")
    assert faces_of(table, CELLS).x_low.velocity == Uniform((2.0, 0.0, 0.0))


def test_no_motion_across_a_wall_may_be_a_formula_too():
    table = boundary_of("{y+: {moving: ['sin(t)', '0', '0.0']}}")
    moving = faces_of(table, CELLS).y_high.velocity.values(np.array([[0.5, 0.5, 0.1]]), 0.5)
    np.testing.assert_allclose(moving, [[np.sin(0.5), 0.0, 0.0]], rtol=1e-12, atol=0)


# --- what is bad ----------------------------------------------------------------------------------

FACE = "must be one of free-slip, no-slip, periodic, outflow, or a mapping with the key inflow or "
VELOCITY = "must be a list of three numbers or formulas in quotes, along x, y and z"
KEYS = "x-, x+, x, y-, y+, y, z-, z+, z, all"
BAD = {
    "slip": [
        ": must be one of free-slip, no-slip, periodic, outflow, a list of three of them, for the "
        f"axes x, y and z, or a mapping of the faces {KEYS}; did you mean 'no-slip'? (got 'slip')"
    ],
    "{w-: no-slip}": [f".w-: unknown face; allowed: {KEYS}"],
    "{left: no-slip, x: sticky}": [
        f".left: unknown face; allowed: {KEYS}",
        f".x: {FACE}moving (got 'sticky')",
    ],
    "{x-: outflows}": [f".x-: {FACE}moving; did you mean 'outflow'? (got 'outflows')"],
    "{x-: [1, 0, 0]}": [f".x-: {FACE}moving (got [1, 0, 0])"],
    "{x-: {speed: 1}}": [f".x-: {FACE}moving"],
    "{x-: {inflow: [1, 0, 0]}}": [
        ".x-: what flows in at x- cannot leave; make another face outflow"
    ],
    "{x-: periodic, x+: outflow}": [
        ".x-: only one of the faces x- and x+ is periodic; make both so, or none"
    ],
    "{all: periodic, y+: no-slip}": [
        ".all: only one of the faces y- and y+ is periodic; make both so, or none"
    ],
    "{x: periodic, y-: periodic, y+: no-slip}": [
        ".y-: only one of the faces y- and y+ is periodic; make both so, or none"
    ],
    "{y+: {moving: [1, 2, 0]}}": [
        ".y+: the wall y+ can move along itself only: its component along y must be 0"
    ],
    "{y+: {moving: [1, 't', 0]}}": [
        ".y+: the wall y+ can move along itself only: its component along y must be 0"
    ],
    "{y: {moving: [1, 0]}}": [f".y.moving: {VELOCITY} (got [1, 0])"],
    "{y: {moving: [1, 0, 0], density: 1}}": [".y.density: unknown key; allowed: moving"],
    "{x-: {inflow: [0, 1, 0]}, x+: outflow}": [
        ".x-: nothing flows in at x-: the component along x must be greater than 0"
    ],
    "{x+: {inflow: [1, 0, 0]}, x-: outflow}": [
        ".x+: nothing flows in at x+: the component along x must be less than 0"
    ],
    "{x-: {inflow: ['-1', 0, 0]}, x+: outflow}": [
        ".x-: nothing flows in at x-: the component along x must be greater than 0"
    ],
    "{x-: {inflow: 1}, x+: outflow}": [
        f".x-.inflow: {VELOCITY}, or the name of a CSV or NPZ file (got 1)"
    ],
    "{x-: {inflow: wind.txt}, x+: outflow}": [
        f".x-.inflow: {VELOCITY}, or the name of a CSV or NPZ file (got 'wind.txt')"
    ],
    '{x-: {inflow: "a\\nb.csv"}, x+: outflow}': [
        ".x-.inflow: must be the name of a file, in one line (got 'a\\nb.csv')"
    ],
    "{x-: {inflow: [1, .inf, 0]}, x+: outflow}": [
        ".x-.inflow[1]: must be a finite number, or a formula in quotes (got inf)"
    ],
    "{x-: {inflow: [1, true, 0]}, x+: outflow}": [
        ".x-.inflow[1]: must be a finite number, or a formula in quotes (got true)"
    ],
    "{x-: {inflow: [1, 0, 0], profile: parabola}, x+: outflow}": [
        ".x-.profile: must be one of uniform, parabolic; did you mean 'parabolic'? (got 'parabola')"
    ],
    "{x-: {inflow: [1, y, 0], profile: parabolic}, x+: outflow}": [
        ".x-.profile: is for three numbers; formulas and tables have their own (got 'parabolic')"
    ],
    "{x-: {inflow: [1, 0, 0], profil: parabolic}, x+: outflow}": [
        ".x-.profil: must be a finite number, the value of a scalar that flows in; did you mean "
        "'profile'? (got 'parabolic')"
    ],
    "{x-: {inflow: [1, 0, 0], density: .nan}, x+: outflow}": [
        ".x-.density: must be a finite number, the value of a scalar that flows in (got nan)"
    ],
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_bad_is_named_with_its_key(text):
    assert faults_of(text) == BAD[text]


def test_a_formula_that_is_none_is_refused_with_what_is_allowed():
    (line,) = faults_of("{x-: {inflow: [4*q, 0, 0]}, x+: outflow}")
    assert line.startswith(".x-.inflow[0]: 'q' is unknown in '4*q'; a formula has numbers, x, y, z")
    assert line.endswith("(got '4*q')")


def test_every_fault_has_its_own_line():
    text = (
        "model: flow\nfluid:\n  boundary:\n    x-:\n      inflow: [1, 0]\n    x+: out\n    w: 1\n"
    )
    with pytest.raises(ConfigError) as caught:
        loader.loads(text, "x.yaml", models=MODELS)
    places = [line.split(": ")[:2] for line in str(caught.value).split("\n")]
    assert places == [
        ["x.yaml:5", "fluid.boundary.x-.inflow"],
        ["x.yaml:6", "fluid.boundary.x+"],
        ["x.yaml:7", "fluid.boundary.w"],
    ]


@pytest.mark.parametrize(
    ("formula", "where"), [("1/(0.5 - y)", "0, 0.5, 0"), ("sqrt(0.2 - z)", "0, 0, 0.2031")]
)
def test_a_formula_must_be_finite_at_the_start(formula, where):
    (fault,) = faults_on_grid(
        boundary_of(f"{{x-: {{inflow: ['{formula}', 0, 0]}}, x+: outflow}}"), CELLS, 1e15
    )
    assert fault["loc"] == ("fluid", "boundary", "x-")
    expected = f"is not a finite number at x, y, z = {where} at time 0"
    assert str(fault["ctx"]["error"]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "no-slip",
        "{x-: {inflow: ['1/(y + t + 1)', 0, 0]}, x+: outflow}",
        "{x-: {inflow: ['sqrt(0.25 - z)', 0, 0]}, x+: outflow}",  # the box is no higher
    ],
)
def test_formulas_that_are_finite_at_the_start_are_good(text):
    assert not list(faults_on_grid(boundary_of(text), CELLS, 1e15))


@pytest.mark.parametrize(
    ("face", "text"),
    [
        ("{inflow: [1.0e+20, 0, 0]}", "is 1e+20, more than 1e+15, whose square can be held,"),
        ("{inflow: [1, 0, 1.0e+20], profile: parabolic}", "is 1.47e+18, more than 1e+15"),
        ("{inflow: [1, 0, 0], density: 1.0e+31}", "density: must be at most 1e+30"),
        ("{moving: [0, 1.0e+39, 0]}", "is 1e+39, more than 1e+15"),
    ],
)
def test_numbers_that_are_too_large_are_refused(face, text):
    (fault,) = faults_on_grid(boundary_of(f"{{x-: {face}, x+: outflow}}"), CELLS, 1e15)
    assert fault["loc"] == ("fluid", "boundary", "x-")
    assert str(fault["ctx"]["error"]).startswith(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "fluid.boundary.x-.inflow: wind.csv cannot be read: No such file or directory"),
        ("y,u\n0,1\n", "fluid.boundary.x-.inflow: wind.csv has the columns y, u; a profile of"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_in_one_line(
    tmp_path, monkeypatch, content, message
):
    monkeypatch.chdir(tmp_path)
    if content:
        (tmp_path / "wind.csv").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        faces_of(boundary_of("{x-: {inflow: wind.csv}, x+: outflow}"), CELLS)
    assert "\n" not in str(caught.value)


# --- to a file and back ---------------------------------------------------------------------------

number = st.floats(-1e6, 1e6)
speed = st.floats(1e-6, 1e6)
component = number | st.sampled_from(["y*(1 - y)", "-t", "1", "where(y > 0.5, 1, 0)"])
scalars = st.dictionaries(st.sampled_from(["density", "temperature", "on", "1e3"]), number)
inflow = st.builds(
    lambda u, v, w, rest, profile: {"inflow": [u, v, w], **rest, **profile},
    speed,
    number,
    number,
    scalars,
    st.sampled_from([{}, {"profile": "uniform"}, {"profile": "parabolic"}]),
) | st.builds(lambda v, w: {"inflow": ["1 + y", v, w]}, component, component)
table = st.sampled_from(["wind.csv", "/a b/wind.NPZ"]).map(lambda name: {"inflow": name})
lid = st.builds(lambda u, w: {"moving": [u, 0, w]}, component, component)
wall = st.sampled_from(["free-slip", "no-slip", "outflow"])
mappings = st.fixed_dictionaries(
    {"x+": st.just("outflow")},
    optional={"x-": inflow | table | wall, "y": wall | lid, "y+": lid, "z": st.just("periodic")},
)
words = st.sampled_from(["free-slip", "no-slip", "periodic"])
boundaries = mappings | words | st.lists(words, min_size=3, max_size=3)


@given(boundaries)
def test_a_boundary_survives_being_written_and_read(boundary):
    config = FlowConfig.model_validate({"model": "flow", "fluid": {"boundary": boundary}})
    text = dump(config)
    again = loader.loads(text, "x.yaml", models=MODELS)
    assert again == config
    assert hash(again) == hash(config)
    assert dump(again) == text


@given(mappings)
def test_a_mapping_is_stored_as_six_faces(boundary):
    table = Flow.model_validate({"boundary": boundary}).boundary
    assert isinstance(table, FaceTable)
    assert tuple(table.conditions) == NAMES
