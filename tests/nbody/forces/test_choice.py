"""The choice between the direct sum and the fast multipole method."""

import pytest

from hybrid_nbody.nbody.forces.choice import Wanted, chosen
from hybrid_nbody.nbody.forces.speed import SPEEDS
from hybrid_nbody.nbody.solver import wanted_of

FALLING = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
PLAIN = Wanted("auto", 100_000, 1e-4, "single", jerks=False, ring=False)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
@pytest.mark.parametrize("accuracy", [1e-2, 1e-4, 1e-7])
def test_the_tree_is_taken_from_the_crossover_on(device, precision, accuracy):
    least = SPEEDS[device].crossover(accuracy, precision, 1)
    wanted = PLAIN._replace(accuracy=accuracy, precision=precision)
    assert chosen(wanted._replace(number=least), [device]).name == "fmm"
    below = chosen(wanted._replace(number=least - 1), [device])
    assert below.name == "direct"
    assert f"fmm is faster from about {least} bodies at accuracy {accuracy:g} on" in below.line


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("divided", [False, True])
def test_the_more_exact_a_tree_is_the_more_bodies_it_takes_to_win(
    device, precision, devices, divided
):
    speed = SPEEDS[device]
    found = [speed.crossover(accuracy, precision, devices, divided) for accuracy in FALLING]
    assert found == sorted(found)


@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
@pytest.mark.parametrize("divided", [False, True])
def test_ranks_of_a_cpu_do_not_move_the_crossover(precision, divided):
    speed = SPEEDS["cpu"]
    alone = speed.crossover(1e-4, precision)
    assert speed.crossover(1e-4, precision, 4, divided) == alone


@pytest.mark.parametrize(
    ("changes", "several_nodes", "divided"),
    [
        ("", False, False),
        ("", True, True),
        ("compute: {transport: nccl}", False, False),
        ("compute: {transport: host}", False, True),
    ],
)
def test_gpus_that_divide_the_cells_take_more_bodies_to_win(
    config_of, changes, several_nodes, divided
):
    speed = SPEEDS["gpu"]
    gravity = "gravity: {solver: auto, precision: single}"
    config = config_of(f"bodies: {{kind: plummer, n: 2}}\n{gravity}\n{changes}")
    alone = speed.crossover(1e-4, "single")
    wanted = wanted_of(config, 2 * alone - 1, several_nodes)
    assert chosen(wanted, ["gpu"] * 2).name == ("direct" if divided else "fmm")
    assert chosen(wanted._replace(number=2 * alone), ["gpu"] * 2).name == "fmm"


@pytest.mark.parametrize("device", SPEEDS)
def test_trees_win_earlier_the_slower_direct_sums_are(device):
    crossovers = SPEEDS[device].crossovers
    for single, mixed, double in zip(*crossovers.values(), strict=True):
        assert single[0] == mixed[0] == double[0]
        assert single[1] >= mixed[1] >= double[1]


MEASURED_ON_TWO = [
    *[("single", 1e-3, 78_000), ("single", 1e-4, 94_500), ("single", 1e-6, 190_000)],
    *[("mixed", 1e-2, 49_000), ("mixed", 1e-4, 67_000), ("mixed", 1e-5, 96_000)],
    *[("double", 1e-2, 39_000), ("double", 1e-4, 50_000), ("double", 1e-5, 69_000)],
]
"""Bodies from which a tree took less time than a direct sum on two H200s of one host."""


@pytest.mark.parametrize(("precision", "accuracy", "number"), MEASURED_ON_TWO)
def test_trees_on_two_gpus_are_taken_from_where_they_were_faster(precision, accuracy, number):
    least = SPEEDS["gpu"].crossover(accuracy, precision, 2)
    assert least == pytest.approx(number, rel=0.05, abs=0)
    wanted = PLAIN._replace(accuracy=accuracy, precision=precision)
    assert chosen(wanted._replace(number=least - 1), ["gpu"] * 2).name == "direct"
    assert chosen(wanted._replace(number=least), ["gpu"] * 2).name == "fmm"


@pytest.mark.parametrize(
    ("change", "backends", "reason"),
    [
        ({"jerks": True}, ["cpu"], "the integrator needs time derivatives"),
        ({"ring": True}, ["cpu", "cpu"], "bodies go around a ring"),
        ({}, ["hybrid"], "fmm does not run on backend hybrid"),
        ({}, ["cpu", "gpu"], "fmm takes one backend on all ranks"),
    ],
)
def test_what_only_the_direct_sum_can_do_is_left_to_it(change, backends, reason):
    choice = chosen(PLAIN._replace(number=10**7, **change), backends)
    assert choice.name == "direct"
    assert reason in choice.line


def test_what_is_asked_for_is_taken_without_a_word():
    choice = chosen(PLAIN._replace(solver="fmm", number=2), ["cpu"])
    assert choice == ("fmm", "")
    assert choice.line == "fmm"
