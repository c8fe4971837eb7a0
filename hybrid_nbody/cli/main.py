"""The command line: from arguments to a command, and from its errors to the exit code."""

import argparse
import io
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable

from hybrid_nbody import __version__
from hybrid_nbody.cli.arguments import ALIASES, ARGUMENTS
from hybrid_nbody.cli.commands import COMMANDS, Command
from hybrid_nbody.cli.words import PROGRAM, Parser, check_overrides, explained, in_order
from hybrid_nbody.errors import (
    STOPPED_EARLY,
    FileError,
    HybridNBodyError,
    InputError,
    name_of_interrupt,
)
from hybrid_nbody.parallel.launchers import promised_rank, promised_ranks
from hybrid_nbody.running.models import MODELS

TYPE_CHECKING = False  # that of `typing`, whose import would delay every command
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, NoReturn

    from hybrid_nbody.backends.waking import WakingGpu
    from hybrid_nbody.cli.early import EarlySignals
    from hybrid_nbody.parallel.communicator import Communicator

BY_CTRL_C = "stopped by Ctrl-C"

ON_RANKS = "on MPI ranks, each on its GPU or on CPU threads"
EPILOG = """\
examples:
  mpirun -n 4 hybrid-nbody input/plummer.yaml          run on four ranks
  mpirun -n 2 hybrid-nbody resume output/plummer       continue from the newest checkpoint
  hybrid-nbody run input/plummer.yaml --set time.dt=1e-4 --overwrite
  hybrid-nbody run --from output/plummer@time:0.5 --set time.dt=5e-4
  hybrid-nbody sweep input/plummer.yaml --set gravity.softening=0.01,0.02
  hybrid-nbody plot output/plummer                     draw energies, bodies and more
  mpirun -n 4 hybrid-nbody input/smoke.yaml            run rising smoke
  hybrid-nbody bench ladder                            measure the gain of each optimisation
  hybrid-nbody help plot                               say what a command takes

exit codes: 0 done; 1 internal error; 2 bad input; 3 numerical failure; 4 input/output failed;
            75 stopped early: a run with a checkpoint written (resume it)
"""


def parser(word: str | None = None) -> Parser:
    """Return the parser of all commands.

    Parameters
    ----------
    word : str, optional
        The first word of the command line. Only the command of this name is given its arguments,
        since others would delay it; by default every one is.
    """
    top = Parser(
        prog=PROGRAM,
        description=_description(),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"hybrid_nbody {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            aliases=ALIASES.get(command.name, ()),
            help=command.summary,
            description=command.summary,
        )
        sub.set_defaults(carried_out_by=command, mpi=command.alone is None)
        if word is None or word in (command.name, *ALIASES.get(command.name, ())):
            ARGUMENTS[command.name](sub)
            sub.set_defaults(options=sub.options)
    return top


def _description() -> str:
    """Return what the program does, in a sentence."""
    summaries = " or ".join(model.summary for model in MODELS.values())
    return f"{summaries[:1].upper()}{summaries[1:]}, {ON_RANKS}."


def main(arguments: list[str] | None = None) -> int:
    """Carry out a command and return the exit code; on several ranks, all end together."""
    early = _note_signals() if promised_ranks() > 1 else None
    _open_streams()
    warnings.showwarning = _tell
    try:
        try:
            parsed = parse(sys.argv[1:] if arguments is None else arguments)
        except InputError as error:  # the same on every rank
            if early:
                early.end()
            return _complain(error, silent=promised_rank() > 0)
        command: Command = parsed.carried_out_by
        if parsed.mpi and command.on_ranks is not None:
            return _with_mpi(command, parsed, early)
        assert command.alone is not None
        if early:
            early.end()
        return _alone(command.alone, parsed)
    except KeyboardInterrupt as stop:  # a run that has begun ends in its own way
        print(f"hybrid_nbody: stopped by {name_of_interrupt(stop)}", file=sys.stderr)
        return STOPPED_EARLY


def parse(typed: list[str]) -> Namespace:
    """Return the arguments of a command line; raises `InputError`."""
    words = in_order(typed)
    parsed, extra = parser(word=words[0] if words else "").parse_known_args(words)
    if "overrides" in parsed:
        check_overrides(words)
    if extra:
        raise InputError(explained(extra, words[0], parsed.options))
    return parsed


