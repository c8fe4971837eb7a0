"""``check``: the plan of a run, told before it is started."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hybrid_nbody.analysis.info import readable_size
from hybrid_nbody.backends.base import Backend
from hybrid_nbody.config.sections import ModelConfig, Output, Time
from hybrid_nbody.files import checkpoint
from hybrid_nbody.output import directory
from hybrid_nbody.output.disk import writing_speed
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.placement import Placement, assign_device, working_threads
from hybrid_nbody.progress import duration
from hybrid_nbody.running.amounts import Sizes, counts_of, disk_bytes, event_count
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.start import resolved, without_numpy_warnings
from hybrid_nbody.simulation.model import Quantity
from hybrid_nbody.simulation.plan import Memory, Plan, Workers

WORTH_MEASURING = 1e8
"""Bytes from which it is worth a moment to measure how fast the disk takes them."""


def check(path: str | Path, overrides: Sequence[str], communicator: Communicator) -> str:
    """Return what a configuration would do on these ranks; writes nothing that stays.

    Raises
    ------
    InputError
        On every rank, with every fault of the file.
    """
    with without_numpy_warnings():
        return _check(path, overrides, communicator)


def _check(path: str | Path, overrides: Sequence[str], communicator: Communicator) -> str:
    config = communicator.on_root(lambda: resolved(path, overrides))
    kind = MODELS[config.model]
    builder = kind.builder(config, communicator)
    builder.check()
    communicator.only_on_root(
        lambda: directory.check(Path(config.output.directory), overwrite=True)
    )
    initial = communicator.only_on_root(builder.initial)
    placement = assign_device(config.compute.backend, config.compute.threads, communicator)
    threads = working_threads(placement.backend.threads, communicator)
    pace = builder.pace(placement.backend)
    if not communicator.is_root:
        return ""
    plan = kind.plan(config, initial, communicator.size)
    several = communicator.on_several_nodes
    workers = Workers(tuple(placement.backends), threads, pace, several)
    lacking = _lacking(plan.memory, placement, communicator)
    rows = [
        *plan.problem,
        *_memory(plan.memory, placement.backend),
        *([("warning", lacking)] if lacking else []),
        ("time", _time(config.time)),
        ("compute", f"{placement.reason}; rank 0: {placement.backend.description}"),
        *([("warning", placement.oversubscribed)] if placement.oversubscribed else []),
        *plan.on_devices(workers),
        ("work", plan.work),
        *_output(config, plan, kind.quantities),
    ]
    lines = [f"  {name:<12} {text}" for name, text in rows]
    but = ", but too large for the memory here" if lacking else ""
    return "\n".join([f"{path}: a valid configuration{but}", *lines])


def _memory(memory: Memory | None, backend: Backend) -> list[tuple[str, str]]:
    if memory is None:
        return []
    size = readable_size(memory.on(backend.message_cells), digits=3)
    return [("memory", f"about {size} per rank: {memory.reason}")]


def _lacking(memory: Memory | None, placement: Placement, communicator: Communicator) -> str:
    """Return that a rank's memory does not suffice; empty if it does, or nothing is known."""
    if memory is None:
        return ""
    backend = placement.backend
    sharing = backend.shares_host_memory or placement.shared_gpus
    ranks = communicator.local_size if sharing else 1
    free = int(backend.free_memory())
    needed_bytes = ranks * memory.on(backend.message_cells)
    if needed_bytes <= free:
        return ""
    needed = readable_size(needed_bytes, digits=3)
    together = f" for {ranks} ranks" if ranks > 1 else ""
    return (
        f"a run needs about {needed}{together}, and {readable_size(free, digits=3)} are free on "
        f"{backend.description}; take fewer {memory.of}, or more nodes or GPUs"
    )


def _time(time: Time) -> str:
    end = time.total_steps * time.dt
    text = f"{time.total_steps} steps of {time.dt:g}, to t = {end:.10g}"
    if time.end is not None and abs(end - time.end) > 1e-9 * time.end:
        text += f" (time.end = {time.end:g} is not a multiple of dt)"
    if time.wall_limit:
        text += f", at most {duration(time.wall_limit)} of wall-clock time"
    return text


def _output(
    config: ModelConfig, plan: Plan, quantities: Mapping[str, Quantity]
) -> list[tuple[str, str]]:
    """Return what would be written where, and how large it would be."""
    output = config.output
    counts = counts_of(output, config.time)
    columns = 2 + sum(quantity.components for quantity in quantities.values())
    sizes = Sizes(plan.frame_bytes, plan.checkpoint_bytes, plan.static_bytes, columns)
    size = readable_size(disk_bytes(counts, sizes), digits=3)
    folder = Path(output.directory)
    found = [("output", f"{folder}: {counts.in_words}, about {size}")]
    saved = event_count(output.checkpoint, config.time) or 1
    trajectory = disk_bytes(counts._replace(checkpoints=0), sizes)
    found += _writing(folder, trajectory + saved * plan.checkpoint_bytes)
    found += _shorter_than_steps(output, config.time.dt)
    if directory.files_of_a_run(folder) and not directory.failed_at_its_start(folder):
        resume = "resume it, or " if checkpoint.checkpoints(folder) else ""
        found.append(("note", f"{folder} holds a run already: {resume}run with --overwrite"))
    return found


def _shorter_than_steps(output: Output, dt: float) -> list[tuple[str, str]]:
    """Return which sections are due more often than there are steps."""
    sections = {name: getattr(output, name) for name in ("trajectory", "diagnostics", "checkpoint")}
    return [
        ("note", f"output.{name}.every_time is shorter than a step: it is due at each")
        for name, every in sections.items()
        if every and every.every_time is not None and every.every_time < dt
    ]


def _writing(folder: Path, written: float) -> list[tuple[str, str]]:
    """Return how long the disk takes for what a run writes, unless that is little."""
    if written < WORTH_MEASURING:
        return []
    speed = writing_speed(directory.existing_part(folder))
    if speed is None:
        return []
    size = readable_size(written, digits=3)
    rate = readable_size(speed, digits=3)
    seconds = written / speed
    time = duration(seconds) if seconds >= 1.0 else "less than a second"
    return [("writing", f"{size} with all checkpoints, {time} at the {rate}/s of this disk")]
