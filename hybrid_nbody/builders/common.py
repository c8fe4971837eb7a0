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
"""What ``resume --set`` may change whatever the model: not the physics that the part already done was computed with."""


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


def check_weights(config, size: int) -> None:
    """Check that a list of weights has one for each rank.

    Raises
    ------
    InputError
        If it does not.
    """
    balance = config.compute.balance
    if not isinstance(balance, str) and len(balance) != size:
        raise InputError(
            f"compute.balance: {len(balance)} weights for {size} rank{'s' if size > 1 else ''}; give one weight a rank"
        ).on_all_ranks()


def shares(config, number: int, size: int, measure) -> Partition:
    """Return who owns which of `number` items; ``measure()`` gives the speed of each rank where that is asked for."""
    balance = config.compute.balance
    weights = {"equal": lambda: [1.0] * size, "measured": measure}[balance]() if isinstance(balance, str) else balance
    return Partition.weighted(number, weights)


def placement_lines(built: Built, count) -> list[str]:
    """Say where the ranks compute, and what ``count(number)`` each has."""
    placement, exchange = built.placement, built.exchange
    how = "" if exchange.alone else f"; exchange {exchange.name} over {exchange.transport.name}"
    lines = [f"{placement.reason}{how}"]
    for (rank, host, device), number in zip(placement.table, exchange.partition.counts, strict=True):
        lines.append(f"  rank {rank:<4} {host:<20} {device:<28} {count(number)}")
    if placement.shared_gpus:
        lines.append("warning: ranks share a GPU; start one rank a GPU for full speed")
    return lines


def plural(number: int, one: str, many: str) -> str:
    """Return a number of things in words."""
    return f"{number} {one if number == 1 else many}"
