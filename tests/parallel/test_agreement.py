"""Calls that one rank makes alone end with a message on those that would wait for ever."""

import numpy as np
import pytest
from support.ranks import communicator

from hybrid_nbody import Simulation
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel import agreement, waiting
from hybrid_nbody.parallel.agreement import Agreement
from hybrid_nbody.parallel.communicator import start_mpi
from hybrid_nbody.parallel.waiting import LostRankError

__all__ = ["communicator"]

pytestmark = pytest.mark.mpi


@pytest.fixture
def several(communicator):
    """All ranks, more than one."""
    if communicator.size == 1:
        pytest.skip("one rank makes every call alone")
    return communicator


def test_ranks_that_make_different_calls_are_both_told(several):
    calls = Agreement(several.comm)
    calls.on("energy")
    with pytest.raises(InputError, match="rank 0 calls save while rank 1 calls run: all ranks"):
        calls.on("save" if several.is_root else "run")
    calls.on("energy")


def test_a_rank_is_told_that_another_has_left(several, monkeypatch):
    monkeypatch.setattr(agreement, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.01)
    calls = Agreement(several.comm)
    last = several.size - 1
    if several.rank == last:
        calls._leave()
    else:
        with pytest.raises(LostRankError, match=f"rank {last} has ended its program"):
            calls.on("energy")
    several.barrier()


def test_a_function_that_asks_on_one_rank_alone_ends_the_run(several):
    simulation = Simulation(
        model="nbody",
        bodies={"kind": "random-box", "n": 8},
        time={"dt": 0.01},
        compute={"backend": "cpu", "threads": 1},
        communicator=several,
    )

    @simulation.every(steps=2)
    def look(it):
        if several.is_root and it.steps == 4:
            it.gathered("bodies/position")

    with pytest.raises(InputError, match=r"calls Simulation\.gathered while rank 1 calls"):
        simulation.run(steps=8)
    assert simulation.steps == 4
    assert np.isfinite(simulation.energy)


def test_a_program_has_one_communicator_of_all_ranks():
    # MPI has some 2000: a loop over simulations would use them up
    assert start_mpi() is start_mpi()
