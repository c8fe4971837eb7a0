"""Any file or override gives a configuration, or a `ConfigError` with a location in each line."""

import re

from hypothesis import example, given
from hypothesis import strategies as st
from support.configs import loads

from hybrid_nbody.config.loader import ConfigError, dump
from hybrid_nbody.config.yaml_text import write

VALID = {
    "model": "nbody",
    "title": "x",
    "seed": 1,
    "bodies": {"kind": "two-body", "masses": [1, 2], "eccentricity": 0.5},
    "gravity": {"G": 1.0, "softening": 0.1, "precision": "double"},
    "time": {"dt": 0.1, "end": 1.0, "wall_limit": "2h"},
    "compute": {"threads": 2, "balance": [1, 2]},
    "output": {
        "directory": "a",
        "trajectory": {"every_steps": 2},
        "checkpoint": {"every_time": 1.0, "keep": 2},
    },
}
EVENT = {"step": 1, "density": 1.0, "sphere": {"centre": [1, 2, 3], "radius": 2}, "mode": "add"}
FLUID = {
    "model": "fluid",
    "grid": {"cells": [8, 6, 5]},
    "fluid": {
        "viscosity": 0.1,
        "boundary": ["no-slip", "periodic", "free-slip"],
        "gravity": [0, -1, 0],
    },
    "solver": {"method": "sor", "omega": 1.5, "criterion": "residual", "tolerance": 1e-3},
    "sources": {
        "carry_over": False,
        "events": [EVENT, {"steps": [2, 3], "velocity": [0, 1, 0]}],
        "file": None,
    },
    "time": {"dt": 0.1, "steps": 10},
    "output": {"fields": ["density"], "stride": 2, "planes": [1, 4]},
}
LINE = re.compile(r"(x\.yaml:\d+: |--set .*: ).+|… and \d+ more faults")

words = st.text(max_size=8) | st.sampled_from(["auto", "equal", "plummer", "file", "2h", "nbody"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def keys_of(mapping, path=()):
    for key, value in mapping.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from keys_of(value, (*path, key))


def with_value(mapping, path, value):
    inner = with_value(mapping[path[0]], path[1:], value) if len(path) > 1 else value
    return {**mapping, path[0]: inner}


def check(text, overrides=()):
    """Load text; if it is refused, each line of the message must name its location."""
    try:
        config = loads(text, "x.yaml", overrides)
    except ConfigError as error:
        assert all(LINE.fullmatch(line) for line in str(error).split("\n"))
    else:
        assert loads(dump(config), "x.yaml") == config


@given(st.sampled_from(list(keys_of(VALID))), values)
def test_any_value_of_any_key(path, value):
    check(write(with_value(VALID, path, value)))
    check(write(VALID), [f"{'.'.join(path)}={write(value)}"])


@given(st.sampled_from(list(keys_of(FLUID))), values)
def test_any_value_of_any_key_of_a_fluid(path, value):
    check(write(with_value(FLUID, path, value)))
    check(write(FLUID), [f"{'.'.join(path)}={write(value)}"])


PLACES = {
    "steps": [1, 2],
    "velocity": [1, 0, 0],
    "cell": [1, 1, 1],
    "box": [[0, 1], [0, 1], [0, 1]],
}


@given(
    st.sampled_from(list(keys_of(EVENT | PLACES))),
    values | st.lists(st.integers(-1, 9), max_size=4),
)
def test_any_value_of_any_key_of_an_event(path, value):
    event = with_value(EVENT if path[0] in EVENT else PLACES | {"mode": "set"}, path, value)
    check(write(with_value(FLUID, ("sources", "events"), [event])))
    check(write(with_value(FLUID, ("sources", "events"), [EVENT, event, value])))


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 400))
@example("title: !", "a=!", 0)
def test_any_text_anywhere(text, override, position):
    valid = write(VALID)
    check(valid[:position] + text + valid[position:], [override])
    check(text, [override])


@given(st.text("&*!|>'\"%@`{}[],:?-# \n\ta1.", max_size=30))
def test_any_mix_of_the_signs_of_yaml(text):
    check(text)
    check(write(VALID), [f"title={text}", f"time={text}"])
