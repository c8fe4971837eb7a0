"""``square``: run bodies in the unit square without a file, timed or with their activity map.

It takes the arguments of a course's program, builds the configuration that ``input/flat.yaml``
shows, and runs it.
"""

import json
import os
import re
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hybrid_nbody.analysis.movie import make_movie
from hybrid_nbody.analysis.presentation import WindowFrame
from hybrid_nbody.analysis.window import can_open
from hybrid_nbody.errors import InputError, in_one_message
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.output.summary import with_prefix
from hybrid_nbody.output.trajectory import NAME, Trajectory
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.progress import Progress, progress_on
from hybrid_nbody.running import start
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.model import Model

COMMAND = "square"

ANIMATION = "square.gif"
"""Name of the animation, in the directory that is kept or in the current one."""

MODES = {
    "cpu": {"backend": "cpu", "threads": 1},
    "openmp": {"backend": "cpu", "threads": "auto"},
    "cuda": {"backend": "gpu"},
}
"""Backend of each mode, as keys of the section ``compute``."""

KEYS = {
    r"^output\.directory:": "--output:",
    r"\buse compute\.backend: cpu\b": "use MODE cpu or openmp",
}
"""Keys of a configuration as messages name them, and the arguments of this command for each."""

GRAVITY = {"G": 9.8, "softening": 2.0}
"""Pair force of the course's program."""

DT = 0.01
"""Time step of the course's program."""

FRAMES = 100
"""Frames of an animation that is saved."""

STEPS_PER_FRAME = 3
"""Together they are 3 units of time: bodies at rest fall through the centre to the other side."""

PIECE_SECONDS = 0.5
"""Wall-clock time of the pieces of a run that is timed: between two of them it can be stopped."""

FIRST_INTERACTIONS = 1e9
"""Interactions of the first piece, before the pace is known: a second at most on one core."""

MAX_FIRST_STEPS = 512
"""Steps of the first piece at most."""

SUFFIXES = (".gif", ".mp4")
MAX_BODIES = 10**9
MAX_CELLS = 4096
MAX_STEPS = 10**15


