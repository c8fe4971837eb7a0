"""The work, memory and output of a fluid's run, estimated before it starts."""

from collections.abc import Sequence

import numpy as np

from hybrid_nbody.fluid.config import FluidConfig, Solver
from hybrid_nbody.fluid.config_boundary import Boundary, FaceTable, kinds_of
from hybrid_nbody.fluid.frames import components_of
from hybrid_nbody.fluid.pace import in_words
from hybrid_nbody.fluid.scheme import Scheme
from hybrid_nbody.fluid.schemes import scheme_of
from hybrid_nbody.fluid.sources import Event
from hybrid_nbody.fluid.staggered.faces import NAMES
from hybrid_nbody.parallel.shares import planned_counts
from hybrid_nbody.simulation.plan import Lines, Memory, Plan, Workers, no_bytes, rows_per_rank


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
    scheme = scheme_of(config)
    return Plan(
        problem=[
            ("grid", f"{nx} x {ny} x {nz} cells, {rows_per_rank(counts, 'planes')}"),
            *_method(config),
            ("sources", _sources(config, events)),
        ],
        work=f"{nx * ny * nz * config.time.total_steps:.3g} cells stepped",
        on_devices=lambda workers: _expected(config, workers),
        frame_bytes=_numbers_of_a_frame(config) * number_bytes,
        checkpoint_bytes=scheme.saved_arrays * nz * plane_bytes,
        memory=_memory(scheme, counts, config.fluid.dtype),
    )


def _memory(scheme: Scheme, counts: Sequence[int], dtype: str) -> Memory:
    """Return what the largest of the ranks holds, which have some planes each."""
    more = scheme.complete_bytes if len(counts) > 1 else no_bytes
    reason = f"{scheme.arrays} arrays, {dtype}"
    return Memory(scheme.rank_bytes(max(counts)), reason, more_bytes=more)


def _expected(config: FluidConfig, workers: Workers) -> Lines:
    """Return how long the run takes on devices of a known speed."""
    rate = workers.pace * len(workers.backends)
    return [("expected", in_words(config, rate, config.time.total_steps))] if rate else []


def _method(config: FluidConfig) -> list[tuple[str, str]]:
    """Return how a step would be computed."""
    fluid = config.fluid
    solver = config.solver
    boundary = _boundary(fluid.boundary)
    return [
        ("fluid", f"{boundary}; viscosity {fluid.viscosity:g}, diffusion {fluid.diffusion:g}"),
        ("method", f"{fluid.grid} grid, {fluid.advection} advection{_projection(config)}"),
        ("solver", f"{solver.method}, at most {solver.max_iterations} iterations, {_stop(solver)}"),
        *_parts(config),
    ]


def _projection(config: FluidConfig) -> str:
    """Return the projection, where there are two."""
    if config.fluid.grid == "staggered":
        return ""
    return f", {config.fluid.projection} projection"


def _parts(config: FluidConfig) -> list[tuple[str, str]]:
    """Return how steps are divided, if they are."""
    time = config.time
    if time.cfl is None:
        return []
    return [("parts", f"of steps: the fluid crosses at most {time.cfl:g} cells in each")]


def _boundary(boundary: Boundary) -> str:
    """Return the conditions, those of alike faces together."""
    kinds = kinds_of(boundary)
    if len(set(kinds)) == 1:
        return f"{kinds[0]} on all sides"
    if kinds[::2] == kinds[1::2]:
        return f"{', '.join(kinds[::2])} along x, y, z"
    pairs = zip(NAMES, kinds, strict=True)
    return ", ".join(f"{name} {kind}" for name, kind in pairs)


def _stop(solver: Solver) -> str:
    if not solver.tolerance:
        return "no tolerance"
    return f"tolerance {solver.tolerance:g} on the {solver.criterion}"


def _sources(config: FluidConfig, events: Sequence[Event]) -> str:
    """Return what would be put into the fluid, and when."""
    carried = "; each step starts from what the one before left (carry_over)"
    end = carried if config.sources.carry_over else ""
    if not events:
        at_rest = "" if _is_driven(config) else ": the fluid stays at rest"
        return f"none{at_rest}{end}"
    first = min(event.first for event in events)
    last = max(event.last for event in events)
    number = f"{len(events)} event{'s' if len(events) > 1 else ''}"
    return f"{number}, steps {first} to {last}{end}"


def _is_driven(config: FluidConfig) -> bool:
    """Return whether faces or obstacles set the fluid in motion."""
    boundary = config.fluid.boundary
    faces = boundary.conditions.values() if isinstance(boundary, FaceTable) else boundary
    given = any(not isinstance(condition, str) for condition in faces)
    return given or any(section.moves for section in config.obstacles)


def _numbers_of_a_frame(config: FluidConfig) -> int:
    """Return how many numbers a frame holds."""
    nx, ny, nz = config.grid.cells
    output = config.output
    planes = len(range(0, nz, output.stride)) if output.planes is None else len(output.planes)
    components = sum(components_of(name) for name in output.fields)
    rows = len(range(0, ny, output.stride))
    columns = len(range(0, nx, output.stride))
    return components * planes * rows * columns
