"""Every CUDA source of the benchmarks compiles as each rung compiles it, and gets its arguments."""

import re
from functools import cache

import numpy as np
import pytest
from support.nvrtc import (
    architectures,
    assert_same_for_all_architectures,
    compile_to_cubin,
    oldest_and_newest,
    words_for,
)

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.launch import FLUSH_DENORMALS
from hybrid_nbody.benchmarks.harness.machine import PEAK_MACROS, PEAK_SOURCE
from hybrid_nbody.benchmarks.ladder.rungs import FLUSH, LADDERS
from hybrid_nbody.benchmarks.ladder.runs import (
    ARRAYS,
    DRIFT,
    STRUCTS,
    VECTORS3,
    VECTORS4,
    Kernel,
    KernelRun,
)

RUNGS = [
    pytest.param(ladder, rung, id=f"{name}: {rung.name}")
    for name, ladder in LADDERS.items()
    for rung in ladder.rungs
    if rung.kernel
]
EXTREMES = [
    Kernel("ladder_c.cu", "tiles", block=block, unroll=32, options=FLUSH) for block in (16, 1024)
]


@cache
def cubin(path, defines, options, architecture):
    return compile_to_cubin(path.read_text(), words_for(dict(defines), options), architecture)


def compiled(kernel, architecture):
    return cubin(kernel.path, tuple(kernel.defines.items()), kernel.options, architecture)


def test_sources_are_the_same_for_all_architectures():
    assert_same_for_all_architectures(
        *{rung.kernel.path for ladder in LADDERS.values() for rung in ladder.rungs if rung.kernel}
    )


@pytest.mark.parametrize("architecture", oldest_and_newest())
@pytest.mark.parametrize(("ladder", "rung"), RUNGS)
def test_rungs_compile(ladder, rung, architecture):
    assert rung.kernel.name.encode() in compiled(rung.kernel, architecture)


@pytest.mark.parametrize("kernel", EXTREMES, ids=lambda kernel: str(kernel.block))
def test_the_smallest_and_the_largest_block_compile(kernel):
    assert b"tiles" in compiled(kernel, architectures()[-1])


@pytest.mark.parametrize("architecture", architectures())
def test_drift_and_peak_compile(architecture):
    drifts = cubin(DRIFT, (), FLUSH_DENORMALS, architecture)
    for layout in (ARRAYS, STRUCTS, VECTORS3, VECTORS4):
        assert layout.drift.encode() in drifts
    peaks = cubin(PEAK_SOURCE, tuple(PEAK_MACROS.items()), FLUSH_DENORMALS, architecture)
    for kernel in (b"single_multiply_add", b"double_multiply_add", b"reciprocal_roots", b"copy"):
        assert kernel in peaks


# ---- Arguments -----------------------------------------------------------------------------------


class PaperBackend(Backend):
    """A GPU on paper: NumPy's arrays, and kernels that check their arguments and note launches."""

    name, xp = "gpu", np
    description = ""

    def __init__(self):
        self.launches = []

    def upload(self, host):
        return np.array(host, order="C")

    def download(self, array):
        return array.copy()

    def compile(self, source, defines, options=FLUSH_DENORMALS, cooperative=False):
        return PaperModule(self, source.read_text())

    on_host = to_host = from_host = synchronize = mark = elapsed = start_look = None
    pinned = fetch = send = wait = free_memory = use = None


class PaperModule:
    def __init__(self, backend, text):
        self.backend, self.text = backend, text

    def get_function(self, name):
        declared = re.search(rf"\b{name}\(([^)]*)\)\s*\{{", self.text)[1].split(",")

        def launch(grid, block, arguments, shared_mem=0):
            assert len(arguments) == len(declared), (name, declared)
            for argument, text in zip(arguments, declared, strict=True):
                check_argument(argument, text.strip())
            self.backend.launches.append((name, grid, block))

        return launch

    def get_global(self, name):
        assert re.search(rf"__constant__ \w+ {name};", self.text)
        return np.zeros(16, np.uint8).data


VECTOR = {"float3": 3, "float4": 4, "Body": 7}


def check_argument(argument, text):
    """Compare what is handed over with the type that the kernel declares."""
    kind = re.search(r"(\w+) ?\*?\w+$", text)[1]
    if "*" not in text:
        assert argument.dtype == {"int": "i4", "float": "f4"}[kind], text
    elif kind == "Parameters":
        assert argument.nbytes == 16, text
    else:
        assert argument.dtype == "f4", text
        assert argument.flags.c_contiguous
        assert argument.ndim == 1 if kind == "float" else argument.shape[1] == VECTOR[kind], text


@pytest.mark.parametrize(("ladder", "rung"), RUNGS)
def test_kernels_get_the_arguments_that_they_declare(ladder, rung):
    backend, problem = PaperBackend(), ladder.problem(1000)
    run = KernelRun(backend, problem, rung.kernel)
    run.step(700)
    (kick, grid, block), (drift, drift_grid, drift_block) = backend.launches
    assert (kick, drift) == (rung.kernel.name, rung.kernel.layout.drift)
    assert drift_grid[0] * drift_block[0] >= 700
    if rung.kernel.blocks is None:
        assert grid == (-(-700 // rung.kernel.block), rung.kernel.parts)
        assert block == (rung.kernel.block,)
    position, velocity = run.result()
    np.testing.assert_array_equal(position, problem.position)
    np.testing.assert_array_equal(velocity, np.zeros((1000, 3)))


def test_padding_has_no_mass():
    run = KernelRun(
        PaperBackend(),
        LADDERS["A"].problem(1000),
        Kernel("ladder_a.cu", "tiles", VECTORS4, block=256),
    )
    (position, _) = run.arrays
    assert position.shape == (1024, 4)
    assert position[:1000, 3].min() > 0
    assert not position[1000:].any()
