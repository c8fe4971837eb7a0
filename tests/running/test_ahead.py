"""Imports that are made while MPI starts."""

import os

import pytest
from support.command import ROOT, python

PLUMMER = os.path.join(ROOT, "input", "plummer.yaml")

BESIDE_MPI = """
import sys
from hybrid_nbody.parallel.communicator import start_mpi
from hybrid_nbody.running.ahead import importing_ahead

ranks = start_mpi(importing_ahead())
assert "hybrid_nbody.running.start" in sys.modules
from mpi4py import MPI

assert ranks.size == 1
for every in (MPI.COMM_WORLD, MPI.COMM_SELF):
    assert every.Get_errhandler() == MPI.ERRORS_RETURN
try:
    MPI.COMM_WORLD.send(1, dest=5)
except MPI.Exception as error:
    print("raised", error.Get_error_class() == MPI.ERR_RANK)
"""

FAILING = """
import sys, threading
threading.excepthook = lambda arguments: print("told", arguments)
from hybrid_nbody.running import ahead

sys.modules["hybrid_nbody.running.start"] = None
with ahead.importing_ahead():
    print("block")
print("after")
"""


def test_mpi_starts_beside_the_imports_and_its_errors_are_raised():
    assert "raised True" in python(BESIDE_MPI)


def test_an_import_that_fails_is_left_to_where_it_is_used():
    assert python(FAILING).split() == ["block", "after"]


WITH_A_GPU = """
import gc, sys
from hybrid_nbody.running.ahead import collect_garbage, importing_ahead

class Waking:
    made = 0
    def make_context(self):
        self.made += 1
    def wait(self):
        pass

waking = Waking()
with importing_ahead(sys.argv[1], sys.argv[2:], waking):
    assert not gc.isenabled()
collect_garbage()
assert gc.isenabled()
print(waking.made)
"""


@pytest.mark.parametrize(
    ("file", "overrides", "contexts"),
    [
        (PLUMMER, [], "1"),
        (PLUMMER, ["compute.backend=hybrid"], "1"),
        (PLUMMER, ["compute.backend=cpu"], "0"),
        ("none.yaml", [], "0"),
    ],
)
def test_a_context_is_made_for_a_run_that_takes_a_gpu(file, overrides, contexts):
    assert python(WITH_A_GPU, str(file), *overrides).split() == [contexts]


FIRST_MODEL = """
import gc, weakref
from hybrid_nbody.running.ahead import collect_garbage, free_model

class Model:
    pass

gc.disable()
model = Model()
model.part = {"of": model}
held = weakref.ref(model)
collect_garbage()
del model
gc.collect()
print(held() is not None)
free_model()
print(held() is not None)
"""


def test_a_first_model_is_freed_though_it_is_not_looked_at_otherwise():
    assert python(FIRST_MODEL).split() == ["True", "False"]


CONTEXT = """
import ctypes
from hybrid_nbody.backends.waking import WakingGpu

waking = WakingGpu()
waking.wait()
waking.make_context()
waking.wait()
flags, active = ctypes.c_uint(), ctypes.c_int()
driver = ctypes.CDLL("libcuda.so.1")
assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
print("active", active.value, "of", waking._gpus)
"""


@pytest.mark.gpu
def test_the_only_gpu_has_a_context():
    active, gpus = python(CONTEXT).split()[1::2]
    assert active == str(int(gpus == "1"))
