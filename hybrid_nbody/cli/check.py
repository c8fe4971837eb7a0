"""Looking before a run: what a configuration would do (``check``)."""

from dataclasses import dataclass
from pathlib import Path

from hybrid_nbody.analysis.info import readable_size
from hybrid_nbody.config import loader
from hybrid_nbody.fluid.diagnostics import QUANTITIES as OF_FLUIDS
from hybrid_nbody.nbody.diagnostics import QUANTITIES as OF_BODIES
from hybrid_nbody.nbody.integrators.stages import FORCE, INTEGRATORS
from hybrid_nbody.output import directory
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.placement import place
from hybrid_nbody.progress import duration
from hybrid_nbody.run.models import BUILDERS, MODELS

BYTES_PER_BODY_OF_A_FRAME = 48
BYTES_PER_BODY_OF_A_CHECKPOINT = 69
BYTES_PER_BODY_OF_A_TRAJECTORY = 16

BYTES_OF_A_TRAJECTORY = 45_000
BYTES_OF_A_FRAME = 130
BYTES_OF_A_CHECKPOINT = 6_600
"""What HDF5 and the names and units of data sets add to the numbers; measured."""

ROWS_AT_ONCE = 1024
"""Rows of the tables of diagnostics and of times for which HDF5 takes room at once."""

QUANTITIES = {"nbody": OF_BODIES, "fluid": OF_FLUIDS}
"""What rows of diagnostics hold beside their step and their time."""

ARRAYS_OF_A_FLUID = 10
"""Arrays of the grid that a rank holds: velocity, density, room for both, and two of the solver."""

SAVED_ARRAYS = 4
CARRIED_ARRAYS = 4
"""Arrays of the grid in a checkpoint, and those that a run which carries over adds."""


@dataclass(frozen=True)
class Plan:
    """What a configuration would do, whatever the model.

    Attributes
    ----------
    problem : list of str
        Lines on what is computed.
    work : str
        How much there is to compute.
    frame, checkpoint, once : int
        Bytes of the numbers in a frame, in a checkpoint, and in what a trajectory holds once.
    """

    problem: list[str]
    work: str
    frame: int
    checkpoint: int
    once: int


def check(path, overrides, communicator) -> str:
    """Return what a configuration would do on these ranks; writes nothing.

    Raises
    ------
    InputError
        On every rank, with every fault of the file.
    """
    config = communicator.on_root(lambda: _resolved(path, overrides))
    builder = BUILDERS[config.model](config, communicator)
    builder.check()
    communicator.only_on_root(
        lambda: directory.check(Path(config.output.directory), overwrite=True)
    )
    initial = communicator.only_on_root(builder.initial)
    placement = place(config.compute.backend, config.compute.threads, communicator)
    if not communicator.is_root:
        return ""
    plan = PLANS[config.model](config, initial, communicator.size)
    lines = [
        f"{path}: a valid configuration",
        *plan.problem,
        f"  compute      {placement.reason}; rank 0: {placement.backend.description}",
        f"  work         {plan.work}",
        *_output_lines(config, plan),
    ]
    return "\n".join(lines)


def _resolved(path, overrides):
    config = loader.load(path, overrides, models=MODELS)
    return BUILDERS[config.model].resolved(config)


# --- the models -----------------------------------------------------------------------------------


def _plan_of_bodies(config, bodies, ranks) -> Plan:
    number = len(bodies)
    gravity = config.gravity
    shares = _shares(config, number, ranks)
    force = f"{gravity.solver}, {gravity.precision} precision, softening {gravity.softening:g}, G = {gravity.G:g}"
    return Plan(
        problem=[
            f"  bodies       {number} ({config.bodies.kind}), {min(shares)} to {max(shares)} a rank on {ranks}",
            f"  time         {config.time.integrator}, {_time(config.time)}",
            f"  force        {force}",
        ],
        work=_interactions(config.time, number),
        frame=number * BYTES_PER_BODY_OF_A_FRAME + _bytes_of_a_map(config.activity_map),
        checkpoint=number * BYTES_PER_BODY_OF_A_CHECKPOINT,
        once=number * BYTES_PER_BODY_OF_A_TRAJECTORY,
    )


def _interactions(time, number):
    """Return how many interactions there would be; adaptive substeps make them more."""
    adaptive = time.integrator not in INTEGRATORS
    forces = 2 if adaptive else INTEGRATORS[time.integrator].count(FORCE)
    return (
        f"{'at least ' if adaptive else ''}{number**2 * time.total_steps * forces:.3g} interactions"
    )


def _bytes_of_a_map(activity_map):
    return 0 if activity_map is None else 8 * activity_map.cells**2


