"""Diagnostics that count since the row before: a row can be made again."""

import pytest
from support.configs import loads
from support.ranks import alone

from hybrid_nbody.running.models import MODELS

__all__ = ["alone"]

CONFIG = """\
model: fluid
grid: {{cells: [12, 8, 8]}}
fluid: {{grid: {grid}, viscosity: 1e-3}}
solver: {{tolerance: 1e-3}}
sources:
  events:
    - {{step: 0, velocity: [0.5, 0, 0.7], sphere: {{centre: [6, 3, 4], radius: 2}}}}
time: {{dt: 0.05, steps: 8}}
compute: {{backend: cpu, threads: 1}}
"""


def at_rest(ranks, grid):
    """Return a fluid before its first step."""
    builder = MODELS["fluid"].builder(loads(CONFIG.format(grid=grid), "fluid.yaml"), ranks)
    return builder.fresh(builder.initial()).model


def made_from(model, ranks, grid):
    """Return a fluid that is restored from the state of another one."""
    rows = {name: field.host(0, field.rows) for name, field in model.fields().items()}
    other = at_rest(ranks, grid)
    other.advance(1)  # whatever it has counted
    other.restore(rows.__getitem__, model.scalars())
    return other


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_row_is_made_again_from_a_checkpoint_of_its_step(alone, grid):
    model = at_rest(alone, grid)
    model.advance(2)
    model.diagnostics()
    model.advance(3)
    saved_before = made_from(model, alone, grid)
    expected = model.diagnostics()
    saved_after = made_from(model, alone, grid)
    for other in (model, saved_before, saved_after):
        assert other.diagnostics() == expected


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_row_counts_since_the_one_before(alone, grid):
    model, whole = at_rest(alone, grid), at_rest(alone, grid)
    for one in (model, whole):
        one.advance(3)
    before = whole.scalars()["solves"]
    model.diagnostics()
    other = made_from(model, alone, grid)
    for one in (model, other, whole):
        one.advance(1)
    solves = whole.scalars()["solves"] - before
    assert solves == model.scalars()["solves"] == other.scalars()["solves"] > 0
    assert model.diagnostics() == other.diagnostics()
