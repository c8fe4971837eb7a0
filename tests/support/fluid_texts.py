"""Configurations of a fluid as texts, and the messages that faulty ones give."""

import pytest
from support.configs import loads

from hybrid_nbody.config.loader import ConfigError

HEAD = "model: fluid\n"
GRID = "grid: {cells: [8, 6, 5]}\n"
TIME = "time: {dt: 0.5, steps: 10}\n"

EVENT_KEYS = "step, steps, density, velocity, scalar, cell, box, sphere, mode"
CELLS = "a whole number, at least 3 and at most 4096, or a list of three of them"
BOUNDARY = (
    "one of free-slip, no-slip, periodic, outflow, a list of three of them, for the axes x, y and "
    "z, or a mapping of the faces x-, x+, x, y-, y+, y, z-, z+, z, all"
)
BOX = "a list of three ranges [first, end] of cells, along x, y and z, end not included, or null"
STEPS = (
    "a list of the first and the last step, whole numbers from 0, the last not before the first, "
    "or null"
)
VECTOR = "a list of three numbers, along x, y and z"
OMEGA = "auto or a number greater than 0 and less than 2"
FIELDS = "a list of different names of fields, such as density and velocity"
WITHOUT = "with sources.carry_over, which is for the totals of a program without it"
ONLY_STAGGERED = "is for the staggered grid; write fluid.grid: staggered"
FOR_BODIES = (
    "hybrid is for bodies; a rank of a fluid computes on one device: take gpu, or a list with "
    "one backend a rank, such as [gpu, cpu], whose planes are shared out by speed"
)
OF_CHANGE = "criterion is residual"
CARRY = "sources: {carry_over: true}\n"


def completed(text):
    """Return text followed by the required sections that it lacks; its lines keep their numbers."""
    missing = (
        part
        for part in (HEAD, GRID, TIME)
        if not any(line.startswith(part[:5]) for line in text.split("\n"))
    )
    return text + ("" if text.endswith("\n") else "\n") + "".join(missing)


def config_of(text, *overrides):
    return loads(completed(text), "x.yaml", overrides)


def faults_of(text, *overrides):
    """Return the lines of the message that a faulty text ends in."""
    with pytest.raises(ConfigError) as caught:
        config_of(text, *overrides)
    return str(caught.value).split("\n")


def event(text):
    return f"sources: {{events: [{{{text}}}]}}"


# --- what is good ---------------------------------------------------------------------------------