def _tell(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in a line, as a person needs it: the line of code does not matter."""
    print(f"hybrid_nbody: warning: {message}", file=sys.stderr)


def _open_streams() -> None:
    """Let printing never fail for want of a stream, or of a letter in the terminal's encoding.

    Where a shell has closed a stream (``>&-``), the next file to be opened would take its place.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _note_signals() -> "EarlySignals":
    """Return what notes signals until all ranks have started, and begin with it."""
    from hybrid_nbody.cli.early import EarlySignals

    return EarlySignals().__enter__()


def _alone(function: Callable[[Namespace], int], parsed: Namespace) -> int:
    """Carry out a command that needs no MPI."""
    try:
        return _call(function, parsed)
    except HybridNBodyError as error:
        return _complain(error)
    except BrokenPipeError:
        return _stop_printing()
    except OSError as error:  # such as a name that is longer than the file system allows
        return _complain(FileError(str(error)))


def _with_mpi(command: Command, parsed: Namespace, early: "EarlySignals | None") -> int:
    """Carry out a command on all ranks; an error that only some ranks meet aborts all of them."""
    from hybrid_nbody.backends.waking import waking_gpu
    from hybrid_nbody.interrupts import interrupted_afterwards

    waking = waking_gpu() if command.runs else None
    with interrupted_afterwards():  # NumPy would make an error of its own of it
        from hybrid_nbody.parallel import communicator

    assert command.on_ranks is not None
    ranks: Communicator | None = None
    try:
        ahead = _importing_ahead(parsed, waking) if command.runs else None
        ranks = communicator.start_mpi(ahead, lambda: early.received if early else "")
        if early and (name := early.agreed(ranks)):
            return _stopped(name, ranks)
        return _call(command.on_ranks, parsed, ranks)
    except HybridNBodyError as error:
        if ranks is None or error.shared or ranks.size == 1:
            return _end_of_all(error, ranks)
        communicator.abort(error, error.exit_code)
    except OSError as error:
        if ranks is not None and ranks.size > 1:
            communicator.abort(error, FileError.exit_code)
        is_pipe = isinstance(error, BrokenPipeError)
        return _stop_printing() if is_pipe else _complain(FileError(str(error)))
    except KeyboardInterrupt:
        if ranks is None or ranks.size == 1:
            raise
        communicator.abort(HybridNBodyError(BY_CTRL_C), STOPPED_EARLY)
    except BaseException as error:  # SystemExit, too: one rank must not leave the others waiting
        if ranks is None or ranks.size == 1:
            return _unexpected(error)
        communicator.abort(error, 1)


def _importing_ahead(
    parsed: Namespace, waking: "WakingGpu | None"
) -> "AbstractContextManager[None]":
    """Return what imports ahead for a run, once the driver of its GPU has started."""
    from hybrid_nbody.running.ahead import importing_ahead

    if waking:
        waking.wait()
    file = getattr(parsed, "file", None)  # `resume` has none
    return importing_ahead(file, parsed.overrides, waking)


def _stopped(signal_name: str, ranks: "Communicator") -> int:
    """End all ranks because of a signal that came before they had started."""
    if ranks.is_root:
        by = BY_CTRL_C if signal_name == "SIGINT" else f"stopped by {signal_name}"
        print(f"hybrid_nbody: {by}", file=sys.stderr, flush=True)
    return STOPPED_EARLY


def _end_of_all(error: HybridNBodyError, ranks: "Communicator | None") -> int:
    """End with an error that every rank meets, or the only one; the root prints it."""
    code = _complain(error, silent=ranks is not None and not ranks.is_root)
    if isinstance(error, FileError) and not error.shared:
        _leave_at_once(code)
    return code


def _unexpected(error: BaseException) -> int:
    """End the process after an unexpected error, with its traceback."""
    if isinstance(error, BrokenPipeError):
        return _stop_printing()
    import traceback

    traceback.print_exception(error)
    return 1


def _call(function: Callable[..., int], *arguments: "Any") -> int:
    """Carry out a command; too little memory is a fault of the input."""
    try:
        return function(*arguments)
    except MemoryError as error:
        raise InputError(
            f"not enough memory: {str(error).rstrip('. ')}; take a smaller problem, or more ranks "
            "or nodes"
        ) from error


def _stop_printing() -> int:
    """End quietly when the reader of the output, such as ``head``, has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _leave_at_once(code: int) -> "NoReturn":
    """End this process without closing its files.

    HDF5 would crash on one whose last write failed.
    """
    sys.stdout.flush()
    os._exit(code)


def _complain(error: HybridNBodyError, silent: bool = False) -> int:
    """Print an error for the person at the keyboard, once; return its exit code."""
    if str(error) and not silent:
        gap = "\n" if "\n" in str(error) else " "
        print(f"hybrid_nbody: error:{gap}{error}", file=sys.stderr, flush=True)
    return error.exit_code
