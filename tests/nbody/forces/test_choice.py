"""The choice between the direct sum and the fast multipole method."""

import pytest

from hybrid_nbody.nbody.forces.choice import Wanted, chosen
from hybrid_nbody.nbody.forces.speed import SPEEDS

FALLING = (1e-2, 1e-4, 1e-5, 1e-7)
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
def test_the_crossover_falls_with_the_accuracy_asked_for(device):
    found = [
        SPEEDS[device].crossover(accuracy, "single", 1) for accuracy in (1e-2, 1e-4, 1e-5, 1e-7)
    ]
    assert found == sorted(found)


@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
def test_ranks_of_a_cpu_do_not_move_the_crossover(precision):
    speed = SPEEDS["cpu"]
    assert speed.crossover(1e-4, precision, 4) == speed.crossover(1e-4, precision, 1)


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
