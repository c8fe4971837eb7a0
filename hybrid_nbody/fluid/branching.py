"""Runs of a fluid that start from a state of another run."""

from collections.abc import Mapping

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.state import Source
from hybrid_nbody.fluid.config import FluidConfig

IN_FRAMES: dict[str, Source] = {
    "state/u": ("fluid/velocity", 0),
    "state/v": ("fluid/velocity", 1),
    "state/w": ("fluid/velocity", 2),
    "state/density": ("fluid/density", None),
}
"""Where the fields of a state stand in a frame that holds every cell."""


def sources_in_frames(config: FluidConfig) -> Mapping[str, Source]:
    """Return where the fields of a state stand in the frames of a run.

    Raises
    ------
    InputError
        The frames do not hold density and velocity of every cell, or these are not all of a state.
    """
    output = config.output
    is_staggered = config.fluid.grid == "staggered"
    missing = [name for name in ("density", "velocity") if name not in output.fields]
    faults = {
        "velocities at the centres of cells, not those at faces (fluid.grid)": is_staggered,
        f"no {' and no '.join(missing)} (output.fields)": bool(missing),
        f"1 of every {output.stride} cells along an axis (output.stride)": output.stride > 1,
        "some planes alone (output.planes)": output.planes is not None,
        "not what is carried over to the next step (sources.carry_over)": config.sources.carry_over,
    }
    found = [text for text, is_fault in faults.items() if is_fault]
    if found:
        raise InputError(found[0])
    return IN_FRAMES


def with_events_to_come(before: FluidConfig, config: FluidConfig, step: int) -> FluidConfig:
    """Return a configuration without events that are past, where steps have another length.

    Parameters
    ----------
    before, config : FluidConfig
        Of the earlier run, and of the new one.
    step : int
        Of the earlier run.

    Raises
    ------
    InputError
        An event is still to come, and would fall at another time.
    """
    sources = config.sources
    if before.time.dt == config.time.dt or before.sources.events != sources.events:
        return config
    to_come = [event.last for event in sources.events if event.last >= step]
    if to_come:
        raise InputError(
            f"time.dt: sources.events are counted in steps, and one at step {max(to_come)} is "
            f"still to come, which steps of {config.time.dt:g} would move to another time; give "
            "the events anew, in the new steps: --set 'sources.events=[...]', or [] for none"
        )
    without = sources.model_copy(update={"events": ()})
    return config.model_copy(update={"sources": without})
