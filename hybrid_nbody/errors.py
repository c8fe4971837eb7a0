"""Errors reported to the user, each with the exit code of the program.

Every message says what is wrong, where (file, line, key, rank), what is allowed and what to do.
"""

TYPE_CHECKING = False  # that of `typing`, whose import would delay every command
if TYPE_CHECKING:
    from typing import Self


def name_of_interrupt(interrupt: KeyboardInterrupt) -> str:
    """Return the name of the signal that has interrupted the program."""
    return str(interrupt) if interrupt.args else "Ctrl-C"


class HybridNBodyError(Exception):
    """An error whose message is printed for the user, without a traceback.

    Attributes
    ----------
    exit_code : int
        Exit code of the program.
    shared : bool
        Whether every rank raises it, so that the ranks can end in order instead of being aborted.
    """

    exit_code = 1
    shared = False

    def on_all_ranks(self) -> "Self":
        """Return the error, marked as one that every rank raises."""
        self.shared = True
        return self


class InputError(HybridNBodyError):
    """Bad input: configuration, bodies, command line, or a machine without what was asked for."""

    exit_code = 2


class NumericalError(HybridNBodyError):
    """The state has become NaN or infinite, or the energy error exceeds its limit."""

    exit_code = 3


class FileError(HybridNBodyError):
    """Reading or writing failed: a full disk, a damaged or foreign file, no permission."""

    exit_code = 4


class DamagedFileError(FileError):
    """A file can be read, but its contents are not what was written."""


def told_to_others(error: Exception) -> HybridNBodyError:
    """Return what other ranks raise for an error of the root: itself, or what it says."""
    if isinstance(error, HybridNBodyError):
        return error
    return HybridNBodyError(f"rank 0 raised {type(error).__name__}: {error}")


MAX_FAULTS = 50
"""Number of faults that are printed; further ones are only counted."""


def in_one_message(faults: list[str]) -> str:
    """Return faults as one message, a line each."""
    more = len(faults) - MAX_FAULTS
    rest = [f"… and {more} more faults"] if more > 0 else []
    return "\n".join(faults[:MAX_FAULTS] + rest)


STOPPED_EARLY = 75
"""Exit code of a run that stopped on a signal or at its time limit and wrote a checkpoint."""
