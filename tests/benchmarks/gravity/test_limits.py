"""``bench limits`` on a GPU on paper, and the kernels with atomic adds."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from support.bodies import make_backend
from support.command import call, refused
from support.nvrtc import compile_to_cubin, oldest_and_newest, words_for
from support.paper import PaperGpu

from hybrid_nbody.benchmarks.gravity import limits
from hybrid_nbody.benchmarks.harness import machine
from hybrid_nbody.benchmarks.harness.machine import INSTRUCTIONS, Devices, Peak
from hybrid_nbody.benchmarks.harness.runs import ProductionRun, massive_box
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.gpu import kernels as gpu
from hybrid_nbody.nbody.kernels.gpu import symmetric
from hybrid_nbody.nbody.kernels.gpu.exact_sums import LEAST_BODIES
from hybrid_nbody.nbody.kernels.gpu.layout import DEFAULTS, Layout
from hybrid_nbody.nbody.kernels.gpu.tree.launches import FOLDER
from hybrid_nbody.nbody.precision import PRECISIONS

PEAK = Peak(single=30e12, double=15e12, roots=4e12, copy=4e12)
CELLS = 4
PAIRS = 40
TRANSLATIONS = 6
SECONDS = {"pack": 2e-5, "combine": 1e-5, "pack_moving": 3e-5}
SECONDS["combine_accelerations_and_jerks"] = SECONDS["combine"]
SUM = 1e-3


def paper_seconds(name, macros, arguments):
    """Return what a kernel takes: the same for every sum, little for the others."""
    return SECONDS.get(name, SUM)


def paper_tree(backend, problem, precision, accuracy):
    """Return a force by a tree of four cells on paper: lists of distant cells in segments."""
    number = problem.number

    def launch(module, name, number, *arguments):
        assert number == CELLS
        assert f"{name}(const Tree *tree" in (FOLDER / f"{module}.cu").read_text()
        backend.clock += SUM
        if name == "count_work":
            arguments[1][:] = 1 + PAIRS

    pool = np.array([[2, 3, 1, 2], [3, 0, 0, 0], [-1, 1, 0, 0], [-1, 2, 1, 1]])
    tree = SimpleNamespace(
        backend=backend,
        launches=SimpleNamespace(on_blocks=launch, on_own_cells=launch),
        whole=SimpleNamespace(cells=3),
        memory=SimpleNamespace(
            bodies=number,
            own=CELLS,
            arrays={"pool": pool, "distant": np.array([0, -1, 3, 0])},
        ),
    )
    return SimpleNamespace(
        tree=SimpleNamespace(tree=tree), expansion=SimpleNamespace(order=round(-np.log10(accuracy)))
    )


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A function that runs ``bench limits`` on paper and returns its rows."""

    def run(sizes=None):
        devices = Devices(make_backend("cpu", threads=1), PaperGpu(paper_seconds))
        monkeypatch.setattr(machine, "find_devices", lambda asked: devices)
        monkeypatch.setattr(machine, "measure_peak", lambda backend: PEAK)
        monkeypatch.setattr(limits.runs, "tree_force", paper_tree)
        assert (
            limits.run(
                SimpleNamespace(repeats=2, sizes=sizes, output=tmp_path / "out", overwrite=False)
            )
            == 0
        )
        assert (tmp_path / "out" / "limits.png").read_bytes().startswith(b"\x89PNG")
        return json.loads((tmp_path / "out" / "limits.json").read_text())["rows"]

    return run


def test_every_kernel_against_its_ceiling(rows, capsys):
    found = {(row["precision"], row["kernel"]): row for row in rows("512")}
    assert set(found) == {
        (precision, kernel) for precision in PRECISIONS for kernel in limits.KERNELS
    } | {("single", f"{k}, {a}") for k in ("near field", "far field") for a in limits.ACCURACIES}
    row = found["double", limits.EQUAL]
    assert row["interactions_per_s"] == pytest.approx(512**2 / (SUM + SECONDS["combine"]))
    assert row["ceiling"] == pytest.approx(15e12 / 15)
    assert row["share_of_ceiling"] == pytest.approx(row["interactions_per_s"] / 1e12)
    assert found["single", limits.JERKS]["median_s"] == pytest.approx(
        SUM + SECONDS["combine"] + 3e-5
    )
    assert found["single", limits.ATOMIC]["median_s"] == pytest.approx(SUM)
    assert "share_of_ceiling" not in found["single", limits.PACK]
    text = " ".join(capsys.readouterr().out.split())
    assert PEAK.description in text
    assert "single, 512 bodies: a fixed order of the sums costs +1.0% over atomic adds" in text
    assert "mixed, 512 bodies: pack takes 2.0% of the time of the accelerations" in text


