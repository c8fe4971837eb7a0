"""The GPU kernels of ``bench fluid`` compile, get their arguments, and give the model's bits."""

import json
import re
from functools import partial

import numpy as np
import pytest
from support.bodies import make_backend
from support.command import call
from support.nvrtc import H200, architectures, compile_to_cubin, words_for
from support.paper import check_argument, declared, kind_of

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.benchmarks.fluid import layouts as fluid_layouts
from hybrid_nbody.benchmarks.fluid.layouts import LAYOUTS, STRATEGIES, check
from hybrid_nbody.benchmarks.fluid.problems import random_fields
from hybrid_nbody.benchmarks.fluid.sweeps import (
    SOURCE,
    BlockFlags,
    ModelRelax,
    OneFlag,
    PlainKernels,
    ReadByHost,
    model_passes,
)

KERNELS = (
    "plain",
    "flag_of_threads",
    "flag_of_blocks",
    "end_iteration",
    "block_flags",
    "fold",
    "largest",
)
FUSED_COLOURS = partial(model_passes, longest=1)
FLAG_OF_THREADS = partial(OneFlag, "flag_of_threads")
FLAG_OF_BLOCKS = partial(OneFlag, "flag_of_blocks")
INTERLEAVED = (PlainKernels, FLAG_OF_THREADS, FLAG_OF_BLOCKS, BlockFlags, ReadByHost)


@pytest.mark.parametrize("architecture", architectures())
def test_the_sweeps_compile(architecture):
    cubin = compile_to_cubin(SOURCE.read_text(), words_for({}), architecture)
    for name in KERNELS:
        assert name.encode() + b"\0" in cubin


class PaperBackend:
    """A GPU on paper: its kernels compare arguments with declarations, and note their launches."""

    name = "gpu"
    kernels = Backend.kernels

    def __init__(self):
        self.launches = []

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype)

    pinned = zeros

    def upload(self, host):
        return host.copy()

    download = upload

    def facts(self):
        return H200

    def compile(self, source, defines, options=(), cooperative=False):
        text = source.read_text().replace("\\\n", "\n")
        for macro, parameters in MACROS.items():
            text = re.sub(rf"(?<!define )\b{macro}\b", parameters, text)
        return PaperModule(text, self.launches)


MACROS = {
    "GRID": "int nx, int ny, int nz",
    "KERNEL": 'extern "C" __global__ void',
    "EQUATION": "Real own, Real neighbour, Real x_sign, Real y_sign, Real z_sign",
}


class PaperModule:
    def __init__(self, text, launches):
        self.text, self.launches = text, launches

    def get_function(self, name):
        def launch(grid, block, arguments, shared_mem=0):
            parameters = declared(self.text, name)
            assert len(arguments) == len(parameters), (name, parameters)
            for argument, text in zip(arguments, parameters, strict=True):
                check_argument(argument, kind_of(text, np.dtype("f4")), "*" in text, text)
            self.launches.append((name, grid, block))

        return launch


@pytest.mark.parametrize("make", INTERLEAVED)
def test_kernels_get_the_arguments_that_they_declare(make):
    backend, cells = PaperBackend(), (66, 20, 7)
    sweeps = make(backend, cells)
    sweeps.load(*random_fields(cells))
    sweeps.iterate(3)
    halves = [launch for launch in backend.launches if launch[0] == sweeps.kernel]
    assert halves == [(sweeps.kernel, (2, 3, 7), (32, 8, 1))] * 6
    ends = {"flag_of_threads": 3, "flag_of_blocks": 3, "block_flags": 3}
    assert len(backend.launches) - len(halves) == ends.get(sweeps.kernel, 0)


@pytest.mark.parametrize(("make", "passes"), [(FUSED_COLOURS, 4), (model_passes, 2)])
def test_passes_are_kernels_of_the_model(make, passes):
    backend = PaperBackend()
    make(backend, (66, 20, 7)).iterate(4)
    names = [name for name, *_ in backend.launches]
    assert names[: passes + 1] == ["relax"] * passes + ["end_passes"]


def test_a_solve_of_a_grid_that_fits_is_one_kernel():
    backend = PaperBackend()
    sweeps = ModelRelax(backend, (66, 20, 7))
    sweeps.iterate(4)
    ((name, blocks, threads),) = backend.launches
    boxes = sweeps.kernels.pass_solver.boxes
    assert (name, blocks, threads) == ("relax", (boxes.number,), (boxes.threads,))


def test_blocks_cover_the_grid():
    for shape in fluid_layouts.BLOCKS:
        sweeps = PlainKernels(PaperBackend(), (84, 85, 86), shape)
        threads = np.multiply(sweeps.grid, shape)
        assert (threads >= (42, 85, 86)).all()
        assert (threads - shape < (42, 85, 86)).all()
        assert np.prod(shape) <= 1024


@pytest.mark.gpu
@pytest.mark.parametrize(
    "rung",
    [rung for rung in (*LAYOUTS, *STRATEGIES) if rung.device == "gpu"],
    ids=lambda rung: rung.name,
)
def test_every_rung_gives_the_bits_of_the_model(rung):
    found = check(rung.make, make_backend("gpu"))
    assert found["error"] < 1e-6
    assert found["same_bits"] == "same"


@pytest.mark.gpu
@pytest.mark.parametrize("make", [FLAG_OF_THREADS, FLAG_OF_BLOCKS, BlockFlags])
def test_a_solve_ends_on_the_device(make):
    sweeps = make(make_backend("gpu"), (16, 12, 9))
    sweeps.load(np.ones((9, 12, 16), np.float32), np.zeros((9, 12, 16), np.float32))
    sweeps.iterate(5)
    _, done, count = sweeps.backend.download(sweeps.control)
    assert (done, count) == (1, 1)


@pytest.mark.gpu
def test_on_a_gpu(tmp_path):
    small = (
        "--sizes",
        "12",
        "--large",
        "32",
        "--poisson",
        "12",
        "--repeats",
        "2",
        "--backend",
        "gpu",
    )
    result = call(tmp_path, "bench", "fluid", *small, "--output", "out", timeout=170)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "out" / "fluid.json").read_text())["rows"]
    assert {row["device"] for row in rows} == {"gpu"}
    assert all(
        row.get("same_bits", "same") == "same" and row.get("error", 0) < 2e-6 for row in rows
    )
