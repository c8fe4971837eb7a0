"""Signals that ask a run to stop: noted when they come, acted upon between steps."""

import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)


class StopSignals:
    """Catches SIGTERM, SIGUSR1, SIGHUP and Ctrl-C while it is entered; a second Ctrl-C interrupts at once.

    Parameters
    ----------
    say : callable, optional
        Called with the name of the first signal when it comes: compiling kernels, say, may take
        long after that.

    Attributes
    ----------
    received : str
        Name of the first signal that came in; empty if none did.
    """

    def __init__(self, say=None):
        self.say = say
        self.received = ""
        self._previous = {}

    def __enter__(self):
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants SIGHUP ignored
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception):
        for number, handler in self._previous.items():
            signal.signal(
                number, signal.SIG_DFL if handler is None else handler
            )  # None: not Python's

    def _note(self, number, frame):
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self.received:
            self.received = signal.Signals(number).name
            if self.say:
                self.say(self.received)
