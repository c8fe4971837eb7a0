"""Campaigns against the output of runs: states that kills and power cuts leave, and damage.

`run_scripts/campaign.py` runs them for as long as one likes; tests run short ones.
"""

import contextlib
import io
import random
import shutil
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from support.jobs import CONFIGS
from support.journal import journaled, killed, power_cut, put
from support.ranks import this_rank
from support.runs import contents

from hybrid_nbody.errors import FileError, HybridNBodyError, InputError
from hybrid_nbody.files.checkpoint import checkpoints
from hybrid_nbody.files.parts import entries_of
from hybrid_nbody.files.run import DamageWarning, open_run
from hybrid_nbody.running import start

STEPS = 110
SETTINGS = (
    f"time.steps={STEPS}",
    "output.trajectory.every_steps=4",
    "output.diagnostics.every_steps=3",
    "output.checkpoint.every_steps=17",
)


OBSTACLE = """\
model: fluid
grid: {cells: [12, 10, 14]}
fluid:
  viscosity: 1e-3
  boundary: {all: no-slip, y+: outflow}
  scalars: [{name: heat, buoyancy: 0.5}]
obstacles:
  - {sphere: {centre: [0.4, 0.4, 0.5], radius: 0.15}, name: ball}
sources:
  events:
    - {steps: [0, 59], density: 1, cell: [6, 2, 7]}
    - {steps: [0, 99], scalar: {name: heat, value: 8}, sphere: {centre: [6, 1, 7], radius: 2}}
time: {dt: 0.1, steps: 100000, cfl: 0.8}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 10}
  checkpoint: {every_steps: 10, keep: 2}
"""
"""A fluid around an obstacle, whose steps are taken in as many parts as it needs."""

JOBS = {**CONFIGS, "obstacle": OBSTACLE}


