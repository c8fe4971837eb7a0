"""The machine code that the sums of gravity are compiled to: what their speed rests on, and would
be lost in silence.

An interaction costs the instructions that its arithmetic needs
(`benchmarks.gravity.limits.INSTRUCTIONS`), and its share of what a lane does once for a source, or
for a run of them, and all its targets: fetching, and adding up.
"""

from functools import cache

import pytest
from support.nvrtc import optimized_cubin, words_for
from support.sass import FLOAT64, LOCAL_MEMORY, ROOT, instructions_of, pair_loops

from hybrid_nbody.backends.launch import FLUSH_DENORMALS
from hybrid_nbody.benchmarks.gravity.limits import (
    ACCELERATIONS,
    EQUAL,
    INSTRUCTIONS,
    JERKS,
    POTENTIAL,
)
from hybrid_nbody.nbody.kernels.gpu import kernels as gpu
from hybrid_nbody.nbody.kernels.gpu import symmetric
from hybrid_nbody.nbody.kernels.gpu.layout import DEFAULTS, Layout, Tuning

ARCHITECTURE = 90
UNFLUSHED = tuple(option for option in gpu.OPTIONS if option not in FLUSH_DENORMALS)
FEW_REGISTERS = (*gpu.OPTIONS, "--maxrregcount=64")
NUMBER = 131072

NAMES = {
    "accelerations": ACCELERATIONS,
    "accelerations_of_equal_masses": EQUAL,
    "potentials": POTENTIAL,
    "accelerations_and_jerks": JERKS,
}

# Instructions beside the arithmetic, over the targets of a lane: a little above those of NVRTC 12.9
# and 13.5, which are 2.6 in single precision, 3.5 in mixed, whose sources are twice as large, and
# 7.2 in double.
OVERHEAD = {"single": 2.8, "mixed": 4.0, "double": 7.5}
# More where jerks of up to two targets are summed, in a loop over a whole run: what is done once a
# run is part of it.
OVERHEAD_OF_A_RUN = 0.4
# Once a run: its sums, added to those of the piece.
OVERHEAD_FLOAT64 = 0.25

TUNINGS = [
    (precision, targets)
    for precision, t in DEFAULTS.items()
    for targets in sorted({k for _, k in t.targets})
]
TARGETS_OF_SINGLE = dict(TUNINGS)["single"]
"""The most of a lane."""
CASES = [(*tuning, kernel) for tuning in TUNINGS for kernel in NAMES]


def code_of(precision, targets, replaced=("", ""), options=gpu.OPTIONS):
    """Return the machine code of all kernels."""
    tuning = Tuning(0, ((NUMBER, targets),), DEFAULTS[precision].jerk_targets)
    macros = gpu.defines(precision, Layout.of(NUMBER), tuning, NUMBER, NUMBER)
    text = gpu.SOURCE.read_text()
    assert replaced[0] in text
    return optimized_cubin(text.replace(*replaced), words_for(macros, options), ARCHITECTURE)


@cache
def loops(*choices, **changes):
    """Return the loop over sources of each kernel; parameters as in `code_of`."""
    return pair_loops(code_of(*choices, **changes))


def least(precision, kernel):
    """Return the instructions of the arithmetic; in double, the first guess of the root is one
    more.
    """
    return INSTRUCTIONS[precision][NAMES[kernel]] + (precision == "double")


def bound(precision, targets, kernel):
    """Return how many instructions an interaction may cost."""
    jerks = NAMES[kernel] == JERKS
    targets = min(targets, DEFAULTS[precision].jerk_targets) if jerks else targets
    overhead = OVERHEAD[precision] + OVERHEAD_OF_A_RUN * (jerks and targets <= 2)
    return least(precision, kernel) + overhead / targets


@pytest.mark.parametrize(("precision", "targets", "kernel"), CASES)
def test_instructions_of_an_interaction(precision, targets, kernel):
    """Below the least, the ceilings of ``bench limits`` would be wrong."""
    found = loops(precision, targets)[kernel].per_interaction()
    assert least(precision, kernel) <= found <= bound(precision, targets, kernel)


@pytest.mark.parametrize(("precision", "targets", "kernel"), CASES)
def test_instructions_of_float64(precision, targets, kernel):
    """None where an interaction is computed in float32."""
    found = loops(precision, targets)[kernel].per_interaction(FLOAT64)
    expected = INSTRUCTIONS["double"][NAMES[kernel]] if precision == "double" else 0
    assert expected <= found <= expected + OVERHEAD_FLOAT64 * (precision == "double")


