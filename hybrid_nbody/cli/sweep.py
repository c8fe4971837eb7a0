"""A sweep: the runs of all combinations of some values, side by side, and a table of them."""

import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from hybrid_nbody.analysis.excess import lines_of, worst_of
from hybrid_nbody.analysis.runs_table import text_of, write_csv
from hybrid_nbody.cli.sweep_table import (
    FAILED_STATE,
    TABLE,
    check_is_of_runs,
    check_members,
    kept_rows,
    row_of,
    warnings_of,
)
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import STOPPED_EARLY, InputError, NumericalError
from hybrid_nbody.output import directory
from hybrid_nbody.output.sealing import remove_files
from hybrid_nbody.parallel.communicator import Communicator, alone
from hybrid_nbody.parallel.placement import free_cores
from hybrid_nbody.parallel.waiting import wait
from hybrid_nbody.running.members import (
    FAILED,
    Member,
    MemberState,
    axes_of,
    members_of,
)
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.start import acknowledging, resolved
from hybrid_nbody.running.sweep import Worker, claimed, mark_as_ended
from hybrid_nbody.simulation.signals import StopSignals

SHOWN = ("state", "warning", "time")
"""Columns on a terminal, between the values and the highlights of the model."""

NAP_SECONDS = 0.05
"""Time between two looks at other processes."""

OF_A_STOP = re.compile(rb"hybrid_nbody: (stopped by )?(Ctrl-C|SIG[A-Z0-9]+)\b")
"""The lines of a process that is asked to stop."""

DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Sweep:
    """What is to be done.

    Attributes
    ----------
    file : str
        The configuration.
    folder : Path
        Where the directories of all members are.
    members : tuple of Member
    config : ModelConfig
        Of one of them.
    """

    file: str
    folder: Path
    members: tuple[Member, ...]
    config: ModelConfig

    @property
    def table(self) -> Path:
        """Return the table of its runs."""
        return self.folder / TABLE

    def with_threads(self, threads: int) -> "Sweep":
        """Return the sweep with the threads of each run, unless its configuration says them."""
        if self.config.compute.threads != "auto":
            return self
        setting = f"compute.threads={threads}"
        members = [replace(member, settings=(*member.settings, setting)) for member in self.members]
        return replace(self, members=tuple(members))


def sweep(arguments: Namespace, communicator: Communicator) -> int:
    """Carry out the command; return the exit code.

    Raises
    ------
    InputError
        On every rank, if no member can be run.
    """
    planned = communicator.on_root(lambda: _planned(arguments))
    if arguments.together:
        return _together(arguments, planned, communicator)
    number, of = _place(arguments, communicator, planned)
    if of > 1:
        planned = planned.with_threads(_threads(communicator, of))
    say = None if arguments.helper else acknowledging(communicator)
    with StopSignals(say) as signals:  # also while this process waits for others
        is_wanted = _wanted(arguments.helper, signals)
        worker = Worker(planned.file, planned.members, number, of, _say, is_wanted)
        if arguments.helper:
            return 0 if worker.work(communicator) else STOPPED_EARLY
        if communicator.is_root:
            _say(f"{len(planned.members)} runs in {planned.folder}, {_side_by_side(of)}")
        if communicator.size > 1:
            _work_on_a_rank(worker, planned, communicator)
        else:
            helpers = _started(arguments, planned, of)
            if helpers:
                _take_device(0, planned.config)
            _work_with_helpers(worker, helpers, communicator, signals)
    return communicator.on_root(lambda: _ended(planned))


def _together(arguments: Namespace, planned: Sweep, communicator: Communicator) -> int:
    """Compute all members at once; return the exit code."""
    if arguments.jobs is not None:
        raise InputError("--jobs: with --together all is one job; leave it out").on_all_ranks()
    from hybrid_nbody.cli.together import sweep_together

    if communicator.size > 1:
        _take_device(communicator.local_rank, planned.config)
    kind = MODELS[planned.config.model]
    overwrite = arguments.overwrite
    return sweep_together(
        planned.file, planned.members, overwrite, communicator, planned.table, kind
    )


