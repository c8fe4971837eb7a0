"""The work, memory and output of a fluid's run, estimated before it starts."""

from collections.abc import Sequence

import numpy as np

from hybrid_nbody.fluid.config import FluidConfig, Solver
from hybrid_nbody.fluid.sources import Event
from hybrid_nbody.fluid.step_memory import ARRAYS, rank_bytes
from hybrid_nbody.parallel.shares import planned_counts
from hybrid_nbody.simulation.plan import Memory, Plan, rows_per_rank

SAVED_ARRAYS = 4
"""Arrays of the grid in a checkpoint."""

CARRIED_ARRAYS = 4
"""Arrays of the grid that `sources.carry_over` adds to a checkpoint."""

COMPONENTS = {"density": 1, "velocity": 3}


def plan(config: FluidConfig, events: Sequence[Event], ranks: int) -> Plan:
    """Return what a run of a configuration would compute, hold and write.

    Parameters
    ----------
    config : FluidConfig
    events : sequence of Event
        What would be put into the fluid.
    ranks : int
        Ranks of the run.
    """
    nx, ny, nz = config.grid.cells
    counts = planned_counts(config.compute.balance, nz, ranks)
    number_bytes = np.dtype(config.fluid.dtype).itemsize
    plane_bytes = nx * ny * number_bytes
    saved = SAVED_ARRAYS + (CARRIED_ARRAYS if config.sources.carry_over else 0)
    return Plan(
        problem=[
            ("grid", f"{nx} x {ny} x {nz} cells, {rows_per_rank(counts, 'planes')}"),
            *_method(config),
            ("sources", _sources(config, events)),
        ],
        work=f"{nx * ny * nz * config.time.total_steps:.3g} cells stepped",
        frame_bytes=_numbers_of_a_frame(config) * number_bytes,
        checkpoint_bytes=saved * nz * plane_bytes,
        memory=Memory(
            rank_bytes(config.grid.cells, max(counts), config.fluid.dtype),
            f"{ARRAYS} arrays, {config.fluid.dtype}",
        ),
    )


def _method(config: FluidConfig) -> list[tuple[str, str]]:
    """Return how a step would be computed."""
    fluid = config.fluid
    solver = config.solver
    boundary = _boundary(fluid.boundary)
    return [
        ("fluid", f"{boundary}; viscosity {fluid.viscosity:g}, diffusion {fluid.diffusion:g}"),
        ("method", f"{fluid.advection} advection, {fluid.projection} projection"),
        ("solver", f"{solver.method}, at most {solver.max_iterations} iterations, {_stop(solver)}"),
    ]


def _boundary(conditions: tuple[str, str, str]) -> str:
    if len(set(conditions)) == 1:
        return f"{conditions[0]} on all sides"
    return f"{', '.join(conditions)} along x, y, z"


def _stop(solver: Solver) -> str:
    if not solver.tolerance:
        return "no tolerance"
    return f"tolerance {solver.tolerance:g} on the {solver.criterion}"


def _sources(config: FluidConfig, events: Sequence[Event]) -> str:
    """Return what would be put into the fluid, and when."""
    carried = "; each step starts from what the one before left (carry_over)"
    end = carried if config.sources.carry_over else ""
    if not events:
        return f"none: the fluid stays at rest{end}"
    first = min(event.first for event in events)
    last = max(event.last for event in events)
    number = f"{len(events)} event{'s' if len(events) > 1 else ''}"
    return f"{number}, steps {first} to {last}{end}"


def _numbers_of_a_frame(config: FluidConfig) -> int:
    """Return how many numbers a frame holds."""
    nx, ny, nz = config.grid.cells
    output = config.output
    planes = len(range(0, nz, output.stride)) if output.planes is None else len(output.planes)
    components = sum(COMPONENTS[name] for name in output.fields)
    rows = len(range(0, ny, output.stride))
    columns = len(range(0, nx, output.stride))
    return components * planes * rows * columns
