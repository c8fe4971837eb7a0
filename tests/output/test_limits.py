"""Warnings of diagnostics beyond their limits."""

import math

import pytest

from hybrid_nbody.output.limits import Limits
from hybrid_nbody.simulation.model import Quantity

QUANTITIES = {
    "leak": Quantity("1", "what is lost", limit=0.01, advice="mend it"),
    "energy": Quantity("energy", "sum"),
    "momentum": Quantity("momentum", "sum", 3),
}
WARNING = "warning: leak is -0.5, beyond 0.01: mend it"


@pytest.mark.parametrize("value", [0.01, -0.01, 0.0, math.nan])
def test_what_is_within_its_limit_is_not_mentioned(value):
    limits = Limits(QUANTITIES)
    values = {"leak": value, "energy": 1e300, "momentum": (1.0, 2.0, 3.0)}
    assert limits.new_warnings(values) == limits.warnings(values) == []


def test_a_value_beyond_its_limit_is_new_once():
    limits = Limits(QUANTITIES)
    assert limits.new_warnings({}) == []
    assert limits.new_warnings({"leak": -0.5}) == [WARNING]
    assert limits.new_warnings({"leak": -0.6}) == []
    assert limits.warnings({"leak": -0.5}) == [WARNING]
