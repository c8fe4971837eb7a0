"""Checks of keys of a fluid's configuration that depend on each other."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic_core import InitErrorDetails

from hybrid_nbody.config.sections import fault

if TYPE_CHECKING:  # the schema calls these checks
    from hybrid_nbody.fluid.config import Event, FluidConfig

Faults = Iterator[InitErrorDetails]

ROUNDING = {"float32": 2.0**-23, "float64": 2.0**-52}
"""Distance from 1 to the next number."""

SMALLEST = {"float32": 2.0**-126, "float64": 2.0**-1022}
"""Smallest number of full precision."""


def faults(config: "FluidConfig") -> Faults:
    """Return a fault for each combination of valid keys that cannot be computed.

    Parameters
    ----------
    config : FluidConfig
        Every key valid by itself.
    """
    checks = (_backend, _boundary, _carry_over, _tolerance, _omega, _planes, _events)
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
    periodic = [condition == "periodic" for condition in config.fluid.boundary]
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
    if any(periodic) and config.solver.method == "lexicographic":
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


def _tolerance(config: "FluidConfig") -> Faults:
    solver = config.solver
    dtype = config.fluid.dtype
    rounding = ROUNDING[dtype]
    smallest = SMALLEST[dtype]
    if solver.criterion == "residual" and 0 < solver.tolerance < rounding:
        text = (
            f"must be 0 or at least {rounding:.2g}, the rounding of {dtype}, where criterion is "
            "residual; for the largest change of a cell, write criterion: change"
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
    for index, event in enumerate(config.sources.events):
        yield from _one_event(event, ("sources", "events", index), config)


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
