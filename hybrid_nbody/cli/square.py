"""``flat``: bodies in the unit square and their activity map, in one shot, with the arguments of a course's program.

It builds the configuration that ``input/flat.yaml`` shows, and runs it.
"""

import json
import os
import re
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from hybrid_nbody.analysis.movie import make_movie
from hybrid_nbody.errors import InputError, in_one_message
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.nbody.figures.window import can_show, show
from hybrid_nbody.output.directory import ANIMATION
from hybrid_nbody.output.summary import with_prefix
from hybrid_nbody.output.trajectory import NAME, Trajectory
from hybrid_nbody.progress import progress_on
from hybrid_nbody.run import start as application
from hybrid_nbody.run.models import MODELS
from hybrid_nbody.simulation.guard import Guard

MODES = {
    "cpu": {"backend": "cpu", "threads": 1},
    "openmp": {"backend": "cpu", "threads": "auto"},
    "cuda": {"backend": "gpu"},
}
"""What each mode computes on."""

KEYS = {
    r"^output\.directory:": "--output:",
    r"\buse compute\.backend: cpu\b": "use MODE cpu or openmp",
}
"""How messages call keys of a configuration, and what was typed here in their place."""

GRAVITY = {"G": 9.8, "softening": 2.0}
DT = 0.01

FRAMES = 100
STEPS_OF_A_FRAME = 3
"""Of an animation that is saved: 3 units of time, in which bodies at rest fall through the centre
to the other side."""

SECONDS_AT_ONCE = 0.5
"""Of a run that is timed: in between it can be stopped."""

FIRST_INTERACTIONS = 1e9
MOST_FIRST_STEPS = 512
"""Of the steps done before their pace is known: a second at most on one core."""

ENDINGS = (".gif", ".mp4")
MOST_BODIES = 10**9
MOST_CELLS = 4096
MOST_STEPS = 10**15


def run(arguments, communicator, started: float) -> int:
    """Carry out ``flat`` and return the exit code.

    Parameters
    ----------
    arguments : Namespace
        As typed: ``bodies``, ``cells``, ``mode``, ``iterations``, ``file``, ``seed``,
        ``animation``, ``output``, ``overwrite``.
    communicator : Communicator
        Every rank calls together.
    started : float
        ``time.monotonic()`` of the program's start.

    Raises
    ------
    InputError, FileError
        On every rank, with every argument that is wrong.
    """
    values = communicator.on_root(lambda: configuration(arguments))
    try:
        if arguments.output is not None:
            return _kept(arguments, values, communicator, started)
        return _unkept(arguments, values, communicator)
    except InputError as error:
        error.args = (_as_typed(str(error)),)
        raise


def _as_typed(message):
    """Return a message about a configuration, in the words of the command line."""
    for key, words in KEYS.items():
        message = re.sub(key, words, message, flags=re.MULTILINE)
    return message


def _unkept(arguments, values, communicator):
    """Do a run that leaves nothing behind but its time or its animation."""
    model = application.build(values, "flat", communicator).model
    guard = Guard(SimpleNamespace(model=model), communicator, max_energy_error=None)
    guard.check_numbers()
    if arguments.iterations is not None:
        return _timed(model, int(arguments.iterations), communicator, guard)
    if communicator.on_root(
        lambda: communicator.size == 1 and arguments.animation is None and can_show()
    ):
        show(_frames(model), values["title"])
        return 0
    return _saved(model, values, arguments, communicator, guard)


# --- the arguments --------------------------------------------------------------------------------


