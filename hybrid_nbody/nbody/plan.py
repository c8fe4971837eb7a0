"""The plan of a run of bodies: its work, memory and files."""

from hybrid_nbody.nbody.config import ActivityMap, NBodyConfig
from hybrid_nbody.nbody.config_output import BodyFrames
from hybrid_nbody.nbody.forces.choice import AUTO, FMM, candidates, chosen
from hybrid_nbody.nbody.forces.external import made_fields
from hybrid_nbody.nbody.forces.tree.shares import MOST_WHOLE
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS
from hybrid_nbody.nbody.pace import in_words, of_a_step, seconds_of_force, seconds_of_step
from hybrid_nbody.nbody.precision_range import warnings_of
from hybrid_nbody.nbody.solver import wanted_of
from hybrid_nbody.nbody.starting import Initial
from hybrid_nbody.nbody.state import BYTES_OF_A_SOURCE
from hybrid_nbody.nbody.time_scales import warnings_of_steps
from hybrid_nbody.parallel.shares import planned_counts
from hybrid_nbody.simulation.plan import Lines, Plan, Workers, rows_per_rank

COMPONENTS = 3
"""Numbers of a body in a field of a frame."""

FRAME_BYTES = {"float32": 4, "float64": 8}
"""Bytes of one of them."""

CHECKPOINT_BYTES_PER_BODY = 69
"""The same, mass, identity, and the order in which forces are summed."""

CHECKPOINT_BYTES_WITH_ACCELERATION = 88
"""The same with the last acceleration in the place of the order."""

TREE_BYTES_PER_BODY = 600
"""Bodies, cells, expansions and lists of a tree, about."""

WORTH_CHANGING = 1.0
"""Seconds of a step from which on a faster force is proposed."""

MUCH_FASTER = 3.0
"""How many times faster it is, at least."""

MUCH_MEMORY = 1e7
"""Bytes of a force that are worth saying."""

TRAJECTORY_BYTES_PER_BODY = 16
"""Mass and identity, which a trajectory holds once."""


def plan(config: NBodyConfig, initial: Initial, ranks: int) -> Plan:
    """Return what a run of a configuration would compute and write.

    Parameters
    ----------
    config : NBodyConfig
    initial : Bodies, DrawnBodies, ExaminedFile or Composed
        All bodies, what draws them, or files that hold them.
    ranks : int
        Ranks of the run.
    """
    number = len(initial)
    counts = planned_counts(config.compute.balance, number, ranks)
    gravity = config.gravity
    map_bytes = _map_bytes(config.activity_map)
    frames = config.output.trajectory or BodyFrames(every_steps=1)
    return Plan(
        problem=[
            ("bodies", f"{number} ({_kinds(config)}), {rows_per_rank(counts)}"),
            (
                "force",
                f"{gravity.solver}, {gravity.precision} precision, "
                f"softening {gravity.softening:g}, G = {gravity.G:g}",
            ),
            *([("units", config.units.in_words)] if config.units else []),
            *_external(config),
            ("integrator", config.time.integrator),
            *[("stops at", stop.in_words) for stop in config.stop],
            *_warnings(config, initial),
        ],
        work=_work(config, number),
        frame_bytes=_frame_bytes(frames, number) + map_bytes,
        checkpoint_bytes=number * _checkpoint_bytes(gravity.solver),
        static_bytes=frames.number_of(number) * TRAJECTORY_BYTES_PER_BODY,
        on_devices=lambda workers: _method(config, number, workers),
    )


def _kinds(config: NBodyConfig) -> str:
    """Return the kinds of the components, each once."""
    return ", ".join(dict.fromkeys(bodies.kind for bodies in config.components))


def _warnings(config: NBodyConfig, initial: Initial) -> Lines:
    """Return what a run would warn of before its first step."""
    sample = initial.sample()
    found = [
        *warnings_of(sample, config.gravity),
        *warnings_of_steps(sample, len(initial), config),
    ]
    return [("warning", text) for text in found]


def _method(config: NBodyConfig, number: int, workers: Workers) -> Lines:
    """Return the force that such devices take, how long steps take there, and its memory."""
    choice = chosen(wanted_of(config, number, workers.several_nodes), workers.backends)
    force = seconds_of_force(config, number, choice, workers)
    if force is None:
        return [("method", choice.line)]
    step = seconds_of_step(force, config)
    whole = in_words(step * config.time.total_steps, config)
    memory = _memory(number, choice.name == FMM, workers.backends)
    method = f"{choice.line}; {of_a_step(step)} a step, {whole} in all{memory}"
    return [("method", method), *_faster(config, number, step, workers)]


def _faster(config: NBodyConfig, number: int, step: float, workers: Workers) -> Lines:
    """Return a line on a force that takes much less time than the one that is asked for."""
    wanted = wanted_of(config, number, workers.several_nodes)._replace(solver=AUTO)
    choice = chosen(wanted, workers.backends)
    force = seconds_of_force(config, number, choice, workers)
    if force is None:
        return []
    other = seconds_of_step(force, config)
    if step < WORTH_CHANGING or other * MUCH_FASTER > step:
        return []
    error = f"with errors of {config.gravity.accuracy:g}"
    time = f"{of_a_step(other)} a step, {error}"
    return [("note", f"gravity.solver: auto would take {choice.name}: {time}")]


def _memory(number: int, is_tree: bool, backends: tuple[str, ...]) -> str:
    """Return the memory of a force in words; nothing where it is little."""
    size = number * (TREE_BYTES_PER_BODY if is_tree else BYTES_OF_A_SOURCE)
    if size < MUCH_MEMORY:
        return ""
    is_divided = is_tree and not _may_be_whole(number, backends)
    where = "in all" if is_divided else "at most on a rank"
    return f", {size / 1e9:.2g} GB of memory {where}"


def _may_be_whole(number: int, backends: tuple[str, ...]) -> bool:
    """Return whether each of several GPUs has the whole tree, if they are of one host."""
    return len(backends) > 1 and set(backends) == {"gpu"} and number <= MOST_WHOLE


def _work(config: NBodyConfig, number: int) -> str:
    """Return how many interactions there would be; adaptive substeps make them more."""
    integrator = INTEGRATORS[config.time.integrator]
    forces = config.time.total_steps * integrator.forces_per_step
    if not all(kind.all_pairs for kind in candidates(config.gravity.solver)):
        return f"{number * forces:.3g} accelerations"
    at_least = "at least " if integrator.adaptive else ""
    return f"{at_least}{number**2 * forces:.3g} interactions"


def _checkpoint_bytes(solver: str) -> int:
    """Return the bytes of a body in a checkpoint."""
    if all(kind.all_pairs for kind in candidates(solver)):
        return CHECKPOINT_BYTES_PER_BODY
    return CHECKPOINT_BYTES_WITH_ACCELERATION


def _external(config: NBodyConfig) -> Lines:
    """Return a line of the external fields, which are loaded and checked for that."""
    fields = config.gravity.external or ()
    made_fields([field.made for field in fields], config.gravity.G)
    names = [getattr(field, "function", field.kind) for field in fields]  # that of one's own
    return [("external", ", ".join(names))] if names else []


def _frame_bytes(frames: BodyFrames, number: int) -> int:
    """Return the bytes of the bodies in a frame."""
    numbers = frames.number_of(number) * len(frames.fields) * COMPONENTS
    return numbers * FRAME_BYTES[frames.precision]


def _map_bytes(activity_map: ActivityMap | None) -> int:
    return 0 if activity_map is None else 8 * activity_map.cells**2
