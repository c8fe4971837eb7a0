"""How Numba compiles: what is called by compiled code alone is no machine code of its own."""

from support.command import python

START = """
import gc

import numpy as np
from hybrid_nbody.backends.cpu import CpuBackend

CpuBackend(1)
CpuBackend(1)
from numba import njit, prange
from numba.core.cpu import CPUContext
from numba.core.errors import TypingError
from hybrid_nbody.backends.compilation import LinkedLibrary
"""

ONCE = """
emitted = []
translate = LinkedLibrary._finalize_final_module


def note(library):
    emitted.append(library.name)
    translate(library)


LinkedLibrary._finalize_final_module = note
entries = []
make_entry = CPUContext.create_cpython_wrapper


def note_entry(context, library, function, *arguments, **options):
    entries.append(function.qualname.rpartition(".")[2])
    make_entry(context, library, function, *arguments, **options)


CPUContext.create_cpython_wrapper = note_entry


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def after(x):
    return x + 1


@njit(parallel=True)
def count(numbers):
    for i in prange(numbers.size):
        numbers[i] = after(numbers[i])


numbers = np.arange(8.0)
count(numbers)
assert numbers.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
assert emitted == ["count"], emitted
assert entries == ["count"], entries
assert "define" in after.inspect_llvm(after.signatures[0])
"""


def test_only_what_python_calls_becomes_machine_code():
    python(START + ONCE)


EXCEPTION = """
@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def root(x):
    if x < 0:
        raise ValueError("below zero", x)
    return x**0.5


@njit
def twice(x):
    return 2 * root(x)


assert twice(9.0) == 6
try:
    twice(-1.0)
except ValueError as error:
    assert error.args == ("below zero", -1.0)
else:
    raise AssertionError("no exception")
"""


def test_exceptions_of_linked_functions_reach_python():
    python(START + EXCEPTION)


GARBAGE = """
collected = []
gc.callbacks.append(lambda phase, info: collected.append(phase))
gc.set_threshold(1)
[[] for _ in range(100)]
assert collected, "this test would not notice a collection"
add = njit(lambda x: x + 1)
collected.clear()
add.compile("float64(float64)")
assert len(collected) < 1000, len(collected)
gc.set_threshold(700)
assert gc.isenabled()
try:
    njit(lambda x: x.nothing)(1)
except TypingError:
    assert gc.isenabled()
gc.disable()
add(1)
assert not gc.isenabled()
"""


def test_no_garbage_is_collected_during_a_compilation():
    python(START + GARBAGE)


EARLIER = """
from numba import njit


@njit
def smaller(a, b):
    if a < 0:
        raise ValueError("below zero", a)
    return min(a, b)


assert smaller(1.0, 2.0) == 1
"""

LATER = """
@njit
def twice(a, b):
    return 2 * smaller(a, b) + min(a, b)


assert twice(1.0, 2.0) == 3
assert smaller(2, 1) == 1
try:
    twice(-1.0, 2.0)
except ValueError as error:
    assert error.args == ("below zero", -1.0)
else:
    raise AssertionError("no exception")
"""


def test_functions_that_a_user_compiled_before_are_linked():
    python(EARLIER + START + LATER)


KEPT = """
from numba import njit


@njit(cache=True)
def after(x):
    return x + 1
"""

LOADED = """
import sys, os
sys.path.insert(0, os.environ["KEPT"])
if sys.argv[1] == "ours":
    from hybrid_nbody.backends.cpu import CpuBackend

    CpuBackend(1)
from kept import after
from numba import njit

assert after(1.0) == 2.0
print(sum(after.stats.cache_hits.values()), "numba.typed.dictimpl" in sys.modules)


@njit
def twice(x):
    return after(after(x))


assert twice(1.0) == 3.0
"""


def test_code_from_the_cache_is_called_and_linked_with_no_registry_loaded(tmp_path):
    (tmp_path / "kept.py").write_text(KEPT)
    folders = {"KEPT": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert python(LOADED, "ours", **folders).split() == ["0", "True"]
    assert python(LOADED, "ours", **folders).split() == ["1", "False"]


def test_the_cache_of_a_user_is_that_of_both_ways_to_compile(tmp_path):
    (tmp_path / "kept.py").write_text(KEPT)
    folders = {"KEPT": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    hits = [python(LOADED, way, **folders).split()[0] for way in ("ours", "plain") * 2]
    assert hits == ["0", "0", "1", "1"]


NAMED = """
import os, pickle, sys
from pathlib import Path

sys.path.insert(0, os.environ["KEPT"])
from hybrid_nbody.backends.cpu import CpuBackend

CpuBackend(1)
renamed = []
rename = os.replace


def note(old, new):
    rename(old, new)
    renamed.append(Path(new))
    for index in Path(new).parent.glob("*.nbi"):
        with index.open("rb") as file:
            pickle.load(file)  # the version
            _, names = pickle.loads(file.read())
        assert names and all((index.parent / name).exists() for name in names.values()), names


os.replace = note
from kept import after

assert after(1) == 2 and after(1.0) == 2.0
print(*(path.suffix for path in renamed))
"""


def test_an_index_names_no_code_that_is_not_there(tmp_path):
    (tmp_path / "kept.py").write_text(KEPT)
    folders = {"KEPT": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert python(NAMED, **folders).split() == [".nbc", ".nbi"] * 2


INTERRUPTED = """
import signal
from numba import njit
from hybrid_nbody.backends.cpu import CpuBackend

CpuBackend(1)
from hybrid_nbody.backends.compilation import LinkedLibrary

signal.signal(signal.SIGINT, signal.default_int_handler)  # also for tests in the background
# Numba notes the machine code, which LLVM brings, in this attribute first.
LinkedLibrary._compiled = property(
    lambda library: True, lambda library, value: value and signal.raise_signal(signal.SIGINT)
)


@njit(cache=True)
def after(x):
    return x + 1


try:
    after(1.0)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_ctrl_c_within_the_compiler_interrupts(tmp_path):
    (tmp_path / "script.py").write_text(INTERRUPTED)
    run = f"import runpy; runpy.run_path({str(tmp_path / 'script.py')!r})"
    assert python(run, NUMBA_CACHE_DIR=str(tmp_path / "cache")).split() == ["interrupted"]
