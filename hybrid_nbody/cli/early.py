"""Signals that arrive before MPI has started: noted, and acted upon by all ranks together.

A rank that ended by itself then would leave the others waiting for it in the start of MPI for ever.
"""

import signal
from types import FrameType

from hybrid_nbody.simulation.signals import StopSignals

TYPE_CHECKING = False  # that of `typing`, whose import would delay the noting
if TYPE_CHECKING:
    from hybrid_nbody.parallel.communicator import Communicator


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
