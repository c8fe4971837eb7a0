"""``bench frames``: whole runs that write frames, beside the same runs without any."""

import math
import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib.figure import Figure

from hybrid_nbody.analysis import style
from hybrid_nbody.benchmarks.gravity.split import ratio, read_threads
from hybrid_nbody.benchmarks.harness import machine, measure, options, pictures
from hybrid_nbody.benchmarks.harness.measure import Column, Row, Stop, Times
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.errors import STOPPED_EARLY, FileError

SIZES = {"cpu": (3, 40, 256, 1024, 4096), "gpu": (3, 256, 1024, 4096, 16384)}

FEWEST_STEPS = 200
GROWTH = 30
"""Steps of the first run, which compiles, and how many times as many the next one takes at most."""

MOST_STEPS = 10**9

CONFIG = """\
model: nbody
bodies: {{kind: plummer, n: {bodies}}}
gravity: {{solver: direct, softening: 0.05}}
time: {{dt: 1.0e-4, steps: {steps}}}
compute: {{backend: {device}, threads: {threads}}}
output: {{directory: run, trajectory: {frames}, diagnostics: null, checkpoint: null}}
"""

STEPS = re.compile(r"^\d+ steps in ([0-9.]+) s:", re.MULTILINE)
"""The line in which a run says how long its steps took."""

COLUMNS = (
    measure.DEVICE,
    measure.BODIES.shown("Bodies"),
    Column("every_steps", "steps from one frame to the next"),
    Column("without_s", "median time of a step without frames in s", "without\nµs", "4 µs"),
    Column("mean_s", "mean time of a step with frames in s"),
    Column("sd_s", "its standard deviation in s"),
    Column("median_s", "median time of a step with frames in s", "with\nµs", "4 µs"),
    Column("ratio", "of the times of a pair of runs, median over pairs", "with /\nwithout", ".3f"),
    Column("frame_s", "what a frame costs by this ratio in s", "a frame\nµs", "3 µs"),
    Column("calls", "steps of a run", "steps", "d", 1),
    Column("repeats", "pairs of runs"),
)


def run(arguments: Namespace) -> int:
    """Carry out ``bench frames`` and return the exit code."""
    asked = options.sizes(arguments)
    every = options.number("--every", arguments.every)
    seconds = options.quantity("--seconds", arguments.seconds, options.SECONDS)
    threads = read_threads(arguments.threads)
    devices = machine.find_devices(arguments.backend)
    wanted = [backend.name for backend in devices.wanted(arguments.backend)]
    sizes = {device: asked or SIZES[device] for device in wanted}
    machine.check_memory(devices, list(chain(*sizes.values())))
    pairs = Pairs(arguments.output, every, seconds, arguments.repeats, threads)
    tasks = [task for device in wanted for task in pairs.tasks(device, sizes[device])]
    return carry_out(Plan("frames", COLUMNS, tasks, draw), devices, arguments)


@dataclass(frozen=True)
class Pairs:
    """Runs with frames and without, in turn.

    Attributes
    ----------
    folder : Path
        Where runs write, into folders that are removed: the disk is measured, too.
    every : int
        Steps from one frame to the next.
    seconds : float
        How long a run without frames should last.
    repeats : int
        Pairs of runs.
    threads : int
        Threads of a CPU.
    """

    folder: Path
    every: int
    seconds: float
    repeats: int
    threads: int

    def tasks(self, device: str, sizes: Sequence[int]) -> Iterator[Task]:
        """Yield a row for each number of bodies on a device."""
        section = f"a frame every {self.every} steps on a {device.upper()}: Plummer spheres, single"
        for number in sizes:
            head = {"device": device, "bodies": number, "every_steps": self.every}
            yield Task(section, f"{number} bodies", partial(self._row, head))

    def _row(self, head: Row, rows: list[Row], stop: Stop) -> Row:
        """Measure pairs of runs of some bodies."""
        with TemporaryDirectory(prefix="runs-", dir=self.folder) as folder:
            runs = WholeRuns(Path(folder), head, self.threads, stop)
            steps = steps_for(self.seconds, runs.seconds)
            frames = f"{{every_steps: {self.every}}}"
            pairs = [self._pair(runs, steps, frames) for _ in range(self.repeats)]
        without, taken = (Times(tuple(each), steps) for each in zip(*pairs, strict=True))
        found = ratio(taken, without)
        cost = (found - 1) * without.median * self.every
        measured = {"without_s": without.median, "ratio": found, "frame_s": cost}
        return head | taken.columns | measured

    def _pair(self, runs: "WholeRuns", steps: int, frames: str) -> tuple[float, float]:
        """Return the seconds of a step of a run without frames and of one with them."""
        return runs.seconds(steps) / steps, runs.seconds(steps, frames) / steps


def steps_for(seconds: float, measured: Callable[[int], float]) -> int:
    """Return how many steps take about some time.

    ``measured(steps)`` takes some and returns their seconds; the first call may take longer.
    """
    measured(FEWEST_STEPS)
    steps = FEWEST_STEPS
    while True:
        found = max(measured(steps), 1e-3)
        factor = seconds / found
        if factor <= GROWTH or steps * GROWTH >= MOST_STEPS:
            return max(FEWEST_STEPS, math.ceil(steps * min(factor, GROWTH)))
        steps *= GROWTH


@dataclass(frozen=True)
class WholeRuns:
    """Runs from the command line, each in a process of its own.

    Attributes
    ----------
    folder : Path
        Where they write; each replaces the one before.
    head : dict
        The device and the number of bodies.
    threads : int
    stop : callable
        Called before each run.
    """

    folder: Path
    head: Row
    threads: int
    stop: Stop

    def seconds(self, steps: int, frames: str = "null") -> float:
        """Return the seconds that the steps of a run took, by what it says at its end.

        Raises
        ------
        FileError
            The run failed.
        """
        self.stop()
        file = self.folder / "frames.yaml"
        threads = self.threads if self.head["device"] == "cpu" else "auto"
        given = self.head | {"steps": steps, "frames": frames, "threads": threads}
        file.write_text(CONFIG.format(**given))
        command = [sys.executable, "-m", "hybrid_nbody", "run", file.name, "--overwrite"]
        result = subprocess.run(
            command, cwd=self.folder, env=_environment(), capture_output=True, text=True
        )
        if result.returncode == STOPPED_EARLY:
            self.stop()
        found = STEPS.search(result.stdout)
        if result.returncode or not found:
            raise FileError(f"a run of the benchmark failed: {result.stderr.strip()}")
        return float(found[1])


def _environment() -> dict[str, str]:
    """Return the environment of a process that finds this package."""
    package = str(Path(__file__).parents[3])
    paths = filter(None, (package, os.environ.get("PYTHONPATH")))
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


COLOURS = {"cpu": style.BLUE, "gpu": style.GREEN}


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw the time with frames over that without, against the number of bodies."""
    figure = pictures.new_figure(3.2, facts)
    axes = figure.subplots()
    for (device, every), own in measure.groups(rows, "device", "every_steps"):
        label = f"{device.upper()}, a frame every {every} steps"
        pictures.draw_line(axes, own, "bodies", "ratio", color=COLOURS[device], label=label)
    axes.axhline(1.0, color=style.GREY, linewidth=0.8)
    axes.set(xscale="log", xlabel="bodies", ylabel="time with frames / without")
    axes.legend()
    return figure
