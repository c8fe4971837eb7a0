"""The code that the CPU's loops over pairs are compiled to: what their speed rests on, and would be
lost in silence.

The loops over sources for a block of targets use the widest vectors of the machine as LLVM sees it,
keep to vectors, and where the processor can estimate 1 / sqrt(x) they neither divide nor take
roots.
"""

import re
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from support.bodies import make_backend, make_gravity
from support.command import python

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels.cpu.layout import (
    Law,
    MovingSources,
    MovingTargets,
    PackedSources,
    Targets,
)

TYPES = {"single": ("f4", "f4"), "mixed": ("f8", "f4"), "double": ("f8", "f8")}
DIVISION_OR_ROOT = r"v?(div|sqrt)[ps][sd]"
SCALAR_FLOAT = r"v?(add|sub|mul|div|sqrt|rsqrt14|f[n]?m\w+)(ss|sd)"


@cache
def compiled(kernel, precision):
    """Return the assembly of a kernel compiled afresh: Numba's cache does not show it."""
    import numba

    from hybrid_nbody.nbody.kernels.cpu import pair_force as cpu_loops

    block = getattr(cpu_loops, kernel)
    options = {name: block.targetoptions[name] for name in ("fastmath", "_nrt")}
    fresh = numba.njit(error_model="numpy", **options)(block.py_func)
    stored, working = TYPES[precision]
    fresh(*arguments(kernel, stored, np.dtype(working).type))
    return next(iter(fresh.inspect_asm().values()))


def arguments(kernel, stored, working):
    """Return arguments of a kernel for two bodies."""
    rows = np.arange(6.0).reshape(2, 3)
    source_index = np.arange(2, dtype="i4")
    origin = np.zeros((1, 3))
    offset = np.zeros((3, 2), stored)
    packed = (np.array([0, 2], "i4"), origin, offset, np.ones(2, working))
    law = Law(1.0, 1.0, 1.0, 1.0, 1.0, working(1), equal_masses=False, excludes_self=False)
    if kernel == "block_jerks":
        targets = MovingTargets(rows, source_index, rows)
        sources = MovingSources(*packed, origin, offset)
        return 0, targets, sources, law, np.zeros((2, 3)), np.zeros((2, 3))
    result = np.zeros(2) if kernel == "block_potentials" else np.zeros((2, 3))
    return 0, Targets(rows, source_index), PackedSources(*packed), law, result


def loops_over_sources(assembly):
    """Return the instructions of every loop over sources: from a label to the jump back to it.

    They are the smallest loops that look for 1 / sqrt(r^2); loops that load, add and store do not.
    Where registers are few, one may hold a loop over the targets of a block.
    """
    lines = assembly.splitlines()
    labels = {line[:-1]: number for number, line in enumerate(lines) if re.match(r"\.L\w+:$", line)}
    loops = []
    for end, line in enumerate(lines):
        start = labels.get(line.split()[-1], end) if re.match(r"\tj", line) else end
        if any(re.match(r"\tv?r?sqrt", inside) for inside in lines[start:end]):
            loops.append((start, end))
    smallest = [loop for loop in loops if not any(_holds(loop, other) for other in loops)]
    return [[line.strip() for line in lines[start : end + 1]] for start, end in smallest]


def _holds(loop, other):
    return loop != other and loop[0] <= other[0] and other[1] <= loop[1]


def widest_vectors():
    """Return the name of the widest vector registers, and whether 1 / sqrt(x) can be estimated in
    all types.
    """
    from numba.core.registry import cpu_target

    features = cpu_target.target_context.codegen().magic_tuple()[2]
    if "+avx512f" in features:
        return "zmm", True
    return ("ymm" if "+avx" in features else "xmm"), False


@pytest.fixture(scope="module", autouse=True)
def started():
    """Numba as a run starts it, on a processor whose assembly is known here."""
    import platform

    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"the assembly of {platform.machine()} is not known here")
    make_backend("cpu")


LOOPS = {"block_accelerations": 3, "block_potentials": 1, "block_jerks": 1}
"""Loops over pairs of each kernel."""


@pytest.mark.parametrize(
    ("kernel", "precision"),
    [
        ("block_accelerations", "mixed"),
        *((kernel, precision) for kernel in LOOPS for precision in ("single", "double")),
    ],
)
def test_loops_over_pairs_are_vector_code(kernel, precision):
    loops = loops_over_sources(compiled(kernel, precision))
    vectors, estimates = widest_vectors()
    assert len(loops) == LOOPS[kernel]
    for body in loops:
        arithmetic = [
            line for line in body if re.match(r"v?(add|sub|mul|f[n]?m(add|sub)\w*)p[sd]\s", line)
        ]
        assert all(f"%{vectors}" in line for line in arithmetic)
        assert [line for line in body if re.match(SCALAR_FLOAT, line)] == []
        if estimates:
            assert [line for line in body if re.match(DIVISION_OR_ROOT, line)] == []
            assert any(line.startswith("vrsqrt14") for line in body)


