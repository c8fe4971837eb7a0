"""The scripts for MPICH and Open MPI: what they start on which hosts, and a run that is stopped and
goes on.
"""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import _mpirun, _python
from support.forked import make_environment
from support.jobs import (
    assert_ends_as_if_never_stopped,
    finished,
    pid_of_rank,
    processes_of,
    wait_for_checkpoint,
    write_job,
)

SCRIPTS = Path(__file__).resolve().parents[2] / "run_scripts"
OWN = "openmpi.sh" if len(_mpirun()) > 1 else "mpich.sh"
"""The script for the MPI of these tests."""

VERSIONS = {"mpich.sh": "HYDRA build details:", "openmpi.sh": "mpirun (Open MPI) 5.0.11"}

STEPS = 2000
"""Long enough to be stopped on the way, short enough to be done twice."""


@pytest.fixture
def job(tmp_path):
    """A configuration; its run goes to ``tmp_path / "out"``."""
    return write_job(tmp_path, "nbody")


@pytest.fixture
def environment(tmp_path):
    """An environment whose ranks start soon."""
    return make_environment(tmp_path / "fast")


def start(script, *arguments, environment=sys.prefix, **variables):
    """Start a script; its output can be read."""
    command = [str(SCRIPTS / script), *map(str, arguments)]
    settings = (
        os.environ
        | {"PYTHONPATH": str(SCRIPTS.parent), "VIRTUAL_ENV": str(environment)}
        | variables
    )
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=settings
    )


# ---- A run ---------------------------------------------------------------------------------------


def test_the_same_command_goes_on_after_a_signal_to_the_same_bits(job, tmp_path, environment):
    out = tmp_path / "out"
    words = (OWN, job, out, "--set", f"time.steps={STEPS}")
    process = start(*words, environment=environment, RANKS_PER_NODE="3")
    wait_for_checkpoint(out, 100)
    process.send_signal(signal.SIGTERM)
    code, text = finished(process, tmp_path)
    assert code == 75, text
    assert text.splitlines()[-1] == f"Stopped early; the same command continues {out}"
    code, text = finished(start(*words, environment=environment, RANKS_PER_NODE="2"), tmp_path)
    assert code == 0, text
    assert "==== hybrid-nbody resume " in text
    assert_ends_as_if_never_stopped(out, job, STEPS)


def test_a_killed_rank_ends_the_script_and_it_says_how_to_go_on(job, tmp_path, environment):
    out = tmp_path / "out"
    process = start(OWN, job, out, environment=environment, RANKS_PER_NODE="3")
    wait_for_checkpoint(out, 100)
    os.kill(pid_of_rank(1, job), signal.SIGKILL)
    code, text = finished(process, tmp_path, timeout=10)
    assert code not in (0, 75)
    assert "the same command continues from the newest checkpoint" in text.splitlines()[-1]
    assert processes_of(job) == []


# ---- What is started -----------------------------------------------------------------------------


@pytest.fixture
def stand_in(tmp_path):
    """An environment whose mpirun writes down how it was called; return a function that starts a
    script in it.
    """
    folder = tmp_path / "environment"
    (folder / "bin").mkdir(parents=True)
    programs = {
        "python": f'exec {shlex.join(_python())} "$@"\n',
        "mpirun": f'[ "$1" != --version ] || exec cat {folder}/version\n'
        f'echo "$*" >>{folder}/calls\n'
        f'[[ "$*" != *doctor* ]] || exit "$(cat {folder}/doctor)"\n',
        "nvidia-smi": '[ "$1" != -L ] || printf "GPU %s\\n" 0 1 2 3\n',
        "scontrol": '[ "$*" != "show hostnames a[1-2]" ] || printf "%s\\n" a1 a2\n',
    }
    for name, text in programs.items():
        (folder / "bin" / name).write_text(f"#!/usr/bin/env bash\n{text}")
        (folder / "bin" / name).chmod(0o755)

    def run(script, *arguments, doctor=0, **variables):
        (folder / "version").write_text(VERSIONS[script] + "\n")
        (folder / "doctor").write_text(f"{doctor}\n")
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        code, text = finished(
            start(script, *arguments, environment=folder, PATH=path, **variables), tmp_path
        )
        calls = folder / "calls"
        return code, text, calls.read_text().splitlines() if calls.exists() else []

    return run


