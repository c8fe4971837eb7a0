"""Two hosts that one machine plays, to show that nothing needs one node or shared memory."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import _mpirun, _run_on_ranks

TWO_HOSTS = str(Path(__file__).with_name("two_hosts.sh"))
UNSHARE = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--uts", "--ipc", "--fork")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
ROOT = str(Path(__file__).resolve().parents[2])


class Groups:
    """Ranks in two groups without shared memory, by an option of MPICH; one name for both hosts."""

    def __init__(self, folder):
        self.folders = {"one": folder / "local", "two": folder / "local"}
        folder.joinpath("local").mkdir()
        if "Open MPI" in _version():
            pytest.skip(
                "an option of MPICH, and this mpirun is Open MPI's: namespaces play the hosts there"
            )

    def run(self, *arguments, timeout=150):
        """Run Python on two ranks of each host; return the completed process."""
        environment = os.environ | {"MPIR_CVAR_NUM_CLIQUES": "2", "PYTHONPATH": ROOT}
        return _run_on_ranks(4, *arguments, timeout=timeout, env=environment)


class Namespaces:
    """Two hosts with names, networks, shared memory and local folders of their own."""

    def __init__(self, folder):
        if reason := _why_no_namespaces(str(folder)):
            pytest.skip(reason)
        self.folder = folder
        self.folders = {"one": folder / "one", "two": folder / "two"}

    def run(self, *arguments, timeout=150):
        """Run Python on two ranks of each host; return the completed process."""
        command = [*UNSHARE, TWO_HOSTS, self.folder, *self._mpirun(), sys.executable, *arguments]
        environment = os.environ | {"PYTHONPATH": ROOT}
        words = list(map(str, command))
        return subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            start_new_session=True,
        )

    def _mpirun(self):
        """Return the launcher with what it needs to reach both hosts, and no other network."""
        hosts = ",".join(f"{address}:2" for address in ADDRESSES)
        enter = self.folder / "enter"
        if "Open MPI" not in _version():
            return [
                *_mpirun(),
                "-launcher",
                "ssh",
                "-launcher-exec",
                enter,
                "-hosts",
                hosts,
                "-n",
                "4",
            ]
        network = [
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "btl",
            "tcp,sm,self",
            "--mca",
            "btl_tcp_if_include",
            "cable",
        ]
        agent = ["--prtemca", "plm_ssh_agent", enter, "--prtemca", "oob_tcp_if_include", "cable"]
        return [
            *_mpirun(),
            *agent,
            *network,
            "-x",
            "PYTHONPATH",
            "-x",
            "TMPDIR",
            "--host",
            hosts,
            "-n",
            "4",
        ]


@functools.cache
def _version():
    return subprocess.run([_mpirun()[0], "--version"], capture_output=True, text=True).stdout


@functools.cache
def _why_no_namespaces(folder):
    """Return why this machine cannot play two hosts, or an empty string."""
    try:
        command = [*UNSHARE, TWO_HOSTS, folder, "true"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"namespaces cannot be made here: {error}"
    return f"namespaces cannot be made here: {done.stderr.strip()}" if done.returncode else ""


KINDS = {"groups": Groups, "namespaces": Namespaces}
