"""CUDA kernels are looked up once, and launched with at least the threads asked for."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support import cell_functions
from support.paper import PaperGpu

from hybrid_nbody.backends.cells.gpu import BLOCK, Program, shape_of
from hybrid_nbody.backends.cells.gpu_sequence import CALL, THREADS
from hybrid_nbody.backends.launch import CudaModule, compile_options, with_macros

SOURCE = Path(__file__).with_name("add.cu")
ARGUMENTS = (np.int32(3), np.zeros(3, "f4"))


class Recording:
    """A backend whose kernels note their launches."""

    def __init__(self):
        self.compiled, self.found, self.launches = [], [], []

    def compile(self, *arguments):
        self.compiled.append(arguments)
        return SimpleNamespace(get_function=self.get_function, get_global=lambda name: f"&{name}")

    def get_function(self, name):
        self.found.append(name)
        return Kernel(name, self.launches)


class Kernel:
    """Notes the grid, the block, the arguments and the shared memory of its launches."""

    max_dynamic_shared_size_bytes = 0

    def __init__(self, name, launches):
        self.name, self.launches = name, launches

    def __call__(self, grid, block, arguments, shared_mem=0):
        self.launches.append((self.name, grid, block, arguments, shared_mem))


@pytest.fixture
def backend():
    return Recording()


@pytest.fixture
def module(backend):
    return CudaModule(backend, SOURCE, {"REAL": "float"})


@pytest.mark.parametrize(("threads", "blocks"), [(1, 1), (128, 1), (129, 2), (1000, 8)])
def test_a_launch_has_as_many_blocks_as_threads_need(backend, module, threads, blocks):
    module.launch("add", threads, 128, *ARGUMENTS)
    assert backend.launches == [("add", (blocks,), (128,), ARGUMENTS, 0)]


def test_nothing_is_launched_for_no_threads(backend, module):
    module.launch("add", 0, 128, *ARGUMENTS)
    module.launch_grid("add", (3, 0, 2), (32, 4, 1), ARGUMENTS)
    assert backend.launches == []


def test_a_grid_is_launched_as_it_is(backend, module):
    module.allow_shared_memory("add", 1 << 16)
    module.launch_grid("add", (3, 1, 2), (32, 4, 1), ARGUMENTS, 1 << 15)
    assert backend.launches == [("add", (3, 1, 2), (32, 4, 1), ARGUMENTS, 1 << 15)]
    assert module.kernel("add").max_dynamic_shared_size_bytes == 1 << 16


def test_a_kernel_is_looked_up_once(backend, module):
    module.load("add", "subtract")
    module.launch("add", 1, 128, *ARGUMENTS)
    module.launch("subtract", 1, 128, *ARGUMENTS)
    assert backend.found == ["add", "subtract"]
    assert len(backend.compiled) == 1


def test_a_source_is_compiled_as_asked_for(backend):
    CudaModule(backend, SOURCE, {"REAL": "float"}, ("-ftz=false",), cooperative=True)
    assert backend.compiled == [(SOURCE, {"REAL": "float"}, ("-ftz=false",), True)]


def test_a_constant_is_found(module):
    assert module.constant("parameters") == "&parameters"


def test_macros_stand_sorted_before_a_source_whose_lines_keep_their_numbers():
    text = with_macros("first line", {"B": 2, "A": "float"})
    assert text.splitlines() == ["#define A float", "#define B 2", "#line 1", "first line"]
    assert compile_options(("-ftz=true",)) == ("-std=c++17", "-ftz=true")


def test_a_gpu_on_paper_takes_launches(tmp_path):
    source = tmp_path / "add.cu"
    source.write_text('extern "C" __global__ void add(int number, float *values) {}')
    backend = PaperGpu(lambda *_: 2.0)
    module = CudaModule(backend, source, {})
    module.launch("add", 3, 128, *ARGUMENTS)
    module.launch_grid("add", (1,), (128,), ARGUMENTS)
    assert backend.launches == ["add", "add"]
    assert backend.clock == 4.0
    with pytest.raises(AssertionError):
        module.launch("add", 3, 128, np.int32(3))


def test_functions_of_cells_are_launched_in_the_same_way(backend):
    program = Program(backend, [cell_functions], "f4")
    field = np.zeros((3, 4, 40), "f4")
    for columns in ((1, 1), (1, 39)):  # no cells, then two blocks of 32 along x
        program.run("limited_slope", (1, 2, 1, 3, *columns), field, 0.5, field)
    (source, *_), (sequences, *_) = backend.compiled
    assert "run_limited_slope" in source
    assert "run_calls" in sequences
    ((name, grid, block, arguments, _),) = backend.launches
    assert (name, grid, block) == ("run_limited_slope", (2, 1, 1), BLOCK)
    box, *others = arguments
    region_parity_depth = (1, 2, 1, 3, 1, 39, 0, 1)
    assert box.tolist() == [(*region_parity_depth, 4, 40, 0, 0)]
    assert others[0] is field
    assert others[1] == np.float32(0.5)
    assert others[2] is field


@pytest.mark.parametrize(
    ("role", "cells", "block"),
    [
        ("over_rows", 512, (256, 1, 1)),
        ("over_rows", 500, (256, 1, 1)),
        ("over_rows", 384, (128, 2, 1)),
        ("over_rows", 320, (128, 2, 1)),
        ("over_rows", 64, (64, 4, 1)),
        ("over_rows", 40, (32, 8, 1)),
        ("over_rows", 1, (1, 256, 1)),
        ("over_cells", 512, BLOCK),
        ("over_cells", 1, (1, 256, 1)),
    ],
)
def test_blocks_fit_to_rows(role, cells, block):
    shape = shape_of(role, (1, 4, 1, 301, 2, 2 + cells))
    blocks = tuple(-(-n // width) for n, width in zip((cells, 300, 3), block, strict=True))
    assert shape == (blocks, block, 1)


def test_calls_in_a_sequence_are_one_launch(backend):
    program = Program(backend, [cell_functions], "f4")
    backend.upload = lambda table: table
    field = SimpleNamespace(shape=(3, 4, 40), data=SimpleNamespace(ptr=4096))
    region = (1, 2, 1, 3, 1, 39)
    for _ in range(2):
        with program.sequence():
            program.run("limited_slope", region, field, 0.5, field)
            program.run("smooth", (1, 2, 1, 3, 1, 1), field)  # no cells
            program.run("smooth", region, field, parity=1)
    first, second = backend.launches
    name, grid, block, (number, table), _ = first
    assert (name, grid, block, number) == ("run_calls", (1,), (THREADS,), 2)
    assert second[3][1] is table
    slope, smooth = table.view(CALL)
    assert (slope["function"], smooth["function"]) == (0, 1)
    assert smooth["box"].tolist() == [*region, 1, 1, 4, 40, 0, 0]
    half = int(np.float32(0.5).view("u4"))
    assert slope["words"][:4].tolist() == [4096, half, 4096, 0]
