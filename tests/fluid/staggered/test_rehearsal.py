"""What a rehearsal finds is what a run calls: no step has to compile anything."""

from types import SimpleNamespace

import pytest
from support import campaigns, configs
from support.bodies import make_backend
from support.fluids import make_halo
from support.jobs import FLUID

from hybrid_nbody.backends.cells.cpu import Program
from hybrid_nbody.backends.cells.python_text import python_source
from hybrid_nbody.backends.cells.translation import translated
from hybrid_nbody.fluid.build import event_of
from hybrid_nbody.fluid.kernels.cells import MODULES
from hybrid_nbody.fluid.on_faces import FEW_ITERATIONS, Staggered

EMPTY = FLUID + "fluid: {grid: staggered}\n"
CHANNEL = FLUID + (
    "fluid: {grid: staggered, boundary: {all: free-slip, z-: {inflow: [0, 0, 1]}, z+: outflow}}\n"
)
"""Of several ranks the last one alone has the faces of the outlet."""

OBSTACLE = campaigns.OBSTACLE.replace("fluid:\n", "fluid:\n  grid: staggered\n")

COMPILED = """from numba import njit
from numpy import float32 as real, uint64 as at

from hybrid_nbody.backends.threads import on_threads
"""
INTERPRETED = """
from numpy import float32 as real, uint64 as at

def njit(**options):
    return lambda function: function

def on_threads(body, first, last, given):
    body(first, last, *given)
"""


class Interpreted(Program):
    """The functions of cells, uncompiled; notes which are called."""

    def __init__(self):
        self.functions = translated(MODULES)
        source = python_source(self.functions, "f4")
        assert COMPILED in source
        found = {}
        exec(source.replace(COMPILED, INTERPRETED), found)
        self.loops = SimpleNamespace(**found)
        self.faster = None
        self.number = found["real"]
        self.names = set()

    def _loop_of(self, name, width):
        self.names.add(name)
        return super()._loop_of(name, width)


class InterpretedFluid(Staggered):
    """A fluid whose program is not compiled."""

    def __init__(self, config):
        super().__init__(config)
        self.interpreted = Interpreted()

    def program(self, device):
        return self.interpreted


@pytest.mark.mpi
@pytest.mark.parametrize("method", ["multigrid", "conjugate-gradients", "red-black"])
@pytest.mark.parametrize(
    "text", [EMPTY, CHANNEL, OBSTACLE], ids=["empty box", "channel", "obstacle"]
)
def test_a_run_calls_what_its_rehearsal_called(communicator, text, method):
    solver = f"solver: {{method: {method}, max_iterations: 2}}\n"
    text = text.replace("solver: {max_iterations: 5}\n", "") + solver
    smaller = text.replace("[12, 10, 14]", "[4, 4, 6]").replace("[6, ", "[2, ").replace("7]", "2]")
    config = configs.loads(smaller, "test.yaml")
    backend = make_backend("cpu", threads=1)
    scheme = InterpretedFluid(config)
    rehearsed = scheme._rehearsed(backend, False, FEW_ITERATIONS)
    assert not scheme.interpreted.names
    halo = make_halo(backend, communicator, config.grid.cells[2], scheme.periodic)
    events = [event_of(event, config.grid.centre) for event in config.sources.events]
    model = scheme.model(backend, halo, events, mixed=False)
    model.advance(2)
    model.diagnostics()
    for field in model.fields().values():
        field.host(0, 1)
    assert len(scheme.interpreted.names) >= 18
    assert scheme.interpreted.names <= set(rehearsed)
