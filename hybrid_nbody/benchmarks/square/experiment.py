"""``bench square``: gravity in a plane by N and by N x N threads, with kernels of a course."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hybrid_nbody.analysis import style
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.benchmarks.harness import machine, measure, options, pictures, runs
from hybrid_nbody.benchmarks.harness.measure import Column, Row, Stop, digits, only
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.ladder.rungs import PRODUCTION, Rung
from hybrid_nbody.benchmarks.ladder.runs import Layout
from hybrid_nbody.nbody.initial_conditions import random_square

SOURCE = Path(__file__).with_name("square.cu")
G = 9.8
SOFTENING = 2.0
DT = 0.01
MOST_BODIES = 65535
"""Blocks that a grid may have along y: N x N threads have one a body there."""

LAYOUTS = {
    "structs": Layout("drift_structs", ((0, 1, 3, 4, 6),), 1),
    "arrays": Layout("drift_arrays", ((0,), (1,), (3,), (4,), (6,)), 4),
}
READ = {"structs": (0,), "arrays": (0, 1, 4)}
"""The layouts by name, and which of their arrays hold sources."""

MEMORIES = ("global", "read-only", "texture", "shared")
BLOCKS = (16, 32, 64)
UNROLLS = (1, 4, 16)
ONE_THREAD = "CPU, one thread"

COLUMNS = (
    Column("part", "memory, blocks or devices"),
    measure.BODIES,
    Column("rung", "what was measured", "Rung", note="note"),
    measure.DEVICE,
    Column("note", "what the machine lacks for this rung"),
    Column("threads", "threads of a GPU rung: N, one a body, or N x N, one a pair"),
    Column("layout", "structs: an array of structs; arrays: a struct of arrays"),
    Column("memory", "where sources are read from; N x N, shared: where results are staged"),
    measure.BLOCK,
    measure.UNROLL,
    measure.TARGETS,
    *measure.timing_columns(" of a step", "steps", rank=4),
    measure.GFLOPS,
    Column("speedup", "speed-up over the first rung of its part and size", "×\nfirst", "3"),
    *measure.CHECKS,
)


def square(number: int) -> runs.Problem:
    """Return bodies at rest in the unit square, their masses times G."""
    return runs.as_problem(random_square(number, seed=1), SOFTENING, DT, G)


class LoopRun(runs.LoopRun):
    """A step by one of the CPU loops in a plane."""

    drift_name = "plane_drift"

    def restart(self) -> None:
        """Put the bodies back at rest, as the rows x, y, vx, vy and mass of an array of float32."""
        mass = self.problem.mass
        at_rest = np.zeros_like(mass)
        self.bodies = np.stack([*self.problem.position.T[:2], at_rest, at_rest, mass])

    def step(self, targets: int) -> None:
        self.kick(self.bodies, self.problem.eps2, self.dt)
        self.drift(self.bodies, self.dt)

    def result(self) -> tuple[NDArray, NDArray]:
        zero = np.zeros_like(self.bodies[0])
        position = np.stack([*self.bodies[:2], zero], axis=1)
        return position, np.stack([*self.bodies[2:4], zero], axis=1)


class Kernel(NamedTuple):
    """A kernel of ``square.cu``: one thread a body, N, or one a pair, N x N.

    With N x N threads, ``shared`` is where results are staged. A block is a power of two.
    """

    threads: str
    layout: str = "arrays"
    memory: str = "read-only"
    block: int = 64
    unroll: int = 1

    @property
    def name(self) -> str:
        start = {"N": "threads", "N x N": "pairs"}[self.threads]
        return f"{start}_{self.layout}_{self.memory.replace('-', '_')}"

    @property
    def defines(self) -> dict[str, int]:
        return {"BLOCK": self.block, "UNROLL": self.unroll}

    def grid(self, number: int) -> tuple[int, int]:
        return -(-number // self.block), {"N": 1, "N x N": number}[self.threads]


class KernelRun(runs.BodyRun):
    """A step by a kernel of ``square.cu``."""

    def __init__(self, backend: Any, problem: runs.Problem, kernel: Kernel):
        super().__init__(backend, problem)
        self.kernel = kernel
        self.layout = LAYOUTS[kernel.layout]
        self.dt = np.float32(problem.dt)
        self.module = CudaModule(backend, SOURCE, kernel.defines)
        self.restart()

    def restart(self) -> None:
        """Put the bodies back at rest; sources can be read through textures, too."""
        self.arrays = self.layout.upload(self.backend, self.problem, self.problem.number)
        read = (self.arrays[place] for place in READ[self.kernel.layout])
        self.textures = [self.backend.texture(array) for array in read]

    def result(self) -> tuple[NDArray, NDArray]:
        return self.layout.result([self.backend.download(array) for array in self.arrays])

    def step(self, targets: int) -> None:
        kernel = self.kernel
        number = self.problem.number
        physics = np.int32(number), self.problem.eps2, self.dt
        arguments = (*physics, *self.arrays, *self.textures)
        self.module.launch_grid(kernel.name, kernel.grid(number), (kernel.block,), arguments)
        moving = np.int32(number), self.dt, *self.arrays[: self.layout.moving]
        self.module.launch(self.layout.drift, number, kernel.block, *moving)


def on_gpu(name: str, *how: Any) -> Rung:
    """Return a rung that is a kernel of ``square.cu``."""
    kernel = Kernel(*how)
    return Rung(name, "gpu", partial(KernelRun, kernel=kernel), kernel)


MEMORY_RUNGS = tuple(
    on_gpu(f"{threads} threads, {layout}, {memory}", threads, layout, memory)
    for threads, layout, memory in product(("N", "N x N"), LAYOUTS, MEMORIES)
)
PLACES = ("read-only", "shared")
BLOCK_RUNGS = tuple(
    on_gpu("N threads, {}, block {}, unroll {}".format(*how), "N", "arrays", *how)
    for how in product(PLACES, BLOCKS, UNROLLS)
) + tuple(
    on_gpu(f"N x N threads, {memory}, block {block}", "N x N", "arrays", memory, block)
    for memory, block in product(PLACES, BLOCKS)
)
RUNGS = (
    Rung(ONE_THREAD, "cpu", lambda backend, of: LoopRun(CpuBackend(1), of, "plane_serial")),
    Rung("CPU, all threads", "cpu", partial(LoopRun, kick="plane_threads")),
    PRODUCTION[0]._replace(name="CPU, as a run computes"),
    on_gpu("GPU, N threads", "N", "arrays", "texture"),
    on_gpu("GPU, N x N threads", "N x N"),
    PRODUCTION[1]._replace(name="GPU, as a run computes"),
)

PARTS = {
    "memory": ("{} bodies: threads, layout and memory, blocks of 64", MEMORY_RUNGS),
    "blocks": ("{} bodies: block size and unrolling, struct of arrays", BLOCK_RUNGS),
    "devices": ("{} bodies: one thread, all threads and a GPU", RUNGS),
}


def run(arguments: Namespace) -> int:
    """Carry out ``bench square`` and return the exit code."""
    sizes = options.numbers("--sizes", arguments.sizes, 2, MOST_BODIES)
    compared = options.numbers("--compare", arguments.compare, 2, MOST_BODIES)
    devices = machine.find_devices(arguments.backend)
    machine.check_memory(devices, [*sizes, *compared])
    parts = [*product(sizes, ("memory", "blocks")), *product(compared, ("devices",))]
    tasks = [task for part in parts for task in _tasks(*part, devices, arguments.repeats)]

    def summary(rows: Sequence[Row]) -> dict[str, Any]:
        return {"crossover_bodies": crossover(rows), "conclusions": conclude(rows)}

    plan = Plan("square", COLUMNS, tasks, draw, conclude, summarise=summary)
    return carry_out(plan, devices, arguments)


def _tasks(number: int, part: str, devices: machine.Devices, repeats: int) -> Iterator[Task]:
    problem = cache(partial(square, number))

    def row_of(rung: Rung, rows: list[Row], stop: Stop) -> Row:
        head: Row = {"part": part, "bodies": number, "rung": rung.name, "device": rung.device}
        head |= rung.kernel._asdict() if rung.kernel else {}
        row = rung.row(head, devices, problem(), repeats, stop)
        devices.cpu.use()  # one rung takes a single thread
        return row | measure.speedup(rows, row, "part", "bodies")

    title, rungs = PARTS[part]
    for rung in rungs:
        yield Task(title.format(number), rung.name, partial(row_of, rung))


def fastest(rows: Sequence[Row], threads: str) -> dict[int, float]:
    """Return the seconds of the fastest rung but those of devices, by number of bodies."""
    own = [row for row in only(rows, threads=threads) if row["part"] != "devices"]
    sizes = sorted(measure.groups(measure.having(own, "median_s"), "bodies"))
    return {number: min(row["median_s"] for row in group) for (number,), group in sizes}


def crossover(rows: Sequence[Row]) -> float | None:
    """Return the bodies above which N threads are faster than N x N threads, if there are any."""
    found = measure.crossing(fastest(rows, "N"), fastest(rows, "N x N"))
    return found[0] if found else None


def conclude(rows: Sequence[Row]) -> list[str]:
    """Return where N x N threads stop to pay, and what threads and a GPU bring, in words."""
    return [_crossing(rows), *_gains(rows)]


def _crossing(rows: Sequence[Row]) -> str:
    few = fastest(rows, "N")
    many = fastest(rows, "N x N")
    if not few or not many:
        return "N threads against N x N threads: not measured, it needs a GPU"
    found = crossover(rows)
    if found:
        ranges = f"up to about {found:.0f} bodies, N threads above"
        return f"N x N threads are faster {ranges}; the course found about 1000"
    size = max(few.keys() & many.keys())
    faster = "N threads" if few[size] <= many[size] else "N x N threads"
    return f"no crossover: {faster} are faster at {size} bodies; the course found one near 1000"


def _gains(rows: Sequence[Row]) -> Iterator[str]:
    rows = only(measure.having(rows, "median_s"), part="devices")
    number = max((row["bodies"] for row in rows), default=0)
    for row in only(rows, bodies=number):
        if row["rung"] != ONE_THREAD:
            speedup = digits(3)(row["speedup"])
            yield f"{number} bodies: {row['rung']}: {speedup} times as fast as one thread"


LINES = (style.BLUE, style.VERMILLION)
MARKERS = "os^Dv*"

CLOSEST = 1.2
"""The least ratio of two sizes that are both labelled."""


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw the time of a step against the number of bodies, in two panels."""
    rows = measure.having(rows, "median_s")
    figure = pictures.new_figure(4.0, facts)
    left, right = figure.subplots(1, 2)
    _draw_threads(left, rows)
    _draw_devices(right, only(rows, part="devices"))
    return figure