@pytest.mark.parametrize(
    ("script", "alone", "hosts", "bound"),
    [
        ("mpich.sh", "-n 4 -ppn 4 ", "-n 8 -ppn 4 -hosts a1,a2 ", "-bind-to core:"),
        (
            "openmpi.sh",
            "--allow-run-as-root -n 4 --map-by ppr:4:node:oversubscribe --bind-to none ",
            "--allow-run-as-root -n 8 --host a1:4,a2:4 "
            "--map-by ppr:4:node:oversubscribe --bind-to none ",
            "--map-by ppr:1:node:pe=",
        ),
    ],
)
def test_one_rank_a_gpu_on_all_hosts_and_doctor_first(
    stand_in, tmp_path, script, alone, hosts, bound
):
    code, text, calls = stand_in(script, "x.yaml", tmp_path / "out", "--overwrite")
    assert code == 0, text
    doctor, run = calls
    assert doctor.startswith(alone)
    assert doctor.endswith(" -m hybrid_nbody doctor")
    assert run.startswith(alone)
    assert run.endswith(
        f" -m hybrid_nbody run x.yaml --set output.directory='{tmp_path / 'out'}' --overwrite"
    )
    _, _, calls = stand_in(script, "x.yaml", tmp_path / "out", SLURM_JOB_NODELIST="a[1-2]")
    assert calls[-1].startswith(hosts)
    _, _, calls = stand_in(
        script, "x.yaml", tmp_path / "out", RANKS_PER_NODE="1", BIND="yes", MPIRUN_FLAGS="-x -y"
    )
    assert bound in calls[-1]
    assert " -x -y " in calls[-1]


@pytest.mark.parametrize("script", VERSIONS)
def test_what_doctor_finds_wrong_stops_the_script(stand_in, tmp_path, script):
    code, text, calls = stand_in(script, "x.yaml", tmp_path / "out", doctor=2)
    assert code == 2
    assert "error: doctor ended with status 2" in text
    assert len(calls) == 1


def test_another_mpi_is_refused_with_the_right_script(stand_in, tmp_path, monkeypatch):
    monkeypatch.setitem(VERSIONS, "mpich.sh", VERSIONS["openmpi.sh"])
    code, text, calls = stand_in("mpich.sh", "x.yaml", tmp_path / "out")
    assert (code, calls) == (1, [])
    assert text.endswith("belongs to another MPI: use run_scripts/openmpi.sh\n")


@pytest.mark.parametrize("arguments", [[], ["x.yaml"], ["x.yaml", "--overwrite"]])
def test_too_few_arguments_are_refused_with_the_usage(tmp_path, arguments):
    code, text = finished(start(OWN, *arguments), tmp_path)
    assert code == 1
    assert text == f"error: usage: {OWN} FILE.yaml DIRECTORY [arguments of hybrid_nbody run]\n"


# ---- Hosts ---------------------------------------------------------------------------------------

FILES = {
    "HOSTFILE": "# the cluster\nb1:4\nb2 slots=4\n\nb1:4\n",
    "PBS_NODEFILE": "b1\nb1\nb2\nb2\n",
    "PE_HOSTFILE": "b1 4 all.q@b1 UNDEFINED\nb2 4 all.q@b2 UNDEFINED\n",
}


@pytest.mark.parametrize("name", [*FILES, "LSB_HOSTS", ""])
def test_hosts_are_those_of_the_scheduler_once_each_in_their_order(tmp_path, name):
    variables = {"LSB_HOSTS": "b1 b1 b2"} if name == "LSB_HOSTS" else {}
    if name in FILES:
        (tmp_path / "hosts").write_text(FILES[name])
        variables = {name: str(tmp_path / "hosts")}
    code = f"source {SCRIPTS}/common.sh; source {SCRIPTS}/cluster.sh; hosts"
    clean = {
        key: value
        for key, value in os.environ.items()
        if key not in (*FILES, "LSB_HOSTS", "SLURM_JOB_NODELIST")
    }
    result = subprocess.run(
        ["bash", "-euc", code], capture_output=True, text=True, env=clean | variables
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == (["b1", "b2"] if name else ["localhost"])


@pytest.mark.parametrize("script", VERSIONS)
def test_a_list_that_names_no_host_is_refused_in_one_line(stand_in, tmp_path, script):
    missing, empty = tmp_path / "missing.txt", tmp_path / "empty.txt"
    empty.write_text("# no host yet\n\n")
    for path, reason in (
        (missing, f"HOSTFILE: {missing}: no such file"),
        (tmp_path, f"HOSTFILE: {tmp_path}: not a readable file"),
        (empty, f"{empty}: names no host"),
    ):
        code, text, calls = stand_in(script, "x.yaml", tmp_path / "out", HOSTFILE=str(path))
        assert (code, calls) == (2, [])
        assert text.splitlines()[1:] == [f"error: {reason}"]  # the first line names the environment


def test_one_host_and_one_rank_are_no_plural(stand_in, tmp_path):
    _, text, _ = stand_in("mpich.sh", "x.yaml", tmp_path / "out", RANKS_PER_NODE="1")
    assert "\n1 host (localhost), 1 rank a host\n" in text
    _, text, _ = stand_in("mpich.sh", "x.yaml", tmp_path / "out", SLURM_JOB_NODELIST="a[1-2]")
    assert "\n2 hosts (a1 a2), 4 ranks a host\n" in text


@pytest.mark.parametrize("script", sorted(path.name for path in SCRIPTS.glob("*.sh")))
def test_scripts_can_be_parsed(script):
    result = subprocess.run(["bash", "-n", SCRIPTS / script], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
