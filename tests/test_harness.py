"""The harness itself: whatever goes wrong on one rank of three ends the run at once, says what, and
is no success.
"""

import os
import time
from functools import cache
from pathlib import Path

import pytest
from conftest import LONG_FILES

SUITES = Path(__file__).parent / "mpi_harness"
AT_ONCE = 60  # seconds; the start of three interpreters on a busy machine, far below any time-out


OPTIONS = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
"""The ranks are forks that have imported Hypothesis, which pytest would rewrite."""


@pytest.fixture(scope="module")
def run_suite(mpirun):
    """Run pytest on three ranks and return its exit status, its output and the seconds it took.

    The same suite is run once.
    """

    @cache
    def run(file, *arguments, ranks=3):
        begin = time.monotonic()
        words = ("-m", "pytest", *OPTIONS, SUITES / file, *arguments)
        done = mpirun(ranks, *words, timeout=AT_ONCE)
        return done.returncode, done.stdout + done.stderr, time.monotonic() - begin

    return run


@pytest.mark.parametrize(
    "test, message",
    [
        ("test_assert", "two and two are five"),
        ("test_fixture", "the fixture is broken"),
        ("test_teardown", "the teardown is broken"),
        ("test_sys_exit", "SystemExit: 0"),
        ("test_pytest_exit", "enough"),
        ("test_example", "the number is large"),
    ],
)
def test_failure_on_one_rank_ends_the_run(run_suite, test, message):
    status, output, _ = run_suite(f"fake_suite.py::{test}")
    assert status != 0
    assert "rank 1 of 3" in output
    assert test in output or test == "test_pytest_exit"
    assert message in output


def test_output_of_the_failing_rank_is_shown(run_suite):
    _, output, _ = run_suite("fake_suite.py::test_assert")
    assert "printed before the failure" in output


def test_crash_of_one_rank_ends_the_run(run_suite):
    status, output, _ = run_suite("fake_suite.py::test_killed")
    assert status != 0
    assert "Segmentation fault" in output


def test_rank_that_leaves_a_test_early_ends_the_run(run_suite):
    status, output, seconds = run_suite(
        "fake_suite.py::test_skip_on_one_rank", "-o", "faulthandler_timeout=3"
    )
    assert status != 0
    assert "Timeout" in output
    assert "in test_skip_on_one_rank" in output
    assert seconds < AT_ONCE


def test_file_that_one_rank_cannot_read_ends_the_run(run_suite):
    status, output, _ = run_suite("fake_import_error.py")
    assert status != 0
    assert "rank 1 of 3" in output
    assert "no such library on this node" in output


def test_ranks_with_different_tests_are_refused(run_suite):
    status, output, _ = run_suite("fake_other_tests.py")
    assert status != 0
    assert "test_barrier[1]" in output


def test_success_is_reported_once(run_suite):
    status, output, _ = run_suite("fake_suite.py", "-k", "test_well or test_same_examples")
    assert status == 0, output
    assert output.count("2 passed") == 1


def test_several_ranks_run_marked_tests_only(run_suite):
    status, output, _ = run_suite("fake_serial.py")
    assert status == 0, output
    assert "2 passed" in output
    assert "2 deselected" in output


def test_one_rank_runs_every_test_or_says_why_not(run_suite):
    status, output, _ = run_suite("fake_serial.py", "-rs", ranks=1)
    assert status == 0, output
    assert "Test requires 2 MPI processes" in output
    assert "3 passed, 1 skipped" in output or (
        "2 passed, 2 skipped" in output and "no usable CUDA GPU: " in output
    )


def test_foreign_mpirun_is_refused(mpirun):
    environment = {**os.environ, "SLURM_STEP_NUM_TASKS": "3"}
    done = mpirun(1, "-m", "pytest", SUITES / "fake_serial.py", env=environment)
    assert done.returncode != 0
    assert "it is another library's" in done.stdout + done.stderr


def test_no_marked_test_is_an_exit_status_of_its_own(run_suite):
    status, _, _ = run_suite("fake_serial.py", "-k", "unmarked")
    assert status == 5


def test_files_that_workers_get_first_are_there():
    assert [name for name in LONG_FILES if not (SUITES.parent / name).is_file()] == []


@pytest.mark.mpi
def test_ranks_share_a_folder(comm, shared_tmp_path):
    (shared_tmp_path / str(comm.rank)).touch()
    comm.Barrier()
    assert sorted(path.name for path in shared_tmp_path.iterdir()) == sorted(
        map(str, range(comm.size))
    )
