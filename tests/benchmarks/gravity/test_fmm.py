"""``bench fmm`` on a CPU, its errors, its phases and its conclusions."""

import json
from argparse import ArgumentParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.bodies import make_backend

from hybrid_nbody.benchmarks import add_arguments, run
from hybrid_nbody.benchmarks.gravity import fmm
from hybrid_nbody.benchmarks.gravity.fmm import Case, Sweep, conclude, crossovers
from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.runs import clumps, disc, galaxies, plummer_sphere
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.forces.speed import SPEEDS
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.tree_contract import TreeSums


def arguments(folder, *words):
    parser = ArgumentParser()
    add_arguments(parser, Path)
    return parser.parse_args(["fmm", "--output", str(folder), *words])


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The JSON of two distributions and sizes, of trees that other tests compile, too."""
    folder = tmp_path_factory.mktemp("fmm") / "out"
    few = "--sizes 300,3000 --distributions sphere,disc --accuracies 1e-3 --precision double"
    asked = arguments(folder, *few.split(), "--backend", "cpu", "--repeats", "2")
    assert run(asked, None) == 0
    assert (folder / "fmm.png").read_bytes().startswith(b"\x89PNG")
    return json.loads((folder / "fmm.json").read_text())


def test_each_size_has_the_direct_sum_and_its_trees(content):
    found = [(row["distribution"], row["bodies"], row["method"]) for row in content["rows"]]
    assert found == [
        (distribution, number, method)
        for distribution in ("sphere", "disc")
        for number in (300, 3000)
        for method in ("direct", "fmm 1e-3")
    ]


def test_trees_are_as_exact_as_promised_and_no_more(content):
    for row in content["rows"]:
        if row["method"] == "direct" and row["distribution"] == "disc":
            assert row["error_most"] is None  # the time is that of the sphere
        elif row["method"] == "direct":
            assert row["error_most"] < 1e-12
        else:
            assert row["error_rms"] <= 1e-3
            assert (row["error_rms"] > 1e-5) == (row["bodies"] == 3000)
            assert row["error_rms"] <= row["error_most"] <= 1e-2


def test_the_direct_sum_is_measured_once_for_each_size(content):
    direct = [row for row in content["rows"] if row["method"] == "direct"]
    assert [row["median_s"] for row in direct[:2]] == [row["median_s"] for row in direct[2:]]


def test_a_tree_has_a_rate_and_its_phases(content):
    row = content["rows"][-1]
    assert row["rate"] == pytest.approx(3000 / row["median_s"], rel=1e-12)
    assert row["against_direct"] == pytest.approx(
        content["rows"][-2]["median_s"] / row["median_s"], rel=1e-12
    )
    assert all(row[f"{phase}_s"] > 0 for phase in ("sort", "tree", "sums"))
    assert "far_s" not in row  # a CPU adds up both fields in one go
    assert 200 < row["bytes_per_body"] < 2000  # with the cells and bodies of the tree


def test_phases_on_a_host_are_methods_of_trees():
    assert all(callable(getattr(TreeSums, name)) for name in fmm.ON_HOST)
    assert set(fmm.ON_HOST.values()) < set(fmm.PHASES)


def test_phases_of_a_tree_on_a_device():
    """Marks count calls: each phase of a force takes a second, and the rest one before it."""
    clock = iter(range(1000))
    backend = SimpleNamespace(
        shares_host_memory=False,
        mark=lambda: next(clock),
        elapsed=lambda start, end: end - start,
    )
    watching = []
    phases = ("rest", "sort", "tree", "lists", "far", "near")
    force = SimpleNamespace(tree=SimpleNamespace(tree=SimpleNamespace(watch=watching.append)))
    force.accelerations = lambda timer: [watching[-1].record(phase) for phase in phases]
    found = fmm.phases_of(backend, force)
    expected = {f"{phase}_s": 1 for phase in phases} | {"rest_s": 1 + 1 / fmm.WATCHED}
    assert found == pytest.approx(expected)
    assert watching[-1] is None


def test_bytes_of_a_force_count_each_array_once():
    array = np.zeros(10)
    cube = Cube(0, 0, 0, 1)
    assert fmm.bytes_of({"one": array, "same": [array, cube], "more": (np.zeros(1),)}, set()) == 88
    assert fmm.bytes_of([np.ndarray, array], set()) == 80  # a class holds none


def test_true_accelerations_are_those_of_the_reference():
    case = Case.of(make_backend("cpu"), "disc", 50)
    position = case.problem.position.astype(float)
    mass = case.problem.mass.astype(float)
    expected = reference.accelerations(position, mass, 0.01, targets=list(case.checked))
    np.testing.assert_allclose(case.truth, expected, rtol=1e-12, atol=1e-14)


def test_errors_are_relative_to_the_rms_acceleration():
    backend = make_backend("cpu")
    case = Case.of(backend, "sphere", 20)
    acceleration = np.zeros((20, 3))
    acceleration[case.checked] = 1.5 * case.truth
    assert case.errors(backend, acceleration)["error_rms"] == pytest.approx(0.5, rel=1e-12)


def test_distributions_are_what_they_are_called():
    near = np.linalg.norm(clumps(500).position[:, None] - clumps(500).position, axis=2)
    assert np.all(np.sort(near, axis=1)[:, 1] < 2.1e-3)
    assert near.max() > 1
    first, second = np.split(galaxies(500).position, 2)
    apart = np.median(second, axis=0) - np.median(first, axis=0)
    np.testing.assert_allclose(apart, [100, 3, 0], rtol=0, atol=0.3)
    flat = disc(500).position
    assert 10 * flat[:, 2].std() < flat[:, 0].std()
    assert len(plummer_sphere(500).position) == 500


def row_of(method, bodies, seconds, error=1e-4, most=1e-3):
    head = {"device": "cpu", "distribution": "disc", "method": method, "bodies": bodies}
    row = head | {"median_s": seconds, "rate": bodies / seconds}
    errors = {"error_rms": error, "error_most": most, "accuracy": 1e-3}
    return row if method == "direct" else row | errors


def test_the_crossover_is_where_both_take_as_long():
    direct = [row_of("direct", n, (n / 1000) ** 2) for n in (1000, 4000)]
    trees = [row_of("fmm 1e-3", n, n / 500) for n in (1000, 4000)]
    assert crossovers([*direct, *trees]) == [
        {"device": "cpu", "distribution": "disc", "method": "fmm 1e-3", "bodies": 2000}
    ]
    assert crossovers(trees) == []
    assert fmm.faster_from({1000: 1.0, 4000: 2.0}, {1000: 2.0, 4000: 9.0}) == 1000
    assert fmm.faster_from({1000: 3.0}, {1000: 2.0}) is None
    assert conclude([*direct, *trees]) == [
        "disc, CPU: faster than direct: fmm 1e-3 from 2000 bodies",
        "2 of 2 trees are as exact as promised",
    ]


@pytest.mark.parametrize(("error", "most"), [(1.1e-3, 2e-3), (9e-4, 1.1e-2)])
def test_a_broken_promise_is_told(error, most):
    lines = conclude([row_of("fmm 1e-3", 1000, 1.0, error, most)])
    assert lines[0] == "0 of 1 trees are as exact as promised"
    assert "LESS exact than promised: disc, 1000 bodies, fmm 1e-3" in lines[1]


def test_a_direct_sum_of_minutes_is_left_out():
    sweep = Sweep("single", 5, [1e-3])
    earlier = [row_of("direct", 1000, 1.0)]
    head = {"device": "cpu", "distribution": "disc", "method": "direct", "bodies": 8000}
    row = sweep._direct(head, None, earlier, lambda: None)
    assert row["note"].startswith("left out: about ")
    assert fmm.expected_seconds(head, earlier, "single") == pytest.approx(5 * 64, rel=1e-12)
    alone = SPEEDS["cpu"].seconds_of_pairs(8000, "single")
    assert fmm.expected_seconds(head, [], "single") == pytest.approx(5 * alone, rel=1e-9)


def test_accuracies():
    bounds = 1e-7, 1e-2
    assert options.list_of(float, "--accuracies", "1e-5,1e-3,0.001", *bounds) == [1e-5, 1e-3]
    allowed = r"^--accuracies: must be numbers .*, at least 1e-07 and at most 0\.01 \(got "
    for wrong in ("1e-1", "1e-8", "few", "", "nan"):
        with pytest.raises(InputError, match=allowed):
            options.list_of(float, "--accuracies", wrong, *bounds)
