"""Signals: noted, not acted upon at once, and given back afterwards."""

import os
import signal
import time

import pytest
from support.ranks import run_python

from hybrid_nbody.simulation import signals as module
from hybrid_nbody.simulation.signals import STOP_SIGNALS, StopSignals


def send(number):
    """Send this process a signal and let Python see it."""
    os.kill(os.getpid(), number)
    time.sleep(0)


@pytest.fixture(autouse=True)
def handlers_are_given_back():
    """Every test leaves the handlers as they were."""
    before = [signal.getsignal(number) for number in STOP_SIGNALS]
    yield
    assert [signal.getsignal(number) for number in STOP_SIGNALS] == before


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGTERM, "SIGTERM"), (signal.SIGUSR1, "SIGUSR1"), (signal.SIGINT, "Ctrl-C")],
)
def test_a_signal_is_noted_under_the_name_that_people_use_and_ends_nothing(number, name):
    with StopSignals() as signals:
        assert signals.received == ""
        send(number)
        assert signals.received == name


def test_the_first_of_several_is_the_one_that_counts():
    with StopSignals() as signals:
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGTERM):
            send(number)
        assert signals.received == "SIGUSR1"


def test_the_first_of_several_is_told_at_once():
    told = []
    with StopSignals(lambda *words: told.append(words)):
        for number in (signal.SIGUSR1, signal.SIGTERM):
            send(number)
    assert told == [("SIGUSR1", False)]


def test_a_second_control_c_interrupts_at_once():
    with pytest.raises(KeyboardInterrupt), StopSignals() as signals:
        send(signal.SIGINT)
        assert signals.received == "Ctrl-C"
        send(signal.SIGINT)


def test_where_nothing_is_lost_the_first_control_c_interrupts():
    with StopSignals() as signals:
        with signals.interrupting(False):
            send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), signals.interrupting():
            pytest.fail("it had come before")
    for second, name in [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]:
        said = []
        with StopSignals(lambda *told: said.append(told)) as signals:  # noqa: B023
            with pytest.raises(KeyboardInterrupt, match=name), signals.interrupting():
                send(signal.SIGTERM)
                assert signals.received == "SIGTERM"
                send(second)
            send(signal.SIGTERM)
        assert said == [("SIGTERM", True)]
    with StopSignals() as signals:
        with signals.interrupting():
            pass
        send(signal.SIGINT)
        assert signals.received == "Ctrl-C"


def test_handlers_are_given_back_after_an_error():
    with pytest.raises(ZeroDivisionError), StopSignals():
        raise ZeroDivisionError


def test_a_handler_that_is_not_python_s_is_not_given_back_as_none(monkeypatch):
    """Python cannot name a handler that an MPI library set: the default one replaces it."""
    set_to = []
    monkeypatch.setattr(
        module.signal, "signal", lambda number, handler: set_to.append((number, handler))
    )
    with StopSignals():
        set_to.clear()
    assert set_to == [(number, signal.SIG_DFL) for number in STOP_SIGNALS]


WAITING = """
import os, signal, sys, time
from hybrid_nbody.simulation.signals import StopSignals
with StopSignals() as signals:
    print("ready", flush=True)
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    end = time.monotonic() + 5
    while not signals.received and time.monotonic() < end:
        time.sleep(0.01)
    print(signals.received, flush=True)
os.kill(os.getpid(), getattr(signal, sys.argv[1]))
time.sleep(5)
print("still there")
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1"])
def test_afterwards_a_signal_ends_the_process_again(name):
    result = run_python(WAITING, name, check=-getattr(signal, name))
    assert result.stdout == f"ready\n{name}\n"