@pytest.mark.parametrize(("precision", "targets", "kernel"), CASES)
def test_sums_stay_in_registers(precision, targets, kernel):
    assert loops(precision, targets)[kernel].count(LOCAL_MEMORY) == 0


@pytest.mark.parametrize(
    "kernel", ["combine", "combine_accelerations_and_jerks", "combine_move_and_pack"]
)
def test_all_parts_are_loaded_before_the_first_is_added(kernel):
    """A thread waits for the memory once."""
    code = instructions_of(code_of("single", TARGETS_OF_SINGLE), kernel)
    first = next(index for index, found in enumerate(code) if found.startswith("DADD"))
    loads = sum(found.startswith("LDG") for found in code[:first])
    assert loads >= Layout.of(NUMBER).parts


# ---- Each pair once ------------------------------------------------------------------------------

# Of a pair, which counts as two interactions: d 3, s 3, y 1 and its cube 2, the weights of both
# bodies 2 (none where masses are equal), and the sums 6, or 2 of potentials. Jerks take 3 more for
# the velocities, 5 for -3 (d . v) y^2, 3 for v - 3 (d . v) y^2 d and 6 for the sums.
PAIR = {
    "accelerations": 17,
    "accelerations_of_equal_masses": 15,
    "potentials": 9,
    "accelerations_and_jerks": 34,
}
# Fetching a source, and handing its sums on, over the targets of a lane; the loop's own over four
# steps as well.
OVERHEAD_OF_A_PAIR = {"accelerations": 0.9, "accelerations_of_equal_masses": 0.9, "potentials": 0.6}
OVERHEAD_OF_A_PAIR["accelerations_and_jerks"] = 2.6


@cache
def loops_of_pairs(replaced=("", ""), short=False):
    """Return the loop over steps of each kernel."""
    text = symmetric.SOURCE.read_text()
    assert replaced[0] in text
    return pair_loops(
        optimized_cubin(
            text.replace(*replaced),
            words_for(symmetric.defines(short), symmetric.OPTIONS),
            ARCHITECTURE,
        )
    )


@pytest.mark.parametrize("kernel", PAIR)
@pytest.mark.parametrize("short", [False, True])
def test_instructions_of_a_pair(kernel, short):
    """Of a lane with all its targets."""
    loop = loops_of_pairs(short=short)[kernel]
    assert PAIR[kernel] <= loop.per_interaction() <= PAIR[kernel] + OVERHEAD_OF_A_PAIR[kernel]
    assert loop.count(FLOAT64) == loop.count(LOCAL_MEMORY) == 0
    assert loop.count("SHFL") == loop.count(ROOT) * symmetric.COMPONENTS[kernel] / targets_of(
        kernel
    )


def targets_of(kernel):
    """Return the targets of a lane."""
    return symmetric.JERK_TARGETS if NAMES[kernel] == JERKS else symmetric.TARGETS


@pytest.mark.parametrize("kernel", PAIR)
def test_a_division_and_a_root_of_a_pair_are_found(kernel):
    slow = loops_of_pairs(("return rsqrtf(", "return 1.0f / sqrtf("))[kernel]
    assert slow.per_interaction() > PAIR[kernel] + OVERHEAD_OF_A_PAIR[kernel] + 1


# ---- These tests can fail ------------------------------------------------------------------------

# A lane with one target has the least code to compile.


@pytest.mark.parametrize("kernel", NAMES)
def test_a_division_and_a_root_are_found(kernel):
    slow = loops("single", 1, replaced=("rsqrtf(x)", "(1.0f / sqrtf(x))"))
    assert slow[kernel].per_interaction() > bound("single", 1, kernel) + 1


@pytest.mark.parametrize("kernel", NAMES)
def test_denormals_that_are_not_flushed_are_found(kernel):
    unflushed = loops("single", 1, options=UNFLUSHED)
    assert unflushed[kernel].per_interaction() > bound("single", 1, kernel) + 1


def test_spilled_registers_are_found():
    """So few registers that sums cannot stay in them."""
    assert loops("double", 2, options=FEW_REGISTERS)["accelerations"].count(LOCAL_MEMORY) > 0