def configuration(arguments) -> dict:
    """Return what a YAML file of the run would hold; the arguments are as in `run`.

    Raises
    ------
    InputError
        Naming every argument that is wrong, and what is allowed.
    """
    _check(arguments)
    number = int(arguments.bodies)
    cells = int(arguments.cells)
    steps = (
        int(arguments.iterations) if arguments.iterations is not None else FRAMES * STEPS_OF_A_FRAME
    )
    every = {"every_steps": max(1, steps // FRAMES)}
    return {
        "model": "nbody",
        "title": f"{number} bodies, {cells} x {cells} cells",
        "seed": int(arguments.seed),
        "bodies": _bodies(arguments.file, number, int(arguments.seed)),
        "gravity": GRAVITY,
        "time": {"integrator": "euler", "dt": DT, "steps": steps},
        "activity_map": {"cells": cells},
        "compute": MODES[arguments.mode.lower()],
        "output": {
            "directory": str(arguments.output or "output"),
            "trajectory": every,
            "diagnostics": every,
        },
    }


def _check(arguments):
    if faults := [*_faults_of_the_run(arguments), *_faults_of_its_output(arguments)]:
        raise InputError(in_one_message(faults))


def _faults_of_the_run(arguments):
    yield from _fault_of_number("N", arguments.bodies, 1, MOST_BODIES)
    yield from _fault_of_number("D", arguments.cells, 1, MOST_CELLS)
    if arguments.mode.lower() not in MODES:
        yield f"MODE: must be cpu, openmp or cuda (got '{arguments.mode}')"
    yield from _fault_of_number(
        "-i", "1" if arguments.iterations is None else arguments.iterations, 1, MOST_STEPS
    )
    yield from _fault_of_number("--seed", arguments.seed, 0, MOST_STEPS)


def _faults_of_its_output(arguments):
    if arguments.animation is not None:
        yield from _faults_of_animation(Path(arguments.animation), arguments.iterations)
    if arguments.overwrite and arguments.output is None:
        yield "--overwrite: is for --output DIR; without it no run is kept"


def _faults_of_animation(path, iterations):
    if path.suffix.lower() not in ENDINGS:
        yield f"--animation: must end in {' or '.join(ENDINGS)} (got '{path}')"
    if iterations is not None:
        yield "--animation: a run with -i is timed and makes none; leave out one of the two"
    if not path.absolute().parent.is_dir():
        yield f"--animation: there is no folder '{path.parent}'"


def _fault_of_number(name, text, least, most):
    if (
        not text.isascii()
        or not text.isdecimal()
        or len(text) > 20
        or not least <= int(text) <= most
    ):
        yield f"{name}: must be a whole number from {least} to {most} (got '{text}')"


def _bodies(file, number, seed):
    """Return the section of bodies; the number of bodies in a file must be the one that was asked for."""
    if file is None:
        return {"kind": "random-square", "n": number}
    found = len(read_bodies(file, seed))
    if found != number:
        raise InputError(
            f"{file}: it holds {found} bodies, but N is {number}; give N = {found}, or another file"
        )
    return {"kind": "file", "path": os.path.abspath(file), "dimensions": 2}


# --- what is done ---------------------------------------------------------------------------------


def _timed(model, steps, communicator, guard):
    """Do the steps and print the time they took."""
    seconds = _seconds(model, steps, communicator)
    guard.check_numbers()
    if communicator.is_root:
        rate = with_prefix(steps * model.work.per_step / seconds)
        print(
            f"{_summary(model, communicator)}: {steps} iterations in {seconds:.3g} s, {rate}{model.work.unit}/s"
        )
    return 0


def _seconds(model, steps, communicator):
    """Do the steps, `SECONDS_AT_ONCE` of them at a time; return the seconds that they took."""
    total = 0.0
    piece = max(1, min(int(FIRST_INTERACTIONS / model.work.per_step), MOST_FIRST_STEPS))
    while steps:
        piece = min(piece, steps)
        taken = _taken(model, piece, communicator)
        steps = steps - piece
        total = total + taken
        piece = max(1, int(piece * SECONDS_AT_ONCE / max(taken, 1e-9)))
    return total


def _taken(model, steps, communicator):
    """Do steps without looking up; return the seconds of the slowest rank, the same on every rank."""
    model.backend.synchronize()
    start = time.perf_counter()
    model.advance(steps)
    model.backend.synchronize()
    return float(communicator.maximum(np.array(time.perf_counter() - start)))


def _summary(model, communicator):
    ranks = f"{communicator.size} ranks, the first on " if communicator.size > 1 else ""
    return f"{model.number} bodies, {ranks}{model.backend.description}"


def _frames(model):
    """Yield time, positions and activity map without end; on one rank."""
    for _ in count():
        fields = model.fields()
        yield model.time, *(_whole(fields[name]) for name in ("bodies/position", "activity/map"))
        model.advance(1)


def _whole(field):
    return field.host(0, field.rows)


def _saved(model, values, arguments, communicator, guard):
    """Write the frames to a folder that is removed, and make the animation of them."""
    target = Path(arguments.animation or ANIMATION)
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # of each rank; the root alone puts something there
        _write_frames(Path(folder) / NAME, model, values, communicator)
        guard.check_numbers()
        with _progress(communicator, "picture") as progress:
            communicator.only_on_root(
                lambda: make_movie(folder, target, progress=progress, models=MODELS)
            )
    if communicator.is_root:
        print(f"{_summary(model, communicator)}: {FRAMES} frames in {target}")
    return 0


def _write_frames(path, model, values, communicator):
    """Write the frames of an animation as an ordinary run does."""
    trajectory = Trajectory(path, communicator)
    trajectory.create(
        model, {"model": "nbody", "title": values["title"], "config": json.dumps(values)}
    )
    with _progress(communicator, "frame") as progress:
        for frame in range(FRAMES):
            trajectory.write_frame(model)
            model.advance(STEPS_OF_A_FRAME)
            progress(frame + 1, FRAMES)
    trajectory.close()


def _progress(communicator, what):
    """Return what shows how far the root is."""
    return progress_on(sys.stderr if communicator.is_root else None, what)


def _kept(arguments, values, communicator, started):
    """Do an ordinary run, whose directory stays; without ``-i`` the animation is put into it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flat.yaml"
        communicator.only_on_root(
            lambda: path.write_text(json.dumps(values))
        )  # every JSON text is YAML
        code = application.run(path, (), arguments.overwrite, communicator, started)
    if arguments.iterations is None and code == 0:
        target = Path(arguments.animation or arguments.output / ANIMATION)
        with _progress(communicator, "picture") as progress:
            communicator.only_on_root(
                lambda: print(
                    make_movie(arguments.output, target, progress=progress, models=MODELS)
                )
            )
    return code
