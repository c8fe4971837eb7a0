"""The configuration of a fluid: defaults, and what keys become."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.configs import load, loads
from support.fluid_texts import (
    completed,
    config_of,
    event,
)

from hybrid_nbody.config.loader import dump
from hybrid_nbody.errors import InputError
from hybrid_nbody.fluid.config import FluidConfig
from hybrid_nbody.running.models import MODELS

ROOT = Path(__file__).parents[2]
KIND = MODELS["fluid"]


STAGGERED = """\
fluid:
  grid: staggered
  scalars: [{name: heat, diffusion: 0}]
  boundary: {x-: {inflow: ["y * (1 - y)", 0, 0], heat: 1}, x+: outflow, y+: {moving: [1, 0, 0]}}
"""


def test_defaults():
    config = config_of("")
    assert config.fluid.model_dump() == {
        "viscosity": 1e-4,
        "diffusion": 1e-4,
        "grid": "staggered",
        "boundary": ("free-slip",) * 3,
        "dtype": "float32",
        "projection": "exact",
        "advection": "semi-lagrangian",
        "conserve": True,
        "buoyancy": 0.0,
        "gravity": (0.0, -1.0, 0.0),
        "vorticity_confinement": 0.0,
        "scalars": (),
    }
    assert config.solver.model_dump() == {
        "method": "multigrid",
        "max_iterations": 100,
        "tolerance": 1e-4,
        "criterion": "residual",
        "omega": "auto",
    }
    assert (config.sources.carry_over, config.sources.events, config.sources.file) == (
        False,
        (),
        None,
    )
    assert (config.output.fields, config.output.stride, config.output.planes) == (
        ("density", "velocity"),
        1,
        None,
    )
    assert (config.time.total_steps, config.time.energy_limit) == (10, None)


COURSE = {"method": "red-black", "max_iterations": 20, "tolerance": 1e-7, "criterion": "change"}
CONJUGATE = {"method": "conjugate-gradients", "max_iterations": 100}
FLUID = "fluid: {projection: course}\n"


@pytest.mark.parametrize(
    ("text", "solver", "conserve"),
    [
        (FLUID, COURSE, False),
        (f"{FLUID}solver: {{max_iterations: 7}}", COURSE | {"max_iterations": 7}, False),
        (f"{FLUID}solver: {{criterion: residual, tolerance: 0}}", {"criterion": "residual"}, False),
        ("fluid: {projection: course, conserve: true}", COURSE, True),
        ("sources: {carry_over: true}", {"method": "multigrid", "criterion": "residual"}, False),
        ("solver: {method: sor}", {"max_iterations": 20, "criterion": "residual"}, True),
        ("", {"method": "multigrid", "max_iterations": 100}, True),
        ("fluid: {boundary: outflow}", CONJUGATE, True),
        ("fluid: {boundary: [outflow, periodic, no-slip]}", CONJUGATE, True),
        ("obstacles: [{sphere: {centre: [0.5, 0.5, 0.5], radius: 0.2}}]", CONJUGATE, True),
        ("fluid: {boundary: {x-: {inflow: [1, 0, 0]}, x+: outflow}}", CONJUGATE, True),
    ],
)
def test_defaults_that_depend_on_other_keys(text, solver, conserve):
    """The program of the course keeps its own."""
    config = config_of(text)
    assert config.solver.model_dump().items() >= solver.items()
    assert config.fluid.conserve == conserve


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        ("", "staggered"),
        ("solver: {method: multigrid, criterion: residual}", "staggered"),
        ("sources: {carry_over: false}", "staggered"),
        ("fluid: {projection: exact}", "collocated"),
        ("sources: {carry_over: true}", "collocated"),
        ("solver: {method: red-black}", "collocated"),
        ("solver: {method: conjugate-gradients}", "staggered"),
        ("solver: {criterion: change}", "collocated"),
        ("fluid: {grid: collocated}", "collocated"),
    ],
)
def test_the_grid_follows_from_keys_that_one_alone_knows(text, grid):
    """Configurations that were stored before there was a choice hold `projection`."""
    config = config_of(text)
    assert config.fluid.grid == grid
    assert loads(dump(config), "dump.yaml") == config


def test_what_every_default_is_written_as():
    assert (
        dump(config_of(event("step: 3, density: 2")))
        == """\