def run(arguments: Namespace, communicator: Communicator, started: float) -> int:
    """Carry out ``square`` and return the exit code.

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
            return _run_in_folder(arguments, values, communicator, started)
        return _run_in_memory(arguments, values, communicator)
    except InputError as error:
        error.args = (_as_typed(str(error)),)
        raise


def _as_typed(message: str) -> str:
    """Return a message about a configuration, in the words of the command line."""
    for key, words in KEYS.items():
        message = re.sub(key, words, message, flags=re.MULTILINE)
    return message


def _run_in_memory(arguments: Namespace, values: dict[str, Any], communicator: Communicator) -> int:
    """Do a run that leaves nothing behind but its time or its animation."""
    model = start.build(values, COMMAND, communicator).model
    guard = Guard(SimpleNamespace(model=model), communicator, max_energy_error=None)
    guard.check_numbers()
    if arguments.iterations is not None:
        return _time_steps(model, int(arguments.iterations), communicator, guard)
    if communicator.on_root(lambda: _opens_a_window(arguments, communicator)):
        _show(model, values)
        return 0
    return _save_animation(model, values, arguments, communicator, guard)


def _opens_a_window(arguments: Namespace, communicator: Communicator) -> bool:
    return communicator.size == 1 and arguments.animation is None and can_open()


def _show(model: Model, values: dict[str, Any]) -> None:
    """Show the steps of a run in a window until it is closed."""
    window = MODELS[values["model"]].figures.window
    assert window is not None  # bodies with an activity map have one
    window(_frames(model), values["title"])


# --- the arguments --------------------------------------------------------------------------------


def configuration(arguments: Namespace) -> dict[str, Any]:
    """Return what a YAML file of the run would hold; the arguments are as in `run`.

    Raises
    ------
    InputError
        Naming every argument that is wrong, and what is allowed.
    """
    _check(arguments)
    number = int(arguments.bodies)
    cells = int(arguments.cells)
    steps = _number_of_steps(arguments)
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


def _number_of_steps(arguments: Namespace) -> int:
    if arguments.iterations is None:
        return FRAMES * STEPS_PER_FRAME
    return int(arguments.iterations)


def _check(arguments: Namespace) -> None:
    faults = [*_faults_of_run(arguments), *_faults_of_output(arguments)]
    if faults:
        raise InputError(in_one_message(faults))


def _faults_of_run(arguments: Namespace) -> Iterator[str]:
    iterations = "1" if arguments.iterations is None else arguments.iterations
    yield from _fault_of_number("N", arguments.bodies, 1, MAX_BODIES)
    yield from _fault_of_number("D", arguments.cells, 1, MAX_CELLS)
    if arguments.mode.lower() not in MODES:
        yield f"MODE: must be cpu, openmp or cuda (got '{arguments.mode}')"
    yield from _fault_of_number("-i", iterations, 1, MAX_STEPS)
    yield from _fault_of_number("--seed", arguments.seed, 0, MAX_STEPS)


def _faults_of_output(arguments: Namespace) -> Iterator[str]:
    if arguments.animation is not None:
        yield from _faults_of_animation(Path(arguments.animation), arguments.iterations)
    if arguments.overwrite and arguments.output is None:
        yield "--overwrite: is for --output DIR; without it no run is kept"


def _faults_of_animation(path: Path, iterations: str | None) -> Iterator[str]:
    if path.suffix.lower() not in SUFFIXES:
        yield f"--animation: must end in {' or '.join(SUFFIXES)} (got '{path}')"
    if iterations is not None:
        yield "--animation: a run with -i is timed and makes none; leave out one of the two"
    if not path.absolute().parent.is_dir():
        yield f"--animation: there is no folder '{path.parent}'"


def _fault_of_number(name: str, text: str, least: int, most: int) -> Iterator[str]:
    is_number = text.isascii() and text.isdecimal() and len(text) <= 20
    if not is_number or not least <= int(text) <= most:
        yield f"{name}: must be a whole number from {least} to {most} (got '{text}')"


def _bodies(file: Path | None, number: int, seed: int) -> dict[str, Any]:
    """Return the section of bodies; a file must hold the number that was asked for."""
    if file is None:
        return {"kind": "random-square", "n": number}
    found = len(read_bodies(file, seed))
    if found != number:
        raise InputError(
            f"{file}: it holds {found} bodies, but N is {number}; give N = {found}, or another file"
        )
    return {"kind": "file", "path": os.path.abspath(file), "dimensions": 2}


# --- runs -----------------------------------------------------------------------------------------


def _time_steps(model: Model, steps: int, communicator: Communicator, guard: Guard) -> int:
    """Do the steps and print the time they took."""
    seconds = _seconds_of_steps(model, steps, communicator)
    guard.check_numbers()
    if communicator.is_root:
        rate = with_prefix(steps * model.work.per_step / seconds)
        took = f"{steps} iterations in {seconds:.3g} s, {rate}{model.work.unit}/s"
        print(f"{_summary(model, communicator)}: {took}")
    return 0


def _seconds_of_steps(model: Model, steps: int, communicator: Communicator) -> float:
    """Do the steps in pieces of about `PIECE_SECONDS`; return the seconds that they took."""
    total = 0.0
    piece = max(1, min(int(FIRST_INTERACTIONS / model.work.per_step), MAX_FIRST_STEPS))
    while steps:
        piece = min(piece, steps)
        taken = _slowest_seconds(model, piece, communicator)
        steps = steps - piece
        total = total + taken
        piece = max(1, int(piece * PIECE_SECONDS / max(taken, 1e-9)))
    return total


def _slowest_seconds(model: Any, steps: int, communicator: Communicator) -> float:
    """Do steps in one piece; return the seconds of the slowest rank on every rank."""
    model.backend.synchronize()
    begin = time.perf_counter()
    model.advance(steps)
    model.backend.synchronize()
    return float(communicator.maximum(np.array(time.perf_counter() - begin)))


def _summary(model: Any, communicator: Communicator) -> str:
    ranks = f"{communicator.size} ranks, the first on " if communicator.size > 1 else ""
    return f"{model.number} bodies, {ranks}{model.backend.description}"


def _frames(model: Model) -> Iterator[WindowFrame]:
    """Yield every step without end; on one rank."""
    while True:
        fields = {name: field.host(0, field.rows) for name, field in model.fields().items()}
        yield WindowFrame(model.time, fields)
        model.advance(1)


def _save_animation(
    model: Model,
    values: dict[str, Any],
    arguments: Namespace,
    communicator: Communicator,
    guard: Guard,
) -> int:
    """Write the frames to a folder that is removed, and make the animation of them."""
    target = Path(arguments.animation or ANIMATION)
    with tempfile.TemporaryDirectory() as folder:  # of each rank; the root alone writes into it
        _write_frames(Path(folder) / NAME, model, values, communicator)
        guard.check_numbers()
        _make_animation(folder, target, communicator)
    if communicator.is_root:
        print(f"{_summary(model, communicator)}: {FRAMES} frames in {target}")
    return 0


def _make_animation(folder: str | Path, target: Path, communicator: Communicator) -> None:
    with _progress(communicator, "picture") as progress:
        communicator.only_on_root(
            lambda: make_movie(folder, target, progress=progress, models=MODELS)
        )


def _write_frames(
    path: Path, model: Model, values: dict[str, Any], communicator: Communicator
) -> None:
    """Write the frames of an animation as an ordinary run does."""
    trajectory = Trajectory(path, communicator)
    header = {"model": values["model"], "title": values["title"], "config": json.dumps(values)}
    trajectory.create(model, header)
    with _progress(communicator, "frame") as progress:
        for frame in range(FRAMES):
            trajectory.write_frame(model)
            model.advance(STEPS_PER_FRAME)
            progress(frame + 1, FRAMES)
    trajectory.close()


def _progress(communicator: Communicator, what: str) -> Progress:
    """Return what shows the progress on the root."""
    return progress_on(sys.stderr if communicator.is_root else None, what)


def _run_in_folder(
    arguments: Namespace, values: dict[str, Any], communicator: Communicator, started: float
) -> int:
    """Do an ordinary run, whose directory stays; without ``-i`` the animation is put into it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{COMMAND}.yaml"
        text = json.dumps(values)  # every JSON text is YAML
        communicator.only_on_root(lambda: path.write_text(text))
        code = start.run(path, (), arguments.overwrite, communicator, started).code
    if arguments.overwrite:
        communicator.only_on_root(lambda: (arguments.output / ANIMATION).unlink(missing_ok=True))
    if arguments.iterations is None and code == 0:
        target = Path(arguments.animation or arguments.output / ANIMATION)
        _make_animation(arguments.output, target, communicator)
        if communicator.is_root:
            print(target)
    return code
