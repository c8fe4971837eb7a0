"""Signals that ask a run to stop: noted when they arrive, acted upon between steps."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)

CTRL_C = "Ctrl-C"
"""What a person calls SIGINT."""


class StopRequests(Protocol):
    """The signals, as the time loop sees them.

    Attributes
    ----------
    received : str
        Name of the first signal that arrived, `CTRL_C` for SIGINT; empty if none did.
    """

    @property
    def received(self) -> str:
        """See the class."""


class StopSignals:
    """Catches SIGTERM, SIGUSR1, SIGHUP and Ctrl-C while it is entered.

    A second Ctrl-C interrupts at once.

    Parameters
    ----------
    say : callable, optional
        Called when the first signal arrives, with its name and whether the next one interrupts: it
        may take long until the run ends, where kernels are being compiled, say.

    Attributes
    ----------
    received : str
        Name of the first signal that arrived, `CTRL_C` for SIGINT; empty if none did.
    """

    def __init__(self, say: Callable[[str, bool], None] | None = None) -> None:
        self.say = say
        self.received = ""
        self._interrupts = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants SIGHUP ignored
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            was_set_outside_python = handler is None
            signal.signal(number, signal.SIG_DFL if was_set_outside_python else handler)

    @contextmanager
    def interrupting(self, wanted: bool = True) -> Iterator[None]:
        """Let a Ctrl-C in the block interrupt, and a second signal: a run has nothing to lose yet.

        After a first signal it goes on as far as a checkpoint, from which a chain of jobs resumes.

        Parameters
        ----------
        wanted : bool, optional
            False leaves it as it is: of several ranks, others might not be interrupted.

        Raises
        ------
        KeyboardInterrupt
            With the name of the signal.
        """
        if wanted and self.received == CTRL_C:
            raise KeyboardInterrupt
        self._interrupts = wanted
        try:
            yield
        finally:
            self._interrupts = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        is_control_c = number == signal.SIGINT
        name = CTRL_C if is_control_c else signal.Signals(number).name
        if is_control_c and (self.received or self._interrupts):
            raise KeyboardInterrupt(name)
        if self.received and self._interrupts:
            raise KeyboardInterrupt(name)
        if not self.received:
            self.received = name
            if self.say:
                self.say(name, self._interrupts or is_control_c)
