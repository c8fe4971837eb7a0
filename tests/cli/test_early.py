"""A signal to one rank before MPI has started ends all ranks together."""

import os
import signal

import pytest
from support.command import python

from hybrid_nbody.interrupts import interrupted_afterwards

ONE_RANK_IS_INTERRUPTED = """
import os, signal, sys
from hybrid_nbody.cli.main import main
from hybrid_nbody.parallel import communicator

start = communicator.start_mpi

def interrupted(*meanwhile):
    if os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) == sys.argv[1]:
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
    return start(*meanwhile)

communicator.start_mpi = interrupted
sys.exit(main(sys.argv[3:]))
"""

ONE_RANK_ENDS = """
import os, signal, sys, threading
from hybrid_nbody.cli.main import main
from hybrid_nbody.parallel import starting

if os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) == "1":
    sys.exit(0)
if sys.argv[1] == "LONGEST":
    starting.LONGEST = 2.0
else:
    starting.GRACE = 0.5
    asked = getattr(signal, sys.argv[1])
    threading.Timer(2.0, os.kill, (os.getpid(), asked)).start()
sys.exit(main(sys.argv[2:]))
"""

CONFIG = """\
model: nbody
bodies: {kind: figure-eight}
time: {dt: 1e-3, steps: 5}
compute: {backend: cpu, threads: 1}
"""


@pytest.mark.parametrize(
    ("rank", "name", "said"), [(1, "SIGINT", "Ctrl-C"), (0, "SIGTERM", "SIGTERM")]
)
def test_a_signal_to_one_rank_before_mpi_starts_ends_all(tmp_path, mpirun, rank, name, said):
    (tmp_path / "job.yaml").write_text(CONFIG)
    words = (rank, name, "run", "job.yaml")
    result = mpirun(2, "-c", ONE_RANK_IS_INTERRUPTED, *words, cwd=tmp_path, timeout=60)
    assert result.returncode == 75, result.stdout + result.stderr
    assert result.stderr.count(f"hybrid_nbody: stopped by {said}") == 1
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"]


@pytest.mark.parametrize("cause", ["SIGINT", "SIGTERM", "LONGEST"])
def test_a_rank_that_waits_for_one_that_ended_does_not_wait_for_ever(tmp_path, mpirun, cause):
    """It waits within MPI, where Python hears no signal."""
    (tmp_path / "job.yaml").write_text(CONFIG)
    result = mpirun(2, "-c", ONE_RANK_ENDS, cause, "run", "job.yaml", cwd=tmp_path, timeout=60)
    assert result.returncode != 0
    within = "within 2 s" if cause == "LONGEST" else f"within 0.5 s after {cause}"
    assert f"hybrid_nbody: MPI has not started {within}: another rank ended" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["run job.yaml", "info job.yaml"])
def test_afterwards_signals_do_what_they_do_elsewhere(tmp_path, mpirun, command):
    (tmp_path / "job.yaml").write_text(CONFIG)
    result = mpirun(2, "-m", "hybrid_nbody", *command.split(), cwd=tmp_path, timeout=60)
    assert (result.returncode == 0) == (command == "run job.yaml")
    assert "stopped by" not in result.stderr


def test_a_ctrl_c_interrupts_after_the_imports():
    """Also where the tests themselves run in the background, which ignores it."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    done = []
    try:
        with pytest.raises(KeyboardInterrupt), interrupted_afterwards():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("all")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, previous)
    assert done == ["all"]


def test_where_a_ctrl_c_is_ignored_it_stays_so():
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupted_afterwards():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, previous)


WITHIN_NUMPY = """
import signal, sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == "datetime":  # which NumPy imports in C, and makes an error of its own of any
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # also for tests in the background
sys.meta_path.insert(0, Interrupts())
from hybrid_nbody.cli.main import main

assert "numpy" not in sys.modules and "datetime" not in sys.modules
print(main(["run", "none.yaml"]))
"""


def test_a_ctrl_c_while_numpy_is_imported_stops_the_program():
    assert python(WITHIN_NUMPY).split() == ["75"]


TAKEN_BY_MPI = """
import ctypes, signal, sys
from hybrid_nbody.parallel.starting import watched_start

taken = getattr(signal, sys.argv[1])
heard = []
signal.signal(taken, lambda *_: heard.append("heard"))
in_c = ctypes.CDLL(None).signal
in_c.argtypes = [ctypes.c_int, ctypes.c_void_p]
ignore = 1  # SIG_IGN
in_c(taken, ignore)  # as a library does that is loaded
with watched_start():
    signal.raise_signal(taken)
    in_c(taken, ignore)  # and in the start of MPI
signal.raise_signal(taken)
print(*heard)
"""


@pytest.mark.parametrize("name", ["SIGHUP", "SIGUSR1"])
def test_signals_that_the_start_of_mpi_takes_are_taken_back(name):
    assert python(TAKEN_BY_MPI, name).split() == ["heard", "heard"]
