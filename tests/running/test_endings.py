"""How runs end: what is said, what is noted, and that nothing writes any more."""

import os
import signal
import threading
import time

import pytest
from support.jobs import write_job

from hybrid_nbody.errors import STOPPED_EARLY, FileError, NumericalError
from hybrid_nbody.nbody.model import NBodyModel
from hybrid_nbody.output import part_writer
from hybrid_nbody.parallel.communicator import alone
from hybrid_nbody.running import start
from hybrid_nbody.running.ending import FINISHED, SIGNALLED, TIME_LIMIT, Ending
from hybrid_nbody.running.sweep import Worker


@pytest.fixture
def job(tmp_path):
    return write_job(tmp_path, "nbody")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def run(job, *settings):
    few = "time.steps=200"
    return start.run(job, [few, *settings], False, alone(), time.monotonic())


def resume(out, *settings):
    return start.resume(out, settings, alone(), time.monotonic())


def last_line(out):
    return (out / "log.txt").read_text().splitlines()[-1].partition("  ")[2]


def names_of_threads():
    return [thread.name for thread in threading.enumerate()]


def test_a_run_that_is_finished(job):
    ending = run(job)
    assert (ending.outcome, ending.code) == (FINISHED, 0)
    assert ending.line.startswith("finished at step")


def test_a_run_at_its_time_limit(job, out):
    ending = run(job, "time.wall_limit=1e-3")
    assert (ending.outcome, ending.code) == (TIME_LIMIT, STOPPED_EARLY)
    assert ending.line.startswith("stopped early (time.wall_limit)")
    assert last_line(out) == ending.line


def test_a_run_that_a_signal_stops(job, out, monkeypatch):
    queue = NBodyModel.queue
    advance = NBodyModel.advance

    def stopping(take):
        def stopped(model, steps):
            os.kill(os.getpid(), signal.SIGTERM)
            return take(model, steps)

        return stopped

    monkeypatch.setattr(NBodyModel, "queue", stopping(queue))
    monkeypatch.setattr(NBodyModel, "advance", stopping(advance))
    ending = run(job)
    assert (ending.outcome, ending.code) == (SIGNALLED, STOPPED_EARLY)
    assert ending.line.startswith("stopped early (SIGTERM)")


def test_an_error_of_the_last_writes_is_noted(job, out, monkeypatch):
    """It comes to light when the trajectory is closed, after the steps."""

    def failing(*arguments):
        raise FileError("no space is left")

    monkeypatch.setattr(part_writer, "write_part", failing)
    with pytest.raises(FileError, match="no space is left"):
        run(job)
    assert last_line(out) == "error: no space is left"
    assert "part writer" not in names_of_threads()


def test_a_log_that_cannot_be_opened_leaves_no_thread_that_writes(job, out, monkeypatch):
    def failing(log, path):
        raise FileError("log.txt: no")

    monkeypatch.setattr(start.Log, "open", failing)
    with pytest.raises(FileError, match=r"log\.txt: no"):
        run(job)
    assert "part writer" not in names_of_threads()


def test_a_second_interrupt_while_the_last_frames_are_written(job, out, monkeypatch):
    """The thread that writes is waited for all the same."""
    close = part_writer.PartWriter.close
    calls = []

    def interrupted(writer):
        calls.append(writer)
        if len(calls) == 1:
            raise KeyboardInterrupt
        close(writer)

    monkeypatch.setattr(part_writer.PartWriter, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(job)
    assert len(calls) == 2
    assert "part writer" not in names_of_threads()
    assert last_line(out) == "error: stopped at once by Ctrl-C"


def test_an_error_before_the_first_step_of_a_resumed_run_is_noted(job, out, monkeypatch):
    run(job, "time.wall_limit=1e-3")

    def failing(checked_job, saved_step):
        raise NumericalError("the energy has run away").on_all_ranks()

    monkeypatch.setattr(start.Job, "begin", failing)
    with pytest.raises(NumericalError):
        resume(out)
    assert last_line(out) == "error: the energy has run away"


@pytest.mark.parametrize(
    ("signals", "name"), [([signal.SIGINT], "Ctrl-C"), (2 * [signal.SIGTERM], "SIGTERM")]
)
def test_an_interrupt_ends_the_preparation_of_a_resumed_run(job, out, monkeypatch, signals, name):
    run(job, "time.wall_limit=1e-3")
    files = {path.name: path.read_bytes() for path in out.glob("*.h5")}

    def interrupting(checked_job, saved_step):
        for number in signals:
            os.kill(os.getpid(), number)
        pytest.fail("it goes on")

    monkeypatch.setattr(start.Job, "begin", interrupting)
    with pytest.raises(KeyboardInterrupt):
        resume(out)
    assert {path.name: path.read_bytes() for path in out.glob("*.h5")} == files
    assert last_line(out) == f"error: stopped at once by {name}"


def test_a_log_that_is_used_again_repeats_nothing(job, out):
    log = start.open_log(alone())
    start.run(job, ["time.steps=5"], False, alone(), time.monotonic(), log)
    start.resume(out, ["time.steps=6"], alone(), time.monotonic(), log)
    lines = (out / "log.txt").read_text().splitlines()
    assert sum("leapfrog, direct gravity" in line for line in lines) == 2


class Pace:
    def count(self):
        return "[1/2]"

    def left(self):
        return ""


@pytest.mark.parametrize(
    ("outcome", "goes_on", "said"),
    [
        (SIGNALLED, False, []),
        (TIME_LIMIT, True, ["  a: stopped early at of-time.wall_limit/a"]),
        (FINISHED, True, ["[1/2] a: stopped in 2 s"]),
    ],
)
def test_a_sweep_ends_with_a_signal_to_a_run_whatever_its_folder_is_called(
    tmp_path, outcome, goes_on, said
):
    lines = []
    member = type("Member", (), {"name": "a", "folder": tmp_path})
    worker = Worker("job.yaml", [], 0, 1, lines.append, lambda: True)
    ending = Ending(outcome, "stopped early at of-time.wall_limit/a; continue with: x")
    assert worker._ended(member, ending, 2.0, Pace()) is goes_on
    assert lines == said