def _plan_of_fluid(config, events, ranks) -> Plan:
    nx, ny, nz = config.grid.cells
    shares = _shares(config, nz, ranks)
    size = BYTES_OF_A_CELL[config.fluid.dtype]
    plane = nx * ny * BYTES_OF_A_CELL[config.fluid.dtype]
    saved = SAVED_ARRAYS + (CARRIED_ARRAYS if config.sources.carry_over else 0)
    memory = readable_size(ARRAYS_OF_A_FLUID * (max(shares) + 2) * plane, digits=3)
    return Plan(
        problem=[
            f"  grid         {nx} x {ny} x {nz} cells, {min(shares)} to {max(shares)} planes a rank on {ranks}",
            f"  memory       about {memory} a rank: {ARRAYS_OF_A_FLUID} arrays, {config.fluid.dtype}",
            f"  time         {_time(config.time)}",
            *_method_lines(config),
            f"  sources      {_sources(config, events)}",
        ],
        work=f"{nx * ny * nz * config.time.total_steps:.3g} cells stepped",
        frame=_cells_of_a_frame(config) * size,
        checkpoint=saved * nz * plane,
        once=0,
    )


PLANS = {"nbody": _plan_of_bodies, "fluid": _plan_of_fluid}

BYTES_OF_A_CELL = {"float32": 4, "float64": 8}


def _shares(config, number, ranks):
    """Return how many rows each rank would have; measured weights are not known yet and taken as equal."""
    weights = config.compute.balance
    return Partition.weighted(number, [1.0] * ranks if isinstance(weights, str) else weights).counts


def _method_lines(config):
    """Return how a step of a fluid would be computed."""
    fluid = config.fluid
    solver = config.solver
    alike = len(set(fluid.boundary)) == 1
    boundary = (
        f"{fluid.boundary[0]} on all sides"
        if alike
        else f"{', '.join(fluid.boundary)} along x, y, z"
    )
    stop = (
        f"tolerance {solver.tolerance:g} on the {solver.criterion}"
        if solver.tolerance
        else "no tolerance"
    )
    return [
        f"  fluid        {boundary}; viscosity {fluid.viscosity:g}, diffusion {fluid.diffusion:g}",
        f"  method       {fluid.advection} advection, {fluid.projection} projection",
        f"  solver       {solver.method}, at most {solver.max_iterations} iterations, {stop}",
    ]


def _sources(config, events):
    """Return what would be put into a fluid, and when."""
    carried = (
        "; each step starts from what the one before left (carry_over)"
        if config.sources.carry_over
        else ""
    )
    if not events:
        return f"none: the fluid stays at rest{carried}"
    first = min(event.first for event in events)
    last = max(event.last for event in events)
    number = f"{len(events)} event{'s' if len(events) > 1 else ''}"
    return f"{number}, steps {first} to {last}{carried}"


def _cells_of_a_frame(config):
    """Return how many numbers a frame of a fluid holds."""
    (nx, ny, nz), output = config.grid.cells, config.output
    planes = len(range(0, nz, output.stride)) if output.planes is None else len(output.planes)
    components = {"density": 1, "velocity": 3}
    numbers = sum(components[name] for name in output.fields)
    return numbers * planes * len(range(0, ny, output.stride)) * len(range(0, nx, output.stride))


# --- time and output ------------------------------------------------------------------------------


def _time(time):
    end = time.total_steps * time.dt
    text = f"{time.total_steps} steps of {time.dt:g}, to t = {end:.10g}"
    if time.end is not None and abs(end - time.end) > 1e-9 * time.end:
        text += f" (time.end = {time.end:g} is no multiple of dt)"
    return text + (
        f", at most {duration(time.wall_limit)} of wall-clock time" if time.wall_limit else ""
    )


def _output_lines(config, plan):
    """Return what would be written where, and how large it would be."""
    output = config.output
    steps = config.time.total_steps
    frames = _events(output.trajectory, steps, config.time.dt)
    rows = _events(output.diagnostics, steps, config.time.dt)
    kept = output.checkpoint.keep if output.checkpoint else 1
    numbers = 2 + sum(quantity.components for quantity in QUANTITIES[config.model].values())
    tables = 2 * _room(frames) + numbers * _room(rows)
    trajectory = (
        BYTES_OF_A_TRAJECTORY + frames * (plan.frame + BYTES_OF_A_FRAME) + 8 * tables + plan.once
    )
    size = readable_size(trajectory + kept * (plan.checkpoint + BYTES_OF_A_CHECKPOINT), digits=3)
    folder = Path(output.directory)
    files = f"{frames} frames, {rows} rows of diagnostics, {kept} checkpoints, about {size}"
    lines = [f"  output       {folder}: {files}"]
    if directory.files_of_a_run(folder):
        lines.append(
            f"  note         {folder} holds a run already: resume it, or run with --overwrite"
        )
    return lines


def _room(rows):
    """Return for how many rows of a table there is room."""
    return -(-rows // ROWS_AT_ONCE) * ROWS_AT_ONCE


def _events(every, steps, dt):
    """Return how often an output section is due in a run, the initial and the final state included."""
    if every is None:
        return 0
    interval = every.every_steps or max(every.every_time / dt, 1.0)
    whole = int(steps / interval + 1e-9)
    return whole + 1 + (whole * interval < steps - 1e-9 * steps)
