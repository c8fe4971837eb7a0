"""``bench fluid``: the fluid model and the steps that led to it, from one thread to a GPU."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hybrid_nbody.benchmarks.fluid import (
    convergence as fluid_convergence,
)
from hybrid_nbody.benchmarks.fluid import (
    layouts as fluid_layouts,
)
from hybrid_nbody.benchmarks.fluid import (
    phases as fluid_phases,
)
from hybrid_nbody.benchmarks.fluid import (
    solvers as fluid_solvers,
)
from hybrid_nbody.benchmarks.fluid.pictures import fluid_figure
from hybrid_nbody.benchmarks.fluid.rows import COLUMNS, Settings
from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.machine import find_devices, host_memory
from hybrid_nbody.benchmarks.harness.pictures import write
from hybrid_nbody.benchmarks.harness.record import Plan, carry_out
from hybrid_nbody.errors import InputError


@dataclass(frozen=True)
class Part:
    """A part of the benchmark.

    Attributes
    ----------
    tasks : callable
        Takes `Settings`; yields its tasks.
    option : str
        Which option says how large its grids are.
    edges : callable
        Takes `Settings` and a device; returns the edges of its grids.
    """

    tasks: Callable
    option: str
    edges: Callable


PARTS = {
    "phases": Part(fluid_phases.tasks, "--sizes", fluid_phases.edges),
    "layouts": Part(fluid_layouts.layout_tasks, "--large", fluid_layouts.edges),
    "convergence": Part(fluid_convergence.tasks, "--sizes", fluid_convergence.edges),
    "blocks": Part(fluid_layouts.block_tasks, "--large", fluid_layouts.edges),
    "solvers": Part(fluid_solvers.tasks, "--poisson", fluid_solvers.edges),
}

SMALLEST = 4

BYTES_PER_CELL = 128
"""Upper bound on what a cell needs: the arrays of a run in float32 or a few in float64, and copies
on the host."""


def run(arguments) -> int:
    """Carry out ``bench fluid`` and return the exit code."""
    parts = options.words("--parts", arguments.parts, tuple(PARTS))
    check_used(arguments, parts)
    large = (
        None if arguments.large is None else options.number("--large", arguments.large, SMALLEST)
    )
    sizes = _edges("--sizes", arguments.sizes)
    poisson = _edges("--poisson", arguments.poisson)
    repeats = options.number("--repeats", arguments.repeats)
    devices = find_devices(arguments.backend)
    settings = Settings(devices, arguments.backend, repeats, sizes, poisson, large)
    chosen = [PARTS[part] for part in parts]
    for part in chosen:
        check_memory(devices, part.option, part.edges(settings, "gpu"))
    tasks = [task for part in chosen for task in part.tasks(settings)]
    if not tasks:
        raise InputError(
            f"--backend {arguments.backend} leaves nothing of --parts {arguments.parts}: it needs a GPU"
        )
    return carry_out(
        Plan("fluid", COLUMNS, tasks, partial(write, fluid_figure), conclude=best_lines),
        devices,
        arguments,
    )


def _edges(option, text):
    return None if text is None else options.numbers(option, text, least=SMALLEST)


def check_used(arguments, parts) -> None:
    """Check that each option for the edges of grids is of use to one of the chosen parts.

    Raises
    ------
    InputError
        If one was given and is not, saying which parts use it.
    """
    used = {PARTS[part].option for part in parts}
    for option in sorted({part.option for part in PARTS.values()} - used):
        if getattr(arguments, option.removeprefix("--")) is not None:
            users = [name for name, part in PARTS.items() if part.option == option]
            raise InputError(
                f"{option}: is for {' and '.join(users)} alone (got --parts {','.join(parts)})"
            )


def check_memory(devices, option: str, edges) -> None:
    """Check that the largest grid fits in memory.

    Raises
    ------
    InputError
        If it does not, saying how much is needed and how much there is.
    """
    edge = max(edges)
    needed = BYTES_PER_CELL * edge**3
    places = [("in memory", host_memory())] + (
        [("on the GPU", devices.gpu.free_memory())] if devices.gpu else []
    )
    for where, free in places:
        if needed > free:
            raise InputError(
                f"{option}: {edge}^3 cells need {needed / 2**30:.3g} GiB {where}, and {free / 2**30:.3g} GiB are "
                f"free; at most {int((free / BYTES_PER_CELL) ** (1 / 3))}^3 cells fit"
            )


def best_lines(rows) -> list[str]:
    """Return in words which shape of block was the fastest, and what the best layout reaches."""
    lines = []
    for part, what in (("blocks", "block"), ("layouts", "layout")):
        for device in ("cpu", "gpu"):
            chosen = [
                row
                for row in rows
                if (row["part"], row["device"]) == (part, device) and row.get("updates_per_s")
            ]
            if chosen:
                best = max(chosen, key=lambda row: row["updates_per_s"])
                rate = best["updates_per_s"] * 1e-9
                lines.append(
                    f"fastest {what}, {device.upper()}: {best['rung']}, {rate:.3g} G cell-iterations/s"
                )
    return lines
