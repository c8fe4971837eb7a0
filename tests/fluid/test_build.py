"""How the fluid's builder measures the speed of ranks."""

from types import SimpleNamespace

import pytest
from support import configs
from support.paper import MODEL, PaperGpu

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.errors import InputError
from hybrid_nbody.fluid import build as fluid
from hybrid_nbody.fluid import on_centres
from hybrid_nbody.fluid.grid import Boundary

CONFIG = """
model: fluid
grid: {cells: 8}
fluid: {grid: collocated, boundary: [free-slip, no-slip, periodic], dtype: float64}
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

    monkeypatch.setattr(on_centres, "measured_weights", measured)
    placement = SimpleNamespace(backend="a device", backends=kinds)
    builder = fluid.FluidBuilder(configs.loads(CONFIG, "test.yaml"), alone)
    assert builder.speeds(SimpleNamespace(placement=placement), [1.0]) == [3.0]


def test_too_little_memory_speaks_of_cells(monkeypatch, alone):
    """Of a host before it is taken; of a GPU when it is refused."""
    builder = fluid.FluidBuilder(configs.loads(CONFIG, "test.yaml"), alone)
    arrays = 10 * 8 * 8 * 10 * 8  # bytes of 10 arrays, halo planes included
    host = SimpleNamespace(shares_host_memory=True, free_memory=lambda: arrays - 1)
    with pytest.raises(
        InputError, match=r"grid.cells: .* for 8 x 8 x 8 cells \(about .*fewer cells"
    ):
        builder._check_memory(host)
    host.free_memory = lambda: arrays
    builder._check_memory(host)

    def greedy(*_):
        raise MemoryError("Out of memory allocating 9 bytes (allocated so far: 0 bytes).")

    monkeypatch.setattr(fluid, "HaloExchange", lambda *_: None)
    monkeypatch.setattr(fluid.FluidBuilder, "_model", greedy)
    gpu = SimpleNamespace(backend=SimpleNamespace(shares_host_memory=False, free_memory=lambda: 0))
    with pytest.raises(InputError) as caught:
        builder._connect(gpu, None, None, [])
    assert str(caught.value) == (
        "grid.cells: not enough memory for 8 x 8 x 8 cells (Out of memory allocating 9 bytes "
        "(allocated so far: 0 bytes)); take fewer cells, or more nodes or GPUs"
    )


def test_only_a_cpu_relaxes_in_lexicographic_order(alone):
    config = CONFIG.replace("no-slip, periodic", "no-slip, no-slip")
    asked = configs.loads(config + "solver: {method: lexicographic}\n", "test.yaml")
    builder = fluid.FluidBuilder(asked, alone)
    builder._check_lexicographic_backend(CpuBackend(1))
    gpu = PaperGpu(lambda *_: 0.0)
    with pytest.raises(InputError, match=f"lexicographic runs on a CPU alone, .* is on {MODEL};"):
        builder._check_lexicographic_backend(gpu)
    red_black = fluid.FluidBuilder(configs.loads(config, "test.yaml"), alone)
    red_black._check_lexicographic_backend(gpu)
