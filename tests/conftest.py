"""What all tests share: fixtures over ranks and devices, and a run on several ranks that ends when
one of them fails.

``pytest`` runs every test on one rank. ``mpirun -n 3 python -m pytest`` runs those marked `mpi` on
three: the root reports, and a rank that fails prints its traceback and ends all. pytest-mpi alone
would wait for ever in the next barrier.
"""

import contextlib
import fcntl
import functools
import gc
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pytest

from hybrid_nbody.backends.cpu import prepare_numba

LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
RANKS = max(int(os.environ.get(name) or 1) for name in LAUNCHERS)
CORES = len(os.sched_getaffinity(0))
capture = None  # pytest's plugin that holds standard output and error back

# Numba reads its threads when it is imported. One and two threads are compared on any machine;
# several ranks share it.
os.environ.setdefault(
    "NUMBA_NUM_THREADS", str(max(4, CORES) if RANKS == 1 else max(2, CORES // RANKS))
)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# More threads than cores: those that wait must not keep the others from working.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
# Several workers fill the cores already.
os.environ.setdefault("HYBRID_NBODY_PRECOMPILE", "0")
# A test file may import Numba before a backend has prepared it: all kernels would be compiled
# twice, for tests in this process and for runs, and be other code here than there.
prepare_numba(threads=1)


# ---- Several workers -----------------------------------------------------------------------------

LONG_FILES = (
    "test_fluid_runs.py",
    "test_runs.py",
    "nbody/kernels/test_tree.py",
    "fluid/staggered/test_solids.py",
    "nbody/forces/test_external.py",
    "analysis/test_progress.py",
    "fluid/kernels/test_cuda_source.py",
    "nbody/forces/test_massless.py",
    "benchmarks/fluid/test_fluid.py",
    "benchmarks/gravity/test_tune.py",
    "fluid/kernels/test_cpu_code.py",
    "nbody/kernels/test_cpu_code.py",
    "benchmarks/scaling/test_runs.py",
    "test_pages.py",
    "fluid/staggered/test_loads.py",
    "nbody/kernels/test_machine_code.py",
    "fluid/test_page.py",
    "backends/test_subnormals.py",
    "test_staggered_runs.py",
    "output/test_campaigns.py",
    "fluid/solvers/test_multigrid.py",
    "nbody/integrators/test_hermite.py",
    "test_killed_rank.py",
    "test_two_hosts.py",
    "test_harness.py",
    "cli/test_main.py",
    "nbody/kernels/test_cuda_source.py",
    "analysis/test_page.py",
    "nbody/kernels/test_gpu_tree.py",
    "fluid/kernels/test_cpu.py",
    "nbody/kernels/test_kernels.py",
    "benchmarks/scaling/test_scaling.py",
    "benchmarks/harness/test_command.py",
    "run_scripts/test_slurm.py",
    "run_scripts/test_mpirun.py",
)
"""Files that take longest, and those that compile most. A worker gets the next file in this order
when it has done with one: the last ones should be short, so that all end together. Fluids and
bodies take turns: two workers that need the same kernels at the same time would both compile
them."""


def _long_files_first(items):
    ranks = {str(Path(__file__).parent / name): index for index, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: ranks.get(str(item.path), len(ranks)))


# ---- Several ranks -------------------------------------------------------------------------------


def world():
    """Return the communicator of all ranks; MPI starts with the first call."""
    from mpi4py import MPI

    return MPI.COMM_WORLD


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """On several ranks: refuse a foreign mpirun, and let the root alone report."""
    global capture
    capture = config.pluginmanager.getplugin("capturemanager")
    _use_hypothesis_profile()
    if RANKS == 1:
        return
    if world().size != RANKS:
        pytest.exit(
            f"mpirun started {RANKS} processes, MPI sees {world().size}: it is another library's", 2
        )
    if world().rank > 0:
        config.pluginmanager.unregister(name="terminalreporter")


def pytest_ignore_collect(collection_path):
    """On several ranks: pass over files without a test marked `mpi`, to import fewer files."""
    if RANKS == 1 or collection_path.suffix != ".py":
        return None  # as pytest decides
    return True if "mark.mpi" not in collection_path.read_text() else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """On several ranks: leave out tests that are not marked `mpi`.

    For several workers: long files first.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        _long_files_first(items)
    if RANKS == 1 and not config.getoption("only_mpi"):
        return
    config.hook.pytest_deselected(
        items=[item for item in items if not item.get_closest_marker("mpi")]
    )
    items[:] = [item for item in items if item.get_closest_marker("mpi")]
    for item in items:
        _stop_at_first_failing_example(item)


def pytest_collection_finish(session):
    """End the run if the ranks are about to run different tests: they would wait for each other."""
    # thousands of tests stay to the end: collecting garbage, which some do on purpose, passes them
    # over
    gc.freeze()
    if RANKS > 1:
        names = world().allgather([item.nodeid for item in session.items])
        if any(others != names[0] for others in names):
            odd = sorted(set.union(*map(set, names)) - set.intersection(*map(set, names)))
            end_all_ranks(
                "collection", f"the ranks found different tests, or in another order: {odd}"
            )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    """End all ranks when a test, or a fixture of it, fails on this one."""
    report = yield
    if report.failed and RANKS > 1:
        captured = "".join(f"\n---- {title} ----\n{text}" for title, text in report.sections)
        end_all_ranks(f"{item.nodeid} ({report.when})", report.longreprtext + captured)
    return report


def pytest_collectreport(report):
    """End all ranks when a test file cannot be read on this one."""
    if report.failed and RANKS > 1:
        end_all_ranks(f"collection of {report.nodeid}", report.longreprtext)


def pytest_internalerror(excrepr):
    """End all ranks when pytest itself fails on this one."""
    if RANKS > 1:
        end_all_ranks("pytest", str(excrepr))


def pytest_keyboard_interrupt(excinfo):
    """End all ranks when this one is told to stop, by a signal or by `pytest.exit`."""
    if RANKS > 1:
        end_all_ranks("the run", excinfo.exconly())


def end_all_ranks(what, text):
    """Print what failed on this rank and stop every rank."""
    message = f"\n==== rank {world().rank} of {RANKS}: {what} failed ====\n{text}\n"
    if capture:
        capture.suspend(in_=True)  # give standard error back
    os.write(2, message.encode())  # in one piece, so that the messages of two ranks do not mix
    _wait_until_read(2)
    world().Abort(1)


def _wait_until_read(descriptor, patience=5.0):
    """Wait until mpirun has read what stands in its pipe: at an abort it drops what it has not."""
    end = time.monotonic() + patience
    with contextlib.suppress(OSError):  # no pipe
        while (
            struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0]
            and time.monotonic() < end
        ):
            time.sleep(0.01)
    time.sleep(0.2)  # and has passed it on


# ---- Hypothesis ----------------------------------------------------------------------------------


def _use_hypothesis_profile():
    """Compilation makes first examples slow, and all ranks must draw the same ones, whatever the
    time they take.
    """
    from hypothesis import HealthCheck, settings

    same_everywhere = RANKS > 1 or "CI" in os.environ
    settings.register_profile(
        "suite",
        deadline=None,
        derandomize=same_everywhere,
        suppress_health_check=[HealthCheck.too_slow],
        **({"database": None} if same_everywhere else {}),
    )
    settings.load_profile("suite")


def _stop_at_first_failing_example(item):
    """End all ranks at once: Hypothesis would repeat the example on this rank alone, out of step
    with the others.
    """
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    if handle is None or RANKS == 1 or hasattr(handle.inner_test, "stops_all_ranks"):
        return
    from hypothesis.errors import HypothesisException

    inner = handle.inner_test

    @functools.wraps(inner)
    def guarded(*args, **kwargs):
        try:
            return inner(*args, **kwargs)
        except HypothesisException:
            raise
        except (Exception, SystemExit, pytest.fail.Exception):
            text = str(pytest.ExceptionInfo.from_current().getrepr(style="short", showlocals=True))
            end_all_ranks(item.nodeid, text)

    guarded.stops_all_ranks = True
    handle.inner_test = guarded


# ---- Devices -------------------------------------------------------------------------------------


@functools.cache
def why_no_gpu():
    """Return why no CUDA GPU can be used here, or an empty string."""
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy's own errors cannot be named where CuPy is not installed
        return f"no usable CUDA GPU: {type(error).__name__}: {error}"
    return "" if count > 0 else "no usable CUDA GPU: the driver shows none"


def pytest_runtest_setup(item):
    """Skip tests marked `gpu`, with the reason, where there is no GPU."""
    if item.get_closest_marker("gpu") and why_no_gpu():
        pytest.skip(why_no_gpu())


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def backend_name(request):
    """Every kind of backend there is."""
    return request.param


# ---- Ranks and files -----------------------------------------------------------------------------


@pytest.fixture(scope="session")
def comm():
    """The communicator of all ranks, of mpi4py."""
    return world()


@pytest.fixture
def shared_tmp_path(comm):
    """One empty folder for all ranks, removed when the last has done with it."""
    path = comm.bcast(tempfile.mkdtemp(prefix="hybrid_nbody-") if comm.rank == 0 else None)
    yield Path(path)
    comm.Barrier()
    if comm.rank == 0:
        shutil.rmtree(path, ignore_errors=True)


@functools.cache
def _mpirun():
    """Return mpirun, the one beside Python first, with the flags that let it run anywhere."""
    beside = Path(sys.executable).with_name("mpirun")
    program = str(beside) if beside.exists() else shutil.which("mpirun")
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" in version or "OpenRTE" in version:
        return [program, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    return [program]


@pytest.fixture(scope="session")
def mpirun():
    """Run Python on several ranks from a serial test: ``mpirun(3, "-m", "hybrid_nbody", "run",
    …)``.

    Returns the completed process, its output as text. One that takes longer than `timeout` seconds
    fails the test.
    """
    assert RANKS == 1, "a test that starts mpirun runs serially: take its mark `mpi` away"
    return _run_on_ranks


def _python(environment=None):
    """Return the words that start Python as a rank; Open MPI's ranks cannot be forks."""
    from support.forked import ready_python

    return [sys.executable] if len(_mpirun()) > 1 else ready_python(environment)


def _run_on_ranks(ranks, *arguments, timeout=120, **kwargs):
    python = _python(kwargs.get("env"))
    command = [*_mpirun(), "-n", str(ranks), *python, *map(str, arguments)]
    pipes = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    with subprocess.Popen(command, **pipes | kwargs) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()  # mpirun ends its ranks, which hold the pipes
            output, errors = process.communicate(timeout=30)
            pytest.fail(f"still running after {timeout} s: {command}\n{output}\n{errors}")
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
