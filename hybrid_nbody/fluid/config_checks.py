"""Checks of keys of a fluid's configuration that depend on each other."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic_core import InitErrorDetails

from hybrid_nbody.config.faults import did_you_mean
from hybrid_nbody.config.sections import fault
from hybrid_nbody.errors import InputError
from hybrid_nbody.fluid import config_magnitudes, config_obstacles
from hybrid_nbody.fluid.config_boundary import FaceTable, faults_on_grid, kinds_of
from hybrid_nbody.fluid.config_face import Inflow

if TYPE_CHECKING:  # the schema calls these checks
    from hybrid_nbody.fluid.config import Event, FluidConfig

Faults = Iterator[InitErrorDetails]

ROUNDING = {"float32": 2.0**-23, "float64": 2.0**-52}
"""Distance from 1 to the next number."""

SMALLEST = {"float32": 2.0**-126, "float64": 2.0**-1022}
"""Smallest number of full precision."""

SPEEDS = {"float32": 1e15, "float64": 1e140}
"""Largest speed whose square is within the range of a type; of its inverse, all digits are."""


def faults(config: "FluidConfig") -> Faults:
    """Return a fault for each combination of valid keys that cannot be computed.

    Parameters
    ----------
    config : FluidConfig
        Every key valid by itself.
    """
    checks = (
        _backend,
        _boundary,
        *GRIDS[config.fluid.grid],
        _speeds,
        _tolerance,
        _omega,
        _planes,
        _scalars,
        _events,
    )
    return chain.from_iterable(check(config) for check in checks)


def _backend(config: "FluidConfig") -> Faults:
    backend = config.compute.backend
    named = [backend] if isinstance(backend, str) else list(backend)
    if "hybrid" in named:
        text = (
            "hybrid is for bodies; a rank of a fluid computes on one device: take gpu, or a list "
            "with one backend a rank, such as [gpu, cpu], whose planes are shared out by speed"
        )
        given = backend if isinstance(backend, str) else named
        yield fault(("compute", "backend"), given, text)


def _boundary(config: "FluidConfig") -> Faults:
    cells = config.grid.cells
    periodic = [kind == "periodic" for kind in kinds_of(config.fluid.boundary)[::2]]
    odd = [
        axis
        for axis, number, wraps in zip("xyz", cells, periodic, strict=True)
        if wraps and number % 2
    ]
    if odd:
        text = (
            "must be even along periodic axes, so that the colours alternate across the edge: "
            f"{', '.join(odd)}"
        )
        yield fault(("grid", "cells"), list(cells), text)
    yield from faults_on_grid(config.fluid.boundary, cells, SPEEDS[config.fluid.dtype])


def _lexicographic(config: "FluidConfig") -> Faults:
    periodic = "periodic" in kinds_of(config.fluid.boundary)
    if periodic and config.solver.method == "lexicographic":
        yield fault(("solver", "method"), "lexicographic", "knows no periodic axes; take red-black")
    if config.compute.backend == "gpu" and config.solver.method == "lexicographic":
        text = "runs on the CPU alone; take red-black, or compute.backend cpu"
        yield fault(("solver", "method"), "lexicographic", text)


def _carry_over(config: "FluidConfig") -> Faults:
    fluid = config.fluid
    plain = {"advection": "semi-lagrangian", "buoyancy": 0.0, "vorticity_confinement": 0.0}
    for key, value in plain.items() if config.sources.carry_over else ():
        if getattr(fluid, key) != value:
            text = (
                f"must be {value} with sources.carry_over, which is for the totals of a program "
                "without it"
            )
            yield fault(("fluid", key), getattr(fluid, key), text)
    if config.sources.carry_over and fluid.conserve:
        text = "must be false with sources.carry_over, which adds density at each step"
        yield fault(("fluid", "conserve"), True, text)


def _only_staggered(config: "FluidConfig") -> Faults:
    """Refuse what the collocated grid knows nothing of."""
    fluid = config.fluid
    text = "is for the staggered grid; write fluid.grid: staggered"
    if isinstance(fluid.boundary, FaceTable):
        given = fluid.boundary.model_dump()
        yield fault(("fluid", "boundary"), given, f"a face with a condition of its own {text}")
    if fluid.scalars:
        yield fault(("fluid", "scalars"), [scalar.name for scalar in fluid.scalars], text)
    if config.obstacles:
        yield fault(("obstacles",), [section.shape for section in config.obstacles], text)
    if config.time.cfl is not None:
        yield fault(("time", "cfl"), config.time.cfl, text)
    if config.solver.method == "conjugate-gradients":
        yield fault(("solver", "method"), "conjugate-gradients", text)
    if "pressure" in config.output.fields:
        yield fault(("output", "fields"), list(config.output.fields), f"pressure {text}")


STAGGERED_METHODS = ("multigrid", "red-black", "conjugate-gradients")


def _only_collocated(config: "FluidConfig") -> Faults:
    """Refuse what the staggered grid knows nothing of."""
    text = "is for the collocated grid; write fluid.grid: collocated"
    others: dict[tuple[str, str], tuple[object, tuple[object, ...]]] = {
        ("fluid", "projection"): (config.fluid.projection, ("exact",)),
        ("sources", "carry_over"): (config.sources.carry_over, (False,)),
        ("solver", "method"): (config.solver.method, STAGGERED_METHODS),
        ("solver", "criterion"): (config.solver.criterion, ("residual",)),
    }
    for path, (given, known) in others.items():
        if given not in known:
            yield fault(path, given, f"{given} {text}" if isinstance(given, str) else text)


def _obstacles(config: "FluidConfig") -> Faults:
    x, y, z = (kind == "periodic" for kind in kinds_of(config.fluid.boundary)[::2])
    yield from config_obstacles.faults(config.obstacles, config.grid.cells, (x, y, z))


GRIDS = {
    "collocated": (_lexicographic, _only_staggered, _carry_over),
    "staggered": (_only_collocated, _obstacles),
}
"""For each value of ``fluid.grid`` the checks of what it allows."""


def _speeds(config: "FluidConfig") -> Faults:
    """Check that squares of speeds of about a cell a step, as the pressure is, can be held.

    Other numbers are checked where the length of a step is a good one.
    """
    dtype = config.fluid.dtype
    time = config.time
    most = SPEEDS[dtype]
    cells = max(config.grid.cells)
    if not 1 / most <= cells * time.longest_part <= most:
        least, longest = (f"{value / cells:.1g}" for value in (1 / most, most))
        remedy = "" if dtype == "float64" else ", or write fluid.dtype: float64"
        text = (
            f"must be at least {least} and at most {longest} on this grid, for {dtype} to hold "
            f"squares of speeds; take another unit of time{remedy}"
        )
        path = ("time", "dt" if time.dt_max is None else "dt_max")
        yield fault(path, time.longest_part, text)
    else:
        yield from config_magnitudes.faults(config, most)


def _tolerance(config: "FluidConfig") -> Faults:
    solver = config.solver
    dtype = config.fluid.dtype
    rounding = ROUNDING[dtype]
    smallest = SMALLEST[dtype]
    if solver.criterion == "residual" and 0 < solver.tolerance < rounding:
        text = (
            f"must be 0 or at least {rounding:.2g}, the rounding of {dtype}, "
            "where criterion is residual"
        )
        yield fault(("solver", "tolerance"), solver.tolerance, text)
    elif 0 < solver.tolerance < smallest:
        text = f"must be 0 or at least {smallest:.2g}, the smallest change that {dtype} can tell"
        yield fault(("solver", "tolerance"), solver.tolerance, text)


def _omega(config: "FluidConfig") -> Faults:
    solver = config.solver
    if solver.omega != "auto" and solver.method != "sor":
        text = f"{solver.method} has no relaxation factor; leave it at auto"
        yield fault(("solver", "omega"), solver.omega, text)


def _planes(config: "FluidConfig") -> Faults:
    planes = config.output.planes
    number = config.grid.cells[2]
    if planes is not None and max(planes) >= number:
        text = f"must lie in the grid, which has the planes 0 to {number - 1}"
        yield fault(("output", "planes"), list(planes), text)


def _events(config: "FluidConfig") -> Faults:
    known = [scalar.name for scalar in config.fluid.scalars]
    for index, event in enumerate(config.sources.events):
        yield from _one_event(event, ("sources", "events", index), config)
        if event.scalar is not None and event.scalar.name not in known:
            name = event.scalar.name
            text = _unknown(name, known, "declare it in fluid.scalars")
            yield fault(("sources", "events", index, "scalar", "name"), name, text)


def _scalars(config: "FluidConfig") -> Faults:
    """Check the names of scalars wherever they stand."""
    names = [scalar.name for scalar in config.fluid.scalars]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield fault(("fluid", "scalars", index, "name"), name, "is the name of two scalars")
    shown = ("density", "velocity", "pressure", *names)
    for name in config.output.fields:
        if name not in shown:
            text = _unknown(name, shown, f"there are {', '.join(shown)}")
            yield fault(("output", "fields"), list(config.output.fields), f"{name}: {text}")
    yield from _scalars_of_inflows(config, ("density", *names))


def _scalars_of_inflows(config: "FluidConfig", known: Sequence[str]) -> Faults:
    boundary = config.fluid.boundary
    conditions = boundary.conditions if isinstance(boundary, FaceTable) else {}
    for face, condition in conditions.items():
        brought = condition.scalars if isinstance(condition, Inflow) else {}
        for name, value in brought.items():
            if name not in known:
                text = _unknown(name, known, "the fluid has the scalars " + ", ".join(known))
                yield fault(("fluid", "boundary", face, name), value, text)


def _unknown(name: str, known: Sequence[str], what_to_do: str) -> str:
    """Return that there is no such field, and the nearest that there is."""
    return f"no such field{did_you_mean(name, known) or ';'} {what_to_do}"


def _one_event(event: "Event", path: tuple[str | int, ...], config: "FluidConfig") -> Faults:
    """Check that an event happens during the run and within the grid."""
    steps = config.time.total_steps
    cells = config.grid.cells
    size = " x ".join(map(str, cells))
    if event.last >= steps:
        key, value = ("step", event.step) if event.steps is None else ("steps", list(event.steps))
        text = f"lies past the end of the run, whose steps are 0 to {steps - 1}"
        yield fault((*path, key), value, text)
    for keys, value, corner in _location(event):
        if any(not 0 <= cell < number for cell, number in zip(corner, cells, strict=True)):
            yield fault((*path, *keys), value, f"lies outside the grid of {size} cells")


def _location(event: "Event") -> Iterator[tuple[tuple[str, ...], list[Any], tuple[float, ...]]]:
    """Yield the key that says where an event happens, its value, and a cell within it.

    That cell must lie within the grid.
    """
    if event.cell is not None:
        yield ("cell",), list(event.cell), event.cell
    if event.box is not None:
        yield ("box",), [list(ends) for ends in event.box], tuple(end - 1 for _, end in event.box)
    if event.sphere is not None:
        centre = event.sphere.centre
        yield ("sphere", "centre"), list(centre), centre


def refuse_units_of_change(config: "FluidConfig") -> None:
    """Refuse a new run that measures changes in the units of its fields.

    A run that was begun with them can still be resumed.

    Raises
    ------
    InputError
    """
    solver = config.solver
    if solver.criterion == "change" and solver.tolerance and config.fluid.projection != "course":
        raise InputError(
            "solver.criterion: change depends on the units of time and density, and is for "
            "fluid.projection course alone; take residual, or solver.tolerance: 0, with which all "
            "iterations are done"
        )