def quietly(action, *arguments):
    """Call a function and keep what it prints and warns of to itself."""
    aside = io.StringIO()
    with (
        contextlib.redirect_stdout(aside),
        contextlib.redirect_stderr(aside),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        return action(*arguments)


def carry_out(job: Path) -> int:
    """Run a configuration in this process."""
    return quietly(start.run, job, SETTINGS, True, this_rank(), time.monotonic()).code


def resume(folder: Path) -> int:
    """Resume a run in this process."""
    return quietly(start.resume, folder, (), this_rank(), time.monotonic()).code


@dataclass
class Undisturbed:
    """A run that nothing happened to.

    Attributes
    ----------
    job : Path
        Its configuration.
    folder : Path
        Its directory.
    calls : list of Call
        What it did to its files.
    contents : dict
        Every data set of its trajectory.
    """

    job: Path
    folder: Path
    calls: list
    contents: dict


def undisturbed(folder: Path, model: str, pause: float) -> Undisturbed:
    """Return a run of a small job, whose parts follow each other within `pause` seconds."""
    job = folder / "job.yaml"
    out = folder / "out"
    job.write_text(JOBS[model].replace("OUT", str(out)))
    with quick_parts(pause), journaled(out) as journal:
        assert carry_out(job) == 0
    return Undisturbed(job, out, journal.calls, contents(out))


@contextlib.contextmanager
def quick_parts(pause: float):
    """Let parts follow each other faster than those of a user's run, so that there are many."""
    from hybrid_nbody.output import part_writer

    before = part_writer.PAUSE, part_writer.EVENT_SECONDS
    part_writer.PAUSE = part_writer.EVENT_SECONDS = pause
    try:
        yield
    finally:
        part_writer.PAUSE, part_writer.EVENT_SECONDS = before


# ---- Kills and power cuts ------------------------------------------------------------------------


def crash_campaign(run: Undisturbed, folder: Path, states: int, resumes: int, seed: int) -> Counter:
    """Check that states of the files open to the frames that were complete, and resume some.

    Parameters
    ----------
    run : Undisturbed
    folder : Path
        For the states.
    states, resumes : int
        How many states are looked at, and how many of them are resumed.
    seed : int
        Chooses them.

    Returns
    -------
    Counter
        How many states there were of each kind.
    """
    chance = random.Random(seed)
    found: Counter = Counter()
    for number in range(states):
        length = chance.randint(0, len(run.calls))
        kind = chance.choice(["kill", "kill in a write", "power cut"])
        calls = run.calls[:length]
        files = power_cut(calls, chance) if kind == "power cut" else killed(calls, kind != "kill")
        state = folder / f"state-{number}"
        put(files, state)
        exact = kind != "power cut"
        found[kind, check_state(state, run, complete_entries(calls) if exact else None)] += 1
        if found["resumed", "ended alike"] < resumes:
            found["resumed", check_resumed(state, run)] += 1
        shutil.rmtree(state)
    return found


def complete_entries(calls) -> int:
    """Return how many entries have been in parts that had got their names."""
    names = (Path(call.target).name for call in calls if call.kind == "rename")
    return max((entries.stop for entries in map(entries_of, names) if entries), default=0)


def check_state(folder: Path, run: Undisturbed, entries: int | None) -> str:
    """Check that a state opens to what was complete, with the bits of the undisturbed run.

    Parameters
    ----------
    folder : Path
        The state.
    run : Undisturbed
    entries : int, optional
        How many frames and rows of diagnostics there must be.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error" if entries is not None else "ignore", DamageWarning)
        try:
            opened = open_run(folder)
        except (InputError, FileError, DamageWarning):
            assert not entries, f"{folder}: {entries} entries cannot be read"
            return "nothing yet"
    with opened:
        frames = opened.number_of_frames
        rows = opened.diagnostics.number_of_rows
        assert entries in (None, frames + rows), (folder, entries, frames, rows)
        for name in ("step", "time", *opened.fields):
            values = opened.field(name, slice(None)) if "/" in name else getattr(opened, name)
            np.testing.assert_array_equal(values, run.contents[name][:frames], err_msg=name)
        for name in opened.diagnostics:
            expected = run.contents[f"diagnostics/{name}"][:rows]
            np.testing.assert_array_equal(opened.diagnostics[name], expected, err_msg=name)
    return "opened"


def check_resumed(folder: Path, run: Undisturbed) -> str:
    """Check that a resumed run ends with the contents of the undisturbed one."""
    if not checkpoints(folder):
        return "no checkpoint"
    try:
        assert resume(folder) == 0
    except HybridNBodyError as error:
        if "no checkpoint to resume from" in str(error):
            return "no whole checkpoint"
        raise
    assert_same(contents(folder), run.contents)
    assert check_state(folder, run, len(run.contents["step"]) + rows_of(run)) == "opened"
    return "ended alike"


def rows_of(run: Undisturbed) -> int:
    """Return the number of rows of diagnostics of a run."""
    return len(run.contents["diagnostics/step"])


def assert_same(found: dict, expected: dict) -> None:
    """Compare data sets bit by bit."""
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def kill_campaign(run: Undisturbed, folder: Path, kills: int, seed: int) -> Counter:
    """Kill real runs at moments by chance, check what they leave, and resume them.

    Returns
    -------
    Counter
        How many runs were killed before their first part, later, and after their end.
    """
    chance = random.Random(seed)

    def kill(place: Path) -> str:
        with started([sys.executable, "-m", "hybrid_nbody"], run, place) as process:
            wait_until((place / "config.yaml").exists, process)
            time.sleep(chance.random() * KILL_WITHIN)
            process.kill()
        return "killed"

    return check_killed(run, folder, kills, kill)


KILL_WITHIN = 0.4
"""Seconds after the first step within which a run is killed; a run takes about half of them."""


def check_killed(
    run: Undisturbed, folder: Path, kills: int, kill: Callable[[Path], str]
) -> Counter:
    """Check what killed runs leave, and resume them; ``kill(place)`` runs and kills one there.

    Returns
    -------
    Counter
        How many states there were of each kind, which `kill` returns.
    """
    found: Counter = Counter()
    for number in range(kills):
        place = folder / f"killed-{number}"
        kind = kill(place)
        if place.exists():
            found[kind, check_state(place, run, None)] += 1
            found["resumed", check_resumed(place, run)] += 1
            shutil.rmtree(place)
    return found


def started(command: Sequence[str], run: Undisturbed, place: Path) -> subprocess.Popen:
    """Start a command that does a run again, into another directory and without a word."""
    words = [f"--set={word}" for word in (*SETTINGS, f"output.directory={place}")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*command, str(run.job), *words], **quiet)


def wait_until(happened: Callable[[], bool], process: subprocess.Popen) -> None:
    """Return once something has happened, or the process has ended."""
    while process.poll() is None and not happened():
        time.sleep(0.001)


# ---- Damage --------------------------------------------------------------------------------------

DEEDS = ("flip", "cut", "zero", "remove", "swap")


def damage_campaign(
    run: Undisturbed, folder: Path, rounds: int, resumes: int, seed: int
) -> Counter:
    """Check that damage never changes a number that is returned as good.

    Returns
    -------
    Counter
        How often each deed was named, or did no harm.
    """
    chance = random.Random(seed)
    found: Counter = Counter()
    every = max(1, rounds // max(1, resumes))
    for number in range(rounds):
        state = folder / f"damaged-{number}"
        shutil.copytree(run.folder, state)
        deed = chance.choice(DEEDS)
        harm(chance, deed, sorted(state.rglob("*.h5")))
        found[deed, check_damaged(state, run)] += 1
        if number % every == 0:
            found["resumed", check_resumed_with_damage(state, run)] += 1
        shutil.rmtree(state)
    return found


def harm(chance: random.Random, deed: str, files: list[Path]) -> None:
    """Damage one or two files."""
    path, other = chance.sample(files, 2)
    content = bytearray(path.read_bytes())
    place = chance.randrange(len(content))
    if deed == "flip":
        content[place] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
    elif deed == "cut":
        path.write_bytes(content[:place])
    elif deed == "zero":
        stop = min(len(content), place + chance.choice([512, 4096]))
        content[place:stop] = bytes(stop - place)
        path.write_bytes(content)
    elif deed == "remove":
        path.unlink()
    else:
        path.write_bytes(other.read_bytes())
        other.write_bytes(content)


def check_damaged(folder: Path, run: Undisturbed) -> str:
    """Check that what can be read is right; return whether something was named."""
    named = False
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            opened = open_run(folder)
        except (InputError, FileError):
            return "refused"
        with opened:
            named = bool(told)
            steps = run.contents["step"].tolist()
            for frame, step in enumerate(opened.step.tolist()):
                for name in opened.fields:
                    try:
                        values = opened.field(name, frame)
                    except FileError:
                        named = True
                        continue
                    expected = run.contents[name][steps.index(step)]
                    np.testing.assert_array_equal(values, expected, err_msg=name)
            check_rows(opened, run)
    return "named" if named else "unharmed"


def check_rows(opened, run: Undisturbed) -> None:
    """Check that every row of diagnostics is one of the undisturbed run."""
    steps = run.contents["diagnostics/step"].tolist()
    chosen = [steps.index(step) for step in opened.diagnostics.step.tolist()]
    for name in opened.diagnostics:
        expected = run.contents[f"diagnostics/{name}"][chosen]
        np.testing.assert_array_equal(opened.diagnostics[name], expected, err_msg=name)


def check_resumed_with_damage(folder: Path, run: Undisturbed) -> str:
    """Check that a damaged run that is resumed still has no wrong number."""
    try:
        assert resume(folder) == 0
    except (HybridNBodyError, InputError):
        return "refused"
    return check_damaged(folder, run)
