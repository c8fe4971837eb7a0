"""How the fluid's builder measures the speed of ranks."""

from types import SimpleNamespace

import pytest
from support import configs

from hybrid_nbody.fluid import build as fluid
from hybrid_nbody.fluid.grid import Boundary

CONFIG = """
model: fluid
grid: {cells: 8}
fluid: {boundary: [free-slip, no-slip, periodic], dtype: float64}
time: {dt: 0.1, steps: 1}
"""


@pytest.mark.parametrize(
    ("kinds", "mixed"), [(("gpu", "cpu"), True), (("gpu", "gpu"), False), (("cpu",), False)]
)
def test_ranks_of_several_kinds_are_measured_as_they_run(monkeypatch, alone, kinds, mixed):
    def measured(backend, boundary, dtype, communicator, several_kinds):
        assert (backend, communicator, several_kinds) == ("a device", alone, mixed)
        assert boundary == Boundary.of_axes(("free-slip", "no-slip", "periodic"))
        assert dtype == "f8"
        return [3.0]

    monkeypatch.setattr(fluid, "measured_weights", measured)
    placement = SimpleNamespace(backend="a device", backends=kinds)
    builder = fluid.FluidBuilder(configs.loads(CONFIG, "test.yaml"), alone)
    assert builder.speeds(SimpleNamespace(placement=placement), [1.0]) == [3.0]
