"""Python for a command, in a fork of the server that has loaded the libraries; see `forked`.

``fork_client.py NAME [-m MODULE | -c CODE | FILE] ARGUMENTS…`` hands the server of that name its
folder, environment, arguments and streams, passes signals on, and ends as the fork does. It must
start in ten milliseconds: it imports little, and nothing of the tests.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import sys

PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)

LONGEST_WAIT = 0.5
"""Seconds."""


def _streams():
    """Return this process's open standard streams, and the pipe to mpirun, if one started it."""
    numbers = [0, 1, 2]
    if "PMI_FD" in os.environ:
        numbers.append(int(os.environ["PMI_FD"]))
    return [number for number in numbers if _is_open(number)]


def _is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _end_as(status):
    """End with an exit status, or by the signal that it stands for."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status in PASSED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _request(words):
    """Return what the server must know of a command, but for the open files."""
    return {
        "words": words,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "descriptors": _streams(),
    }


def _answer(server):
    """Return the server's next number: the fork's process, at its end its exit status.

    A signal that comes just before a wait does not end it, and is passed on after it.
    """
    server.settimeout(LONGEST_WAIT)
    while True:
        with contextlib.suppress(TimeoutError):
            return int(server.recv(64))


def _main():
    name, *words = sys.argv[1:]
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect(f"\0{name}")
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until there is somebody to pass them to
    socket.send_fds(server, [json.dumps(_request(words)).encode()], _streams())
    process = _answer(server)

    def pass_on(number, frame):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    _end_as(_answer(server))


if __name__ == "__main__":
    _main()
