"""A suite for tests/test_harness.py, which runs it on three ranks: each test but the first fails on
rank 1 alone.

Pytest does not collect this file by itself. Every test ends in a barrier, in which the ranks that
are well would wait for ever.
"""

import os
import signal
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.mpi
SICK = 1


@pytest.fixture
def fixture_that_fails(comm):
    if comm.rank == SICK:
        raise RuntimeError("the fixture is broken")


@pytest.fixture
def teardown_that_fails(comm):
    yield
    assert comm.rank != SICK, "the teardown is broken"
    comm.Barrier()


def test_well(comm, shared_tmp_path):
    if comm.rank == 0:
        (shared_tmp_path / "seen").touch()
    comm.Barrier()
    assert (shared_tmp_path / "seen").exists()
    assert set(comm.allgather(str(shared_tmp_path))) == {str(shared_tmp_path)}


def test_assert(comm):
    print("printed before the failure")
    assert comm.rank != SICK, "two and two are five"
    comm.Barrier()


def test_fixture(comm, fixture_that_fails):
    comm.Barrier()


def test_teardown(comm, teardown_that_fails):
    comm.Barrier()


def test_sys_exit(comm):
    if comm.rank == SICK:
        sys.exit(0)
    comm.Barrier()


def test_pytest_exit(comm):
    if comm.rank == SICK:
        pytest.exit("enough")
    comm.Barrier()


def test_killed(comm):
    if comm.rank == SICK:
        os.kill(os.getpid(), signal.SIGSEGV)
    comm.Barrier()


def test_skip_on_one_rank(comm):
    if comm.rank == SICK:
        pytest.skip("only here")
    comm.Barrier()


@given(number=st.integers(0, 100))
def test_same_examples(comm, number):
    assert len(set(comm.allgather(number))) == 1


@given(number=st.integers(0, 100))
def test_example(comm, number):
    assert comm.rank != SICK or number < 10, "the number is large"
    comm.Barrier()
