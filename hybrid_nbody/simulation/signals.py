"""Signals that ask a run to stop: noted when they come, acted upon between steps."""

import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)


class StopSignals:
    """Catches SIGTERM, SIGUSR1, SIGHUP and Ctrl-C while it is entered; a second Ctrl-C interrupts at once.

    Attributes
    ----------
    received : str
        Name of the first signal that came in; empty if none did.
    """

    def __init__(self):
        self.received = ""
        self._previous = {}

    def __enter__(self):
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants SIGHUP ignored
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception):
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not Python's

    def _note(self, number, frame):
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or signal.Signals(number).name