model: fluid
title: ''
grid:
  cells: [8, 6, 5]
fluid:
  viscosity: 0.0001
  diffusion: 0.0001
  grid: staggered
  boundary: [free-slip, free-slip, free-slip]
  dtype: float32
  projection: exact
  advection: semi-lagrangian
  conserve: true
  buoyancy: 0.0
  gravity: [0.0, -1.0, 0.0]
  scalars: []
  vorticity_confinement: 0.0
obstacles: []
solver: {method: multigrid, max_iterations: 100, tolerance: 0.0001, criterion: residual, omega: \
auto}
sources:
  carry_over: false
  events:
  - {step: 3, density: 2.0, mode: set}
  file: null
time: {dt: 0.5, steps: 10, wall_limit: null, cfl: null, dt_max: null}
compute: {backend: auto, threads: auto, balance: auto, transport: auto, exchange: auto}
output:
  directory: output/run
  trajectory: {every_steps: 10}
  diagnostics: {every_steps: 10}
  checkpoint: {every_steps: 500, keep: 2}
  fields: [density, velocity]
  stride: 1
  planes: null
"""
    )


@pytest.mark.parametrize(
    ("cells", "centre"), [([42, 84, 168], (20, 41, 83)), ([3, 4, 5], (0, 1, 1))]
)
def test_the_centre_is_cell_n_over_2_counted_from_1(cells, centre):
    assert config_of(f"grid: {{cells: {cells}}}").grid.centre == centre


def test_one_number_of_cells_for_all_axes():
    assert config_of("grid: {cells: 64}").grid.cells == (64, 64, 64)
    assert config_of("", "grid.cells=10").grid.cells == (10, 10, 10)


def test_a_boundary_for_each_axis():
    boundary = config_of("fluid: {boundary: [periodic, no-slip, free-slip]}").fluid.boundary
    assert boundary == ("periodic", "no-slip", "free-slip")
    assert config_of("", "fluid.boundary=no-slip").fluid.boundary == ("no-slip",) * 3


def test_events_know_their_first_and_last_step():
    text = (
        "sources:\n  events:\n    - {step: 3, density: 0}\n    - {steps: [2, 9], velocity: [1, "
        "0, -1], mode: add}"
    )
    single, several = config_of(text).sources.events
    assert (single.first, single.last, single.density, single.velocity, single.mode) == (
        3,
        3,
        0.0,
        None,
        "set",
    )
    assert (several.first, several.last, several.density, several.velocity) == (
        2,
        9,
        None,
        (1.0, 0.0, -1.0),
    )


@pytest.mark.parametrize(
    "text",
    [
        event("step: 9, density: -1, cell: [7, 5, 4]"),
        event("steps: [0, 9], density: 1, box: [[0, 8], [0, 6], [4, 5]]"),
        event("step: 0, velocity: [1, 2, 3], sphere: {centre: [7, 2.5, 0], radius: 100}"),
        "fluid: {boundary: [periodic, periodic, no-slip]}",
        "solver: {method: sor, omega: 1.7}",
        "solver: {method: lexicographic}\nsources: {carry_over: true}",
        "solver: {criterion: residual, tolerance: 1.2e-7}",
        "solver: {criterion: residual, tolerance: 1e-15}\nfluid: {dtype: float64}",
        "solver: {criterion: residual, tolerance: 0}",
        "solver: {criterion: change, tolerance: 1e-300}\nfluid: {dtype: float64}",
        "output: {planes: [4, 0], fields: [velocity], stride: 100}",
        STAGGERED + event("step: 1, scalar: {name: heat, value: 1}"),
        STAGGERED + "time: {dt_max: 0.1, cfl: 2, steps: 10}\noutput: {fields: [heat, pressure]}",
    ],
)
def test_what_just_works(text):
    config = config_of(text)
    assert loads(dump(config), "x.yaml") == config
    assert hash(config) == hash(config.model_copy(deep=True))


def test_a_file_of_events_starts_at_the_folder_of_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "x.yaml").write_text(completed("sources: {file: events.txt}"))
    assert load("input/x.yaml").sources.file == str(tmp_path / "input" / "events.txt")
    assert load("input/x.yaml", ["sources.file=a.txt"]).sources.file == str(tmp_path / "a.txt")
    assert load("input/x.yaml", ["sources.file=null"]).sources.file is None


@pytest.mark.parametrize("cells", [42, 84, 168])
def test_the_plumes_state_their_solver_themselves(cells):
    """Their totals follow from it, whatever the defaults are."""
    data = yaml.safe_load((ROOT / "input" / f"plume_{cells}.yaml").read_text())
    stated = {name: str(value) for name, value in data["solver"].items()}
    assert stated == {**COURSE, "max_iterations": "20", "tolerance": "1e-7"}
    assert data["fluid"]["conserve"] is False


@pytest.mark.parametrize("cells", [42, 84, 168])
def test_the_plumes_have_the_same_twelve_events(cells):
    config, first = (load(ROOT / "input" / f"plume_{number}.yaml") for number in (cells, 42))
    assert config.grid.cells == (cells,) * 3
    assert config.sources == first.sources
    assert [event.step for event in config.sources.events] == [
        0,
        5,
        12,
        20,
        31,
        38,
        46,
        55,
        63,
        71,
        80,
        88,
    ]
    assert sum(event.density or 0 for event in config.sources.events) == 45
    assert (config.fluid.projection, config.sources.carry_over, config.time.total_steps) == (
        "course",
        True,
        100,
    )


# --- what is bad ----------------------------------------------------------------------------------

# --- whatever is written --------------------------------------------------------------------------

number = st.floats(-1e6, 1e6)
vectors = st.lists(number, min_size=3, max_size=3)
places = st.sampled_from(
    [
        {},
        {"cell": [1, 2, 3]},
        {"box": [[0, 2], [1, 6], [0, 1]]},
        {"sphere": {"centre": [1.5, 2, 3], "radius": 1.5}},
    ]
)
events = st.builds(
    lambda when, what, where, mode: {**when, **what, **where, "mode": mode},
    st.builds(lambda step: {"step": step}, st.integers(0, 9)) | st.just({"steps": [2, 7]}),
    st.builds(lambda value: {"density": value}, number)
    | st.builds(lambda value: {"velocity": value}, vectors),
    places,
    st.sampled_from(["set", "add"]),
)
configs = st.fixed_dictionaries(
    {
        "model": st.just("fluid"),
        "grid": st.just({"cells": [8, 6, 5]}),
        "time": st.just({"dt": 0.1, "steps": 10}),
        "sources": st.fixed_dictionaries({"events": st.lists(events, max_size=4)}),
        "fluid": st.fixed_dictionaries(
            {},
            optional={
                "viscosity": st.floats(0, 1e3),
                "boundary": st.sampled_from(["no-slip", ["periodic", "periodic", "free-slip"]]),
                "gravity": vectors,
                "buoyancy": number,
            },
        ),
        "output": st.fixed_dictionaries(
            {"planes": st.none() | st.just([3, 1]), "stride": st.integers(1, 9)}
        ),
    }
)


@given(configs)
def test_a_configuration_survives_being_written_and_read(values):
    config = FluidConfig.model_validate(values)
    text = dump(config)
    assert loads(text, "config.yaml") == config
    assert dump(loads(text, "config.yaml")) == text


def test_changes_in_the_units_of_fields_are_for_the_course():
    """A run that was begun with them is resumed: its configuration is not refused itself."""
    changing = "solver: {method: red-black, criterion: change, tolerance: 1e-5}\n"
    with pytest.raises(InputError, match="change depends on the units of time and density"):
        KIND.resolved(config_of(changing))
    for text in (changing + "fluid: {projection: course}\n", changing.replace("1e-5", "0")):
        assert KIND.resolved(config_of(text)).solver.criterion == "change"