def test_no_register_is_spilled_in_the_loop_of_single_precision():
    """Sums that leave the registers would cost as much as the arithmetic."""
    vectors, _ = widest_vectors()
    if vectors != "zmm":
        pytest.skip("fewer registers than the vectors of a block")
    loops = loops_over_sources(compiled("block_accelerations", "single"))
    assert len(loops) == 3
    for body in loops:
        assert [line for line in body if re.match(r"vmov\w+\s+%zmm\d+, .*\(", line)] == []


@pytest.mark.parametrize("kernel", LOOPS)
def test_no_reference_to_an_array_is_counted(kernel):
    """Atomic operations would take longer than the forces of a few bodies."""
    assert "NRT_incref" not in compiled(kernel, "double")


@pytest.mark.parametrize("name", ["hermite", "pair_force", "steps", "sums"])
def test_no_function_of_a_step_counts_references(name):
    from numba.core.dispatcher import Dispatcher

    module = import_module(f"hybrid_nbody.nbody.kernels.cpu.{name}")
    functions = [value for value in vars(module).values() if isinstance(value, Dispatcher)]
    counted = [each for each in functions if each.targetoptions.get("_nrt", True)]
    inlined = [each for each in counted if each.targetoptions.get("inline") == "always"]
    assert len(functions) > len(counted)
    assert [each.__name__ for each in counted] == [each.__name__ for each in inlined]


COMPARE = """
import sys

import numpy as np
from support.bodies import SETS, make_backend, make_gravity
from hybrid_nbody.nbody.kernels import reference

backend = make_backend("cpu")
bodies = SETS["plummer"]()
targets = np.arange(0, 4096, 97)
true = reference.accelerations(bodies.position, bodies.mass, 0.01, targets=targets)
gravity = make_gravity(backend, bodies, sys.argv[1], 0.01)
error = np.linalg.norm(gravity.state.acceleration[targets] - true, axis=1)
assert np.percentile(error / np.sqrt(np.mean(np.sum(true**2, axis=1))), 99) < float(sys.argv[2])
"""


@pytest.mark.parametrize(
    ("cpu", "precision", "bound"), [("haswell", "single", 1e-5), ("x86-64", "double", 1e-12)]
)
def test_processors_without_avx512_sum_as_accurately(cpu, precision, bound, tmp_path):
    """Compiled for an older processor, which this one can stand in for."""
    setting = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    python(COMPARE, precision, str(bound), **setting)


SUMS = """
import numpy as np
from support.bodies import make_backend, make_gravity
from hybrid_nbody.nbody.forces.direct import DirectForce
from hybrid_nbody.nbody.initial_conditions import plummer

# the other kernel takes as long to compile
DirectForce.accelerations = lambda self, timer: self.kernels.pack(self.state)
bodies = plummer(600, seed=3)
gravity = make_gravity(make_backend("cpu"), bodies, "double", 0.01)
jerk = np.zeros((600, 3))
gravity.kernels.accelerations_and_jerks(gravity.state, bodies.velocity, jerk)
print(gravity.state.acceleration.tobytes().hex(), jerk.tobytes().hex())
"""


def test_the_process_that_compiles_sums_the_same_bits_as_those_that_load_its_code(tmp_path):
    """It links loops in the midst of their compilation; where either of two products could be
    fused, they differed.
    """
    compiling, loading = (python(SUMS, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert compiling == loading


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("softening", [0.0, 0.1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_reaches_every_body(precision, softening, value):
    """The guard looks for it; flags that let the compiler assume finite numbers would lose it."""
    bodies = plummer(100, seed=1)
    gravity = make_gravity(make_backend("cpu"), bodies, precision, softening)
    gravity.state.position[7, 1] = value
    gravity.kernels.pack(gravity.state)
    gravity.kernels.accelerations(gravity.state)
    assert not np.isfinite(gravity.state.acceleration).all(axis=1).any()


@pytest.mark.parametrize("precision", TYPES)
def test_two_bodies_at_one_place_without_softening_are_not_passed_over(precision):
    bodies = Bodies(np.array([[1.0, 2, 3], [1, 2, 3], [4, 4, 4]]), np.zeros((3, 3)), np.ones(3))
    gravity = make_gravity(make_backend("cpu"), bodies, precision, softening=0.0)
    finite = np.isfinite(gravity.state.acceleration).all(axis=1)
    np.testing.assert_array_equal(finite, [False, False, True])


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("softening", [0.0, 0.1])
def test_equal_masses_are_summed_as_accurately_as_unequal_ones(precision, softening):
    """Equal masses are left out of the loop; a mass that differs in its last digits brings them
    back.
    """
    bodies = plummer(300, seed=2)
    almost = Bodies(
        bodies.position, bodies.velocity, bodies.mass * (1 + 1e-5 * (np.arange(300) == 5))
    )
    sums = [
        make_gravity(make_backend("cpu"), b, precision, softening).state.acceleration
        for b in (bodies, almost)
    ]
    np.testing.assert_allclose(*sums, rtol=0, atol=1e-4 * np.abs(sums[0]).max())
