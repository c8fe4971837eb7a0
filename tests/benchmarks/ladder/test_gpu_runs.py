"""GPU rungs against the float64 reference, the peak, and ``bench blocks``, on a GPU."""

import json

import pytest
from support.bodies import make_backend
from support.command import call, refused

from hybrid_nbody.benchmarks.harness.machine import measure_peak
from hybrid_nbody.benchmarks.harness.runs import check
from hybrid_nbody.benchmarks.ladder.rungs import LADDERS

pytestmark = pytest.mark.gpu

RUNGS = [
    pytest.param(ladder, rung, id=f"{name}: {rung.name}")
    for name, ladder in LADDERS.items()
    for rung in ladder.rungs
    if rung.device == "gpu"
]


@pytest.fixture(scope="module")
def gpu():
    return make_backend("gpu")


@pytest.mark.parametrize("targets", [1000, 300])
@pytest.mark.parametrize(("ladder", "rung"), RUNGS)
def test_a_step_of_every_rung(gpu, ladder, rung, targets):
    run = rung.make(gpu, ladder.problem(1000))
    found = check(run, targets if run.divisible else 1000, stop=lambda: None)
    # float32: rounding of 1000 terms, and reciprocal roots that are good to 2 units in the last
    # place
    assert found["error_median"] < 3e-6
    assert found["error_max"] < 1e-4
    assert found["within_tolerance"] == 1.0


def test_the_peak_is_above_what_kernels_reach(gpu):
    peak = measure_peak(gpu)
    assert peak.single > peak.double > 0
    assert peak.single > peak.roots > 1e11
    assert 1e11 < peak.copy < 2e13
    assert peak.ceiling() == peak.single / 13


def test_blocks(tmp_path):
    options = (
        "--sizes",
        1024,
        "--blocks",
        "64,128",
        "--unrolls",
        "1,4",
        "--repeats",
        2,
        "--output",
        "out",
    )
    result = call(tmp_path, "bench", "blocks", *options)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "out" / "blocks.json").read_text())["rows"]
    assert [(row["block"], row["unroll"]) for row in rows] == [(64, 1), (64, 4), (128, 1), (128, 4)]
    assert all(row["error_median"] < 3e-6 for row in rows)
    assert (tmp_path / "out" / "blocks.png").read_bytes().startswith(b"\x89PNG")


def test_a_block_that_cannot_be_launched_names_the_limit(tmp_path):
    message = refused(tmp_path, "bench", "blocks", "--blocks", "64,2048")
    assert message == "--blocks: 2048 threads are too many: this GPU launches at most 1024 a block"
