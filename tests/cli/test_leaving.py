"""The end of a process that has begun MPI: all is said and done, and nothing is taken apart."""

import subprocess
import sys

PROGRAM = """
import atexit, sys, threading, time
from hybrid_nbody import __main__ as program
from hybrid_nbody.cli import main as cli

def late():
    time.sleep(0.3)
    print("by a thread")

def command():
    if {mpi}:
        from hybrid_nbody.parallel.communicator import start_mpi
        start_mpi()
    threading.Thread(target=late).start()
    print("said")
    return 3

atexit.register(print, "at the end")
cli.main = command
code = program.main()
print("went on")
sys.exit(code)
"""


def run(mpi):
    words = [sys.executable, "-c", PROGRAM.format(mpi=mpi)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


def test_what_was_asked_for_is_done():
    done = run(mpi=True)
    assert done.returncode == 3
    assert done.stdout == "said\nby a thread\nat the end\n"
    assert not done.stderr


def test_a_command_without_mpi_ends_as_any_program():
    done = run(mpi=False)
    assert done.returncode == 3
    assert "went on" in done.stdout