def test_the_fields_of_a_tree_against_their_ceilings(rows):
    found = {row["kernel"]: row for row in rows("512")}
    near = found["near field, 1e-3"]
    assert near["each"] == PAIRS
    assert near["interactions_per_s"] == pytest.approx(PAIRS * 512 / SUM)
    assert near["ceiling"] == pytest.approx(30e12 / 13)
    far = found["far field, 1e-3"]
    assert far["each"] == TRANSLATIONS / 512
    assert far["interactions_per_s"] == pytest.approx(TRANSLATIONS / SUM)
    assert far["instructions"] == 84 + 3 + 9 + 19
    assert far["share_of_ceiling"] == pytest.approx(TRANSLATIONS / SUM * 115 / 30e12)


def test_the_sizes_by_default():
    chosen = limits.chosen(None)
    assert chosen[:3] == [
        ("single", number, limits.ACCELERATIONS) for number in (16384, 65536, 131072)
    ]
    assert len(chosen) == 2 + 3 * len(limits.KERNELS)
    assert {number for precision, number, _ in chosen if precision != "single"} == {131072}


def test_the_smaller_ceiling_counts():
    assert limits.ceiling(PEAK, "single", limits.POTENTIAL) == (30e12 / 8, "instructions")
    few_roots = Peak(single=30e12, double=15e12, roots=3e12, copy=4e12)
    assert limits.ceiling(few_roots, "single", limits.POTENTIAL) == (3e12, "reciprocal roots")
    assert limits.ceiling(few_roots, "double", limits.ACCELERATIONS) == (15e12 / 16, "instructions")


def test_instructions_are_those_of_the_other_benchmarks():
    """That no more are needed, tests/nbody/kernels/test_machine_code.py shows."""
    assert limits.INSTRUCTIONS["single"][limits.ACCELERATIONS] == INSTRUCTIONS


def test_what_was_not_measured_is_not_told():
    assert limits.costs("single, 512 bodies:", 1.0, None, None) == []
    assert limits.costs("single, 512 bodies:", None, 1.0, 1.0) == []


def test_without_a_gpu(tmp_path):
    message = refused(tmp_path, "bench", "limits", environment={"CUDA_VISIBLE_DEVICES": ""})
    assert message.startswith("no GPU can be used: ")


# ---- Atomic adds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("architecture", oldest_and_newest())
def test_atomic_adds_compile(precision, architecture):
    macros = gpu.defines(precision, Layout.of(131072), DEFAULTS[precision], 131072, 131072)
    assert b"accelerations\0" in compile_to_cubin(
        limits.PAIR_FORCE.read_text(), words_for(macros, gpu.OPTIONS), architecture
    )


@pytest.mark.parametrize("architecture", oldest_and_newest())
def test_atomic_adds_of_the_symmetric_force_compile(architecture):
    options = words_for(symmetric.defines(), symmetric.OPTIONS)
    cubin = compile_to_cubin(limits.SYMMETRIC.read_text(), options, architecture)
    assert b"accelerations\0" in cubin


def test_a_statement_that_is_gone_is_told():
    source = limits.PAIR_FORCE._replace(old="no such statement;")
    with pytest.raises(
        RuntimeError, match=r"^pair_force\.cu does not hold, once, .* no such statement;$"
    ):
        source.read_text()


def test_atomic_adds_of_the_symmetric_force_take_the_place_of_exact_ones():
    backend = PaperGpu(paper_seconds)
    run = ProductionRun(backend, massive_box(LEAST_BODIES), "single")
    kernels = limits.ATOMIC_KERNELS[type(run.kernels)](
        backend, run.state, PairForce("single", 0.01)
    )
    kernels.accelerations(run.state)
    assert backend.launches == ["accelerations", "gather", "combine"]
    assert limits.ROUNDED in kernels.symmetric._module.text


def test_atomic_adds_need_no_second_kernel():
    backend = PaperGpu(paper_seconds)
    run = ProductionRun(backend, massive_box(300), "single")
    run.kernels = limits.AtomicKernels(backend, run.state, PairForce("single", 0.01))
    run.state.acceleration[:] = 7
    run.force()
    assert backend.launches == ["pack", "accelerations"]
    assert not run.state.acceleration.any()
    assert "atomicAdd" in run.kernels.module._module.text


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("number", [5000, LEAST_BODIES])
def test_atomic_adds_give_the_same_but_for_rounding(precision, number):
    backend, problem = make_backend("gpu"), massive_box(number)
    run = ProductionRun(backend, problem, precision)
    run.force()
    expected = backend.download(run.state.acceleration)
    kernels = limits.ATOMIC_KERNELS[type(run.kernels)]
    run.kernels = kernels(backend, run.state, PairForce(precision, problem.softening))
    run.force()
    np.testing.assert_allclose(
        backend.download(run.state.acceleration), expected, rtol=1e-9, atol=1e-9
    )


@pytest.mark.gpu
def test_on_a_gpu(tmp_path):
    result = call(tmp_path, "bench", "limits", "--sizes", 16384, "--repeats", 2, timeout=600)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "output" / "bench-limits" / "limits.json").read_text())["rows"]
    shares = [
        row["share_of_ceiling"] * row.get("times_a_pair", 2) / 2
        for row in rows
        if "share_of_ceiling" in row
    ]
    assert shares
    assert all(0 < share < 1.02 for share in shares)  # others may share the GPU
