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


@pytest.mark.parametrize(("device", "factor"), [("cpu", 1), ("gpu", 4)])
def test_a_tree_on_several_gpus_takes_more_bodies_to_win(device, factor):
    speed = SPEEDS[device]
    assert speed.crossover(1e-4, "single", 4) == factor * speed.crossover(1e-4, "single", 1)
    least = speed.crossover(1e-4, "single", 4)
    assert chosen(PLAIN._replace(number=least - 1), [device] * 4).name == "direct"
    assert chosen(PLAIN._replace(number=least), [device] * 4).name == "fmm"


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
