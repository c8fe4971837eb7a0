"""Signals that arrive before MPI has started: noted, and acted upon by all ranks together.

A rank that ended by itself then would leave the others waiting for it in the start of MPI for ever.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hybrid_nbody.simulation.signals import StopSignals

TYPE_CHECKING = False  # that of `typing`, whose import would delay the noting
if TYPE_CHECKING:
    from hybrid_nbody.parallel.communicator import Communicator


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Let a Ctrl-C in the block interrupt once it is done: an import may make an error of it.

    Raises
    ------
    KeyboardInterrupt
        After the block, if there was a Ctrl-C.
    """
    noted: list[int] = []
    interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interrupts:  # a shell lets what runs behind it ignore a Ctrl-C
        signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        yield
    finally:
        if interrupts:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if noted:
        raise KeyboardInterrupt


class EarlySignals(StopSignals):
    """Notes the first signal that asks to stop, and interrupts nothing."""

    def agreed(self, ranks: "Communicator") -> str:
        """Return the name of a signal that any rank has noted, on every rank; empty if none has.

        Noting is over then; see `end`.
        """
        noted = ranks.gather(self.received)
        if not any(noted):
            self.end()
            return ""
        self.__exit__(None, None, None)
        return next(filter(None, noted))

    def end(self) -> None:
        """Let signals interrupt as they do elsewhere, the one that was noted as well.

        Raises
        ------
        KeyboardInterrupt
            If one was noted.
        """
        self.__exit__(None, None, None)
        if self.received:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = self.received or signal.Signals(number).name
