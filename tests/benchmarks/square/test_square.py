"""``bench square``: its rungs against the reference, its conclusions, its kernels compiled."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.bodies import make_backend
from support.command import call
from support.nvrtc import architectures, compile_to_cubin, words_for
from support.paper import PaperGpu
from support.ranks import same_bits

from hybrid_nbody.benchmarks import add_arguments
from hybrid_nbody.benchmarks.harness.runs import check
from hybrid_nbody.benchmarks.square import experiment
from hybrid_nbody.benchmarks.square.experiment import SOURCE, Kernel, LoopRun, square
from hybrid_nbody.errors import InputError

RUNGS = {rung.kernel: rung for rung in (*experiment.MEMORY_RUNGS, *experiment.BLOCK_RUNGS)}


def agrees(run):
    """Whether a step agrees with the reference to the rounding of float32, in any order of sums."""
    found = check(run, run.problem.number, stop=lambda: None)
    return (
        found["error_median"] < 1e-5
        and found["error_max"] < 3e-4
        and found["within_tolerance"] == 1.0
    )


@pytest.mark.parametrize("function", ["plane_serial", "plane_threads"])
def test_a_step_of_the_loops(function):
    assert agrees(LoopRun(make_backend("cpu", threads=2), square(301), function))


def test_a_loop_that_leaves_a_body_out_is_found(monkeypatch):
    run = LoopRun(make_backend("cpu"), square(40), "plane_serial")
    kick = run.kick
    run.kick = lambda bodies, *physics: kick(bodies[:, :39], *physics)
    assert not agrees(run)


@pytest.mark.gpu
@pytest.mark.parametrize("number", [1000, 33])
@pytest.mark.parametrize(
    "kernel", RUNGS, ids=lambda kernel: f"{kernel.name}-{kernel.block}-{kernel.unroll}"
)
def test_a_step_of_every_kernel(kernel, number):
    assert agrees(RUNGS[kernel].make(make_backend("gpu"), square(number)))


@pytest.mark.parametrize("architecture", architectures()[-1:])
@pytest.mark.parametrize(("block", "unroll"), [(16, 1), (64, 16)])
def test_the_kernels_compile(architecture, block, unroll):
    macros = Kernel("N", block=block, unroll=unroll).defines
    cubin = compile_to_cubin(SOURCE.read_text(), words_for(macros), architecture)
    for name in {kernel.name for kernel in RUNGS} | {"drift_structs", "drift_arrays"}:
        assert name.encode() + b"\0" in cubin


@pytest.mark.parametrize(
    ("threads", "number", "grid"), [("N", 65, (2, 1)), ("N x N", 65, (2, 65)), ("N", 64, (1, 1))]
)
def test_grids(threads, number, grid):
    assert Kernel(threads, block=64).grid(number) == grid


def rows(part="memory", **times):
    """Return rows of N and of N x N threads at 1000 and 4000 bodies."""
    return [
        {"part": part, "bodies": bodies, "threads": threads, "median_s": seconds}
        for threads, name in (("N", "bodies"), ("N x N", "pairs"))
        for bodies, seconds in zip((1000, 4000), times[name], strict=True)
    ]


def test_the_crossover_lies_between_the_sizes():
    """Twice as slow at 1000, twice as fast at 4000: equal in the middle of the logarithms.

    The fastest rung counts.
    """
    measured = [*rows(bodies=(2, 4), pairs=(1, 8)), *rows(bodies=(9, 9), pairs=(9, 9))]
    assert experiment.crossover(measured) == pytest.approx(2000, rel=1e-12, abs=0)
    assert experiment.conclude(measured)[0].startswith(
        "N x N threads are faster up to about 2000 bodies, N threads above"
    )


def test_devices_do_not_move_the_crossover():
    """At their sizes a single rung of each kind is timed."""
    measured = [
        *rows(bodies=(2, 4), pairs=(1, 8)),
        *rows(part="devices", bodies=(1, 9), pairs=(9, 1)),
    ]
    assert experiment.crossover(measured) == pytest.approx(2000, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("times", "line"),
    [
        ({"bodies": (1, 2), "pairs": (2, 4)}, "no crossover: N threads are faster at 4000 bodies"),
        (
            {"bodies": (3, 5), "pairs": (2, 4)},
            "no crossover: N x N threads are faster at 4000 bodies",
        ),
    ],
)
def test_no_crossover_is_said(times, line):
    assert experiment.crossover(rows(**times)) is None
    assert experiment.conclude(rows(**times))[0].startswith(line)


def test_without_a_gpu_the_command_says_what_needs_one(tmp_path):
    words = (
        "--sizes",
        "64",
        "--compare",
        "64",
        "--repeats",
        1,
        "--backend",
        "cpu",
        "--output",
        "out",
    )
    result = call(tmp_path, "bench", "square", *words)
    assert result.returncode == 0, result.stderr
    assert "N threads against N x N threads: not measured, it needs a GPU" in result.stdout
    summary = json.loads((tmp_path / "out" / "square.json").read_text())
    assert summary["crossover_bodies"] is None
    assert len(summary["conclusions"]) == 3
    found = summary["rows"]
    assert {row["note"] for row in found if row["device"] == "gpu"} == {"needs a GPU"}
    measured = [row for row in found if row["device"] == "cpu"]
    assert [row["rung"] for row in measured] == [
        "CPU, one thread",
        "CPU, all threads",
        "CPU, as a run computes",
    ]
    assert all(row["error_median"] < 3e-6 and row["speedup"] > 0 for row in measured)
    assert (tmp_path / "out" / "square.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("option", ["sizes", "compare"])
def test_sizes_are_bounded(option):
    """A grid has no more blocks along y."""
    asked = Namespace(
        **{"repeats": "1", "sizes": "250", "compare": "500", "backend": "cpu"} | {option: "70000"}
    )
    with pytest.raises(InputError, match=f"^--{option}: must be whole numbers .* at most 65535 "):
        experiment.run(asked)


def test_the_old_name_still_calls_it():
    parser = ArgumentParser()
    add_arguments(parser, Path)
    old, new = parser.parse_args(["flat"]), parser.parse_args(["square"])
    assert old.entry == new.entry == "square.experiment.run"
    assert old.output == new.output == Path("output/bench-square")


@pytest.mark.parametrize(("layout", "moving"), [("structs", 1), ("arrays", 4)])
def test_a_kernel_gets_bodies_in_its_layout_and_gives_them_back(monkeypatch, layout, moving):
    launches = []
    module = SimpleNamespace(
        launch_grid=lambda *what: launches.append(what), launch=lambda *what: launches.append(what)
    )
    monkeypatch.setattr(experiment, "CudaModule", lambda *what: module)
    problem = experiment.square(33)
    backend = PaperGpu({})
    backend.texture = lambda array: array
    run = experiment.KernelRun(backend, problem, Kernel("N", layout))
    position, velocity = run.result()
    assert same_bits(position, problem.position)
    assert not velocity.any()
    sources = np.column_stack([problem.position[:, :2], problem.mass])
    read = run.textures[0][:, [0, 1, 4]] if layout == "structs" else np.column_stack(run.textures)
    assert same_bits(read, sources)
    run.step(33)
    assert launches[1][0] == f"drift_{layout}"
    assert len(launches[1]) == 5 + moving
