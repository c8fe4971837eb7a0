"""What the builders of all models share: devices, weights, transports, and the words for them."""

from dataclasses import dataclass

from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.placement import Placement

CHANGEABLE = (
    "title",
    "time.end",
    "time.steps",
    "time.wall_limit",
    "compute",
    "output.trajectory",
    "output.diagnostics",
    "output.checkpoint",
)
"""What ``resume --set`` may change whatever the model: not the physics that the part already done
was computed with."""


@dataclass(frozen=True)
class Built:
    """A model, and where it runs.

    Attributes
    ----------
    model : Model
    placement : Placement
        This rank's device.
    exchange : AllgatherExchange or HaloExchange
        How ranks see each other's data; its partition says who owns what.
    """

    model: object
    placement: Placement
    exchange: object


def check_lists(config, size: int) -> None:
    """Check that lists of backends and of weights have an entry for each rank.

    Raises
    ------
    InputError
        If one has not.
    """
    for key, what in (("backend", "backend"), ("balance", "weight")):
        given = getattr(config.compute, key)
        if not isinstance(given, str) and len(given) != size:
            raise InputError(
                f"compute.{key}: {plural(len(given), what, what + 's')} for {plural(size, 'rank', 'ranks')}; "
                f"give one {what} a rank"
            ).on_all_ranks()


def is_mixed(placement: Placement) -> bool:
    """Return whether ranks compute on devices of several kinds."""
    return len(set(placement.kinds)) > 1


def is_measured(config, placement: Placement) -> bool:
    """Return whether shares follow the speed of the ranks: as asked for, or because their devices differ."""
    return {"auto": is_mixed(placement), "measured": True}.get(config.compute.balance, False)


def shares(config, number: int, placement: Placement, measure, least: int = 0) -> Partition:
    """Return who owns which of `number` items.

    Parameters
    ----------
    config : NBodyConfig or FluidConfig
    number : int
        Items in all.
    placement : Placement
        Where the ranks compute.
    measure : callable
        ``measure()`` gives the speed of each rank where that is wanted.
    least : int
        Items that a rank has at least, however slow it is.
    """
    if is_measured(config, placement):
        return Partition.weighted(number, measure(), least)
    balance = config.compute.balance
    return Partition.weighted(
        number, [1.0] * len(placement.kinds) if isinstance(balance, str) else balance
    )


def placement_lines(config, built: Built, count) -> list[str]:
    """Say where the ranks compute, and what ``count(number)`` each has."""
    placement = built.placement
    exchange = built.exchange
    how = "" if exchange.alone else f"; exchange {exchange.name} over {exchange.transport.name}"
    how += "; shares by speed" if is_measured(config, placement) and not exchange.alone else ""
    lines = [f"{placement.reason}{how}"]
    for (rank, host, device), number in zip(
        placement.table, exchange.partition.counts, strict=True
    ):
        lines.append(f"  rank {rank:<4} {host:<20} {device:<28} {count(number)}")
    if placement.shared_gpus:
        lines.append("warning: ranks share a GPU; start one rank a GPU for full speed")
    if not exchange.alone and exchange.transport.warning:
        lines.append(f"warning: {exchange.transport.warning}")
    return lines


def plural(number: int, one: str, many: str) -> str:
    """Return a number of things in words."""
    return f"{number} {one if number == 1 else many}"