def _threads(communicator: Communicator, of: int) -> int:
    """Return the threads of each run; all ranks call together."""
    free = free_cores(communicator)
    return free if communicator.size > 1 else max(1, free // of)


def _wanted(helper: str | None, signals: StopSignals) -> Callable[[], bool]:
    """Return a function that says whether a worker is to take another run.

    A helper ends with the process that has started it.
    """
    parent = os.getppid()
    return lambda: not signals.received and (not helper or os.getppid() == parent)


def _say(text: str) -> None:
    """Print a line at once: other processes print between them."""
    from hybrid_nbody.progress import BestEffortStream

    BestEffortStream(sys.stdout).write(f"{text}\n")
    BestEffortStream(sys.stdout).flush()


def _side_by_side(of: int) -> str:
    return "one after another" if of == 1 else f"{of} side by side"


# --- before ---------------------------------------------------------------------------------------


def _planned(arguments: Namespace) -> Sweep:
    """Return what is to be done, with earlier runs out of the way if they may go."""
    axes = axes_of(arguments.overrides)
    config = _some_config(arguments.file, members_of(axes, Path(".")))
    folder = arguments.output or Path(f"{config.output.directory}-sweep")
    members = tuple(members_of(axes, folder))
    if directory.files_of_a_run(folder):
        raise InputError(f"--output: {folder} holds a run; choose another directory for the sweep")
    if not arguments.helper:
        _make_way(arguments, members, folder)
    return Sweep(arguments.file, folder, members, config)


def _make_way(arguments: Namespace, members: Sequence[Member], folder: Path) -> None:
    """Check that earlier runs are of this sweep, unless they may go; see `_clear`.

    Raises
    ------
    InputError
        One is of another configuration, or the table is another one.
    """
    if not arguments.overwrite and not arguments.together:
        check_is_of_runs(folder / TABLE)
        check_members(arguments.file, members)
    for member in members:
        _clear(member, arguments.overwrite)


def _some_config(file: str, members: Sequence[Member]) -> ModelConfig:
    """Return the configuration of the first member that has one.

    Raises
    ------
    InputError
        That of the first member, if none has one.
    """
    errors = []
    for member in members:
        try:
            return resolved(file, member.settings)
        except InputError as error:
            errors.append(error)
    raise errors[0]


def _clear(member: Member, overwrite: bool) -> None:
    """Forget that a member has failed, so that it is tried again; and its run, if that may go.

    Raises
    ------
    InputError
        Another sweep is at work on it.
    FileError
        A file cannot be removed.
    """
    if not member.folder.is_dir() or not (overwrite or member.reason):
        return
    with claimed(member.folder, is_own=True) as is_free:
        if not is_free:
            raise InputError(
                f"{member.folder}: another sweep is at work here; wait for it, or stop it"
            )
        mark_as_ended(member, "")
        files = directory.files_of_a_run(member.folder) if overwrite else []
        remove_files(member.folder, [*files, member.folder / FAILED])


def _place(arguments: Namespace, communicator: Communicator, planned: Sweep) -> tuple[int, int]:
    """Return which worker this process is, and of how many.

    Raises
    ------
    InputError
        The numbers of ranks and of jobs are both given.
    """
    if arguments.helper:
        number, _, of = arguments.helper.partition("/")
        return int(number), int(of)
    if communicator.size > 1:
        if arguments.jobs is not None:
            raise InputError(
                "--jobs: on several ranks each rank does its runs alone; leave it out"
            ).on_all_ranks()
        return communicator.rank, communicator.size
    jobs = arguments.jobs or len(_devices(planned.config)) or free_cores(communicator)
    return 0, min(jobs, len(planned.members))


def _devices(config: ModelConfig) -> list[str]:
    """Return the GPUs that a run may use, as CUDA_VISIBLE_DEVICES lists them."""
    backends = config.compute.backend
    if backends == "cpu":
        return []
    if DEVICES in os.environ:
        return [name for name in os.environ[DEVICES].split(",") if name]
    found = [path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*")]
    return sorted(found, key=int)


def _take_device(number: int, config: ModelConfig) -> None:
    """Leave this process one GPU: of several that see all, each would take the first."""
    devices = _devices(config)
    if devices:
        os.environ[DEVICES] = devices[number % len(devices)]


# --- meanwhile ------------------------------------------------------------------------------------


def _work_on_a_rank(worker: Worker, planned: Sweep, communicator: Communicator) -> None:
    """Do runs on this rank alone, and wait for those of the others."""
    _take_device(communicator.local_rank, planned.config)
    worker.work(alone())
    wait(communicator.comm.Ibarrier(), "the runs of other ranks", patience=math.inf)


Helpers = Sequence["subprocess.Popen[bytes]"]


def _work_with_helpers(
    worker: Worker, helpers: Helpers, communicator: Communicator, signals: StopSignals
) -> None:
    """Do runs beside other processes, and wait for them; a request to stop is passed on."""
    try:
        goes_on = worker.work(communicator)
        while goes_on and _are_busy(helpers, worker.members):
            goes_on = not signals.received
            time.sleep(NAP_SECONDS)
    finally:
        for helper in helpers:
            helper.send_signal(signal.SIGTERM)  # nothing to one that has ended
        for helper in helpers:
            helper.wait()


def _are_busy(helpers: Helpers, members: Sequence[Member]) -> bool:
    """Return whether a process goes on, and a run has not ended."""
    return any(helper.poll() is None for helper in helpers) and not all(
        member.ended for member in members
    )


def _started(arguments: Namespace, planned: Sweep, of: int) -> Helpers:
    """Return other processes that work at the same sweep."""
    words = [sys.executable, "-m", "hybrid_nbody", "sweep", planned.file]
    words += [f"--output={planned.folder}", *(f"--set={one}" for one in arguments.overrides)]
    devices = _devices(planned.config)
    helpers = []
    for number in range(1, of):
        mine = {DEVICES: devices[number % len(devices)]} if devices else {}
        helper = [*words, f"--helper={number}/{of}"]
        process = subprocess.Popen(helper, env=os.environ | mine, stderr=subprocess.PIPE)
        threading.Thread(target=_pass_on, args=(process.stderr,), daemon=True).start()
        helpers.append(process)
    return helpers


def _pass_on(errors: IO[bytes]) -> None:
    """Pass on what another process says, but for what this one says of a request to stop."""
    for line in errors:
        if not OF_A_STOP.match(line):
            with suppress(OSError):
                os.write(2, line)


# --- afterwards -----------------------------------------------------------------------------------


def _ended(planned: Sweep) -> int:
    """Write the table and print it; return the exit code."""
    members = planned.members
    rows = [row_of(planned.file, member) for member in members]
    columns = [row.columns() for row in rows]
    kept = kept_rows(planned.table, members)
    write_csv(planned.table, [*columns, *kept])
    keys = [*members[0].values, *SHOWN, *MODELS[planned.config.model].highlights]
    _say(text_of(columns, keys))
    reasons = [f"{row.folder.name}: {row.reason}" for row in rows if row.reason]
    excesses = {member.name: worst_of(warnings_of(member)) for member in members}
    for line in (*reasons, *lines_of(excesses)):
        _say(line)
    others = f"; rows kept of other runs that are there: {len(kept)}" if kept else ""
    _say(f"table in {planned.table}{others}")
    return _exit_code({row.state for row in rows})


def _exit_code(states: set[str]) -> int:
    if FAILED_STATE in states:
        return NumericalError.exit_code
    if not states <= {MemberState.FINISHED.value, MemberState.STOPPED.value}:
        _say("not all runs are finished: give the same command again")
        return STOPPED_EARLY
    return 0
