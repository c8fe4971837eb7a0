"""The model of a simulation at its start, and what a person is warned of."""

import sys
import warnings
from collections.abc import Iterator
from itertools import count
from types import FrameType
from typing import Any

from hybrid_nbody.api.fluids import GivenFluid, own_planes
from hybrid_nbody.fluid.config import FluidConfig
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.precision_range import check_range
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.shares import RunSetup
from hybrid_nbody.running.contract import AnyBuilder
from hybrid_nbody.running.models import MODELS

PACKAGE = __name__.partition(".")[0]


def builder_of(config: Any, communicator: Communicator) -> AnyBuilder:
    """Return what builds the model of a configuration, which it has checked; collective."""
    builder: AnyBuilder = MODELS[config.model].builder(in_full(config), communicator)
    builder.check()
    return builder


def in_full(config: Any) -> Any:
    """Return a configuration of which a simulation has all cells, whatever files would hold."""
    if not isinstance(config, FluidConfig):
        return config
    fields = tuple(dict.fromkeys(("density", "velocity", *config.output.fields)))
    whole = {"planes": None, "stride": 1, "fields": fields}
    return config.model_copy(update={"output": config.output.model_copy(update=whole)})


def setup_of(builder: AnyBuilder, initial: Bodies | GivenFluid | None) -> RunSetup[Any]:
    """Return the model that starts from what is given, or from what a configuration says.

    Parameters
    ----------
    builder : Builder
        Every rank calls together.
    initial : Bodies or GivenFluid, optional
        Of the model of the builder. Bodies on the root; what other ranks pass is not used.

    Raises
    ------
    InputError
        On every rank, if the precision of the force cannot hold the bodies.
    """
    if isinstance(initial, GivenFluid):
        return _fluid(builder, initial)

    def bodies() -> Any:
        if initial is None:
            return builder.initial()
        check_range(initial, builder.config.gravity)  # type: ignore[attr-defined]
        return initial

    return builder.fresh(builder.communicator.only_on_root(bodies))


def _fluid(builder: AnyBuilder, initial: GivenFluid) -> RunSetup[Any]:
    """Return the model of a fluid that starts from arrays."""
    setup: RunSetup[Any] = builder.fresh(builder.communicator.only_on_root(builder.initial))
    setup.model.begin(own_planes(initial, setup.exchange.own, builder.communicator))
    return setup


def warn_of(builder: AnyBuilder) -> None:
    """Warn of what a builder has found of its model, at the line that asked for it."""
    for text in builder.warnings if builder.communicator.is_root else ():
        warnings.warn(text, stacklevel=1 + _frames_of_ours())


def _frames_of_ours() -> int:
    """Return how many functions of this package stand between the caller and who uses it."""
    numbered = zip(count(), _callers(sys._getframe(1)), strict=False)
    return next((number for number, name in numbered if name != PACKAGE), 0)


def _callers(frame: FrameType | None) -> Iterator[str]:
    """Yield the package of a function, and of each that has called it."""
    while frame is not None:
        yield str(frame.f_globals.get("__name__", "")).partition(".")[0]
        frame = frame.f_back
