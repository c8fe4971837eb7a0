"""What a rehearsal finds is what a run calls: no step has to compile anything."""

from types import SimpleNamespace

import pytest
from support import configs
from support.bodies import make_backend
from support.campaigns import OBSTACLE
from support.fluids import make_halo
from support.jobs import FLUID

from hybrid_nbody.backends.cells.cpu import Program
from hybrid_nbody.backends.cells.python_text import python_source
from hybrid_nbody.backends.cells.translation import translated
from hybrid_nbody.fluid.build import event_of
from hybrid_nbody.fluid.kernels.cells import MODULES
from hybrid_nbody.fluid.on_faces import Staggered

NUMBA = "from numba import njit, prange\n"
PLAIN_PYTHON = "prange = range\ndef njit(**options):\n    return lambda function: function\n"


class Interpreted(Program):
    """The functions of cells, uncompiled; notes which are called."""

    def __init__(self):
        self.functions = translated(MODULES)
        source = python_source(self.functions, "f4")
        assert NUMBA in source
        found = {}
        exec(source.replace(NUMBA, PLAIN_PYTHON), found)
        self.loops = SimpleNamespace(**found)
        self.faster = None
        self.number = found["real"]
        self.names = set()

    def _call(self, name, region, parity, arguments):
        self.names.add(name)
        return super()._call(name, region, parity, arguments)


class InterpretedFluid(Staggered):
    """A fluid whose program is not compiled."""

    def __init__(self, config):
        super().__init__(config)
        self.interpreted = Interpreted()

    def program(self, device):
        return self.interpreted


@pytest.mark.parametrize("text", [FLUID, OBSTACLE], ids=["empty box", "obstacle"])
def test_a_run_calls_what_its_rehearsal_called(alone, text):
    smaller = text.replace("[12, 10, 14]", "[4, 4, 6]").replace("[6, ", "[2, ").replace("7]", "2]")
    config = configs.loads(smaller, "test.yaml")
    backend = make_backend("cpu", threads=1)
    scheme = InterpretedFluid(config)
    rehearsed = scheme._rehearsed(backend, mixed=False)
    assert not scheme.interpreted.names
    halo = make_halo(backend, alone, config.grid.cells[2], scheme.periodic, None)
    events = [event_of(event, config.grid.centre) for event in config.sources.events]
    model = scheme.model(backend, halo, events, mixed=False)
    model.advance(2)
    model.diagnostics()
    for field in model.fields().values():
        field.host(0, 1)
    assert len(scheme.interpreted.names) > 25
    assert scheme.interpreted.names <= set(rehearsed)