def _draw_threads(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw the fastest rung with N and with N x N threads, and where they cross."""
    axes.set_title("the fastest rung on the GPU", loc="left")
    found = {threads: fastest(rows, threads) for threads in ("N", "N x N")}
    for (threads, times), marker, colour in zip(found.items(), "os", LINES, strict=True):
        if times:
            look: pictures.Look = {"color": colour, "markersize": 4, "label": f"{threads} threads"}
            axes.plot(list(times), list(times.values()), f"{marker}-", **look)
    if not all(found.values()):
        axes.text(0.5, 0.5, "needs a GPU", transform=axes.transAxes, ha="center", color=style.GREY)
        axes.set(xticks=[], yticks=[])
        return
    _style(axes, found["N"])
    equal = crossover(rows)
    if equal:
        dotted: pictures.Look = {"color": style.BLACK, "linewidth": 1, "linestyle": ":"}
        axes.axvline(equal, label=f"equal at {equal:.0f}", **dotted)
    axes.legend()


def _draw_devices(axes: Axes, rows: Sequence[Row]) -> None:
    axes.set_title("one thread, all threads and a GPU", loc="left")
    lines = measure.groups(sorted(rows, key=lambda row: row["bodies"]), "rung")
    for ((name,), own), colour, marker in zip(lines, style.BODY_COLOURS, MARKERS, strict=False):
        look: pictures.Look = {"color": colour, "label": name}
        pictures.draw_line(axes, own, "bodies", "median_s", f"{marker}-", **look)
    if rows:
        _style(axes, {row["bodies"] for row in rows})
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _style(axes: Axes, sizes: Any) -> None:
    """Scale and label the axes; only sizes that are far enough apart have labels."""
    axes.set(xscale="log", yscale="log", xlabel="bodies", ylabel="µs a step")
    labelled: list[int] = []
    for size in sorted(sizes):
        if not labelled or size >= labelled[-1] * CLOSEST:
            labelled.append(size)
    style.fixed_ticks(axes.xaxis, labelled)
    axes.tick_params(axis="x", labelsize=7, labelrotation=45)
    style.time_ticks(axes.yaxis, 1e6)
