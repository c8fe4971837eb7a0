"""Teams of ranks make devices and transports once, whatever they run one after another."""

from itertools import product

import numpy as np
import pytest

from hybrid_nbody.benchmarks.scaling import runs as scaling_runs
from hybrid_nbody.benchmarks.scaling.problems import STRONG, Fluid, Gravity
from hybrid_nbody.benchmarks.scaling.runs import TREE_CALLS, Parts, Run, Team, WatchedRun
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.transport.choice import choose_transport

SERIES = (Gravity(STRONG, 16, "allgather"), Gravity(STRONG, 24, "ring"), Fluid(STRONG, 8, 2))


@pytest.fixture
def connected(monkeypatch):
    """The backends and ranks that a transport was chosen for, and what was asked for."""
    calls = []

    def counted(asked, backend, communicator, gpus_shared):
        calls.append((asked, backend, communicator))
        return choose_transport(asked, backend, communicator, gpus_shared)

    monkeypatch.setattr(scaling_runs, "choose_transport", counted)
    return calls


def carried(team, transport):
    """Run everything on a team, watched and not; return the transports below the exchanges."""
    found = []
    for kind, series in product((Run, WatchedRun), SERIES):
        compute = {
            "backend": "cpu",
            "threads": 1,
            "transport": transport,
            "exchange": series.exchange,
        }
        run = kind(series.config(team.ranks) | {"compute": compute}, team)
        carrier = run.built.exchange.transport
        found.append(getattr(carrier, "carrier", carrier))
        run.close()
    return found


@pytest.mark.mpi
def test_a_team_connects_once_for_each_choice(communicator, connected):
    teams = [Team(communicator, ranks) for ranks in range(1, communicator.size + 1)]
    carriers = []
    for transport in ("auto", "host", "auto"):
        for team in teams:
            carriers.append(team.do(lambda team=team, asked=transport: carried(team, asked)))
    mine = [team for team in teams if team.belongs]
    assert [(asked, ranks) for asked, _, ranks in connected] == [
        (asked, team.group) for asked in ("auto", "host") for team in mine
    ]
    for found in filter(None, carriers):
        assert all(carrier is found[0] for carrier in found)
    first, again = carriers[: len(teams)], carriers[-len(teams) :]
    assert all(one is None or one[0] is other[0] for one, other in zip(first, again, strict=True))


@pytest.mark.mpi
def test_a_device_is_in_use_again_when_it_is_placed_again(communicator):
    used, team = [], Team(communicator, communicator.size)
    first = team.place("cpu", 1, communicator)
    first.backend.use = lambda: used.append(first.backend)
    assert team.place("cpu", 1, communicator, "auto") is first
    assert used == [first.backend]
    assert team.place("cpu", 2, communicator) is not first


@pytest.mark.mpi
def test_a_closed_run_lets_go_of_other_ranks_arrays(communicator, monkeypatch):
    team = Team(communicator, communicator.size)
    run = Run(SERIES[-1].config(team.ranks) | {"compute": {"backend": "cpu", "threads": 1}}, team)
    released = []
    monkeypatch.setattr(run.built.exchange.transport, "release", lambda: released.append(run.built))
    run.close()
    assert released == [None]  # once, when the model was gone


def test_the_calls_that_are_watched_are_those_of_a_communicator():
    assert all(callable(getattr(Communicator, name)) for name in TREE_CALLS)


def test_the_rank_that_comes_last_waits_for_nobody():
    parts = Parts(total=np.array([1.0, 1.1, 1.0]), exchange=np.array([0.5, 0.2, 0.3]))
    assert parts.transfer == 0.2
    np.testing.assert_allclose(parts.wait, [0.3, 0.0, 0.1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(parts.compute, [0.5, 0.9, 0.7], rtol=0, atol=1e-15)
    np.testing.assert_allclose(parts.compute + parts.transfer + parts.wait, parts.total, rtol=1e-15)
