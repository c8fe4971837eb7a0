"""The errors a person can meet, each with the exit code of the program.

Every message says what is wrong, where (file, line, key, rank), what is allowed and what to do.
"""

from typing import Self


class HybridNBodyError(Exception):
    """An error meant for the person at the keyboard: printed as its message, without a traceback.

    Attributes
    ----------
    exit_code : int
        With which the program ends.
    shared : bool
        Whether every rank raises it, so that the ranks can end in order instead of being aborted.
    """

    exit_code = 1
    shared = False

    def on_all_ranks(self) -> Self:
        """Mark an error that every rank raises, and return it."""
        self.shared = True
        return self


class InputError(HybridNBodyError):
    """Bad input: the configuration, a file, the command line, or a machine without what it needs."""

    exit_code = 2


class NumericalError(HybridNBodyError):
    """The state is no longer a number, or its energy ran away."""

    exit_code = 3


class FileError(HybridNBodyError):
    """Reading or writing failed: disk full, damaged or foreign file, no permission."""

    exit_code = 4


class DamagedFileError(FileError):
    """A file was read, and its contents are not what was written."""


MAX_FAULTS = 50
"""More faults than this are counted, not printed: the first ones explain the rest."""


def in_one_message(faults: list[str]) -> str:
    """Return the faults of an input as the message of one error, a line each."""
    more = len(faults) - MAX_FAULTS
    rest = [f"… and {more} more faults"] if more > 0 else []
    return "\n".join(faults[:MAX_FAULTS] + rest)


STOPPED_EARLY = 75
"""Exit code of a run that stopped on a signal or the wall-clock limit with a checkpoint written."""
