"""What Open MPI is told in a process that no launcher has started."""

import os

import pytest

from hybrid_nbody.parallel.alone import FOR_ONE_PROCESS, SIGNS, starting_alone


@pytest.fixture
def lone(monkeypatch):
    """An environment without the variables of a launcher."""
    for name in [name for name in os.environ if name.startswith((*SIGNS, "OMPI_MCA_"))]:
        monkeypatch.delenv(name)
    return monkeypatch


def told():
    return {name: os.environ[name] for name in FOR_ONE_PROCESS if name in os.environ}


def test_a_lone_process_looks_for_no_others(lone):
    before = dict(os.environ)
    with starting_alone():
        assert told() == FOR_ONE_PROCESS
    assert dict(os.environ) == before  # programs that it starts may have several ranks


@pytest.mark.parametrize(
    "sign",
    ["OMPI_COMM_WORLD_SIZE", "OMPI_MCA_ess_base_vpid", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"],
)
def test_nothing_is_told_where_there_may_be_others(lone, sign):
    lone.setenv(sign, "1")
    before = dict(os.environ)
    with starting_alone():
        assert dict(os.environ) == before


def test_what_is_asked_for_stays(lone):
    lone.setenv("OMPI_MCA_btl", "self,tcp")
    lone.setenv("OMPI_MCA_coll_hcoll_enable", "0")
    before = dict(os.environ)
    with starting_alone():
        assert told() == FOR_ONE_PROCESS | {"OMPI_MCA_btl": "self,tcp"}
    assert dict(os.environ) == before


def test_the_variables_end_with_a_failed_start(lone):
    with pytest.raises(RuntimeError), starting_alone():
        raise RuntimeError
    assert not told()
