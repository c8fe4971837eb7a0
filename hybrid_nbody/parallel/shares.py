"""Common parts of the builders of models: devices, shares of the rows, and lines of the log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.exchange.base import Exchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.placement import Placement, assign_device
from hybrid_nbody.parallel.transport.base import Transport
from hybrid_nbody.parallel.transport.choice import choose_transport

Model_co = TypeVar("Model_co", covariant=True)

CHANGEABLE = (
    "title",
    "time.end",
    "time.steps",
    "time.wall_limit",
    "compute",
    "output",
)
"""Keys that ``resume --set`` may change whatever the model: they leave the physics as it is."""


class ComputeKeys(Protocol):
    """The keys of the section ``compute`` that say where the work is done."""

    @property
    def backend(self) -> str | Sequence[str]:
        """Return a backend for all ranks, or one for each."""

    @property
    def balance(self) -> str | Sequence[float]:
        """Return how rows are shared out, or the weight of each rank."""


@dataclass(frozen=True)
class Devices:
    """The choice of devices, and of the transport between them.

    Attributes
    ----------
    assign : callable, optional
        See `assign_device`.
    connect : callable, optional
        See `choose_transport`.
    """

    assign: Callable[..., Placement] = assign_device
    connect: Callable[..., Transport] = choose_transport


@dataclass(frozen=True)
class RunSetup(Generic[Model_co]):
    """A model, and where it runs.

    Attributes
    ----------
    model : Model
        See `hybrid_nbody.simulation.model.Model`; None where it had to make room for another.
    placement : Placement
        This rank's device.
    exchange : Exchange
        The exchange of data; its partition holds the share of each rank.
    """

    model: Model_co
    placement: Placement
    exchange: Exchange


def check_lists(compute: ComputeKeys, size: int) -> None:
    """Check that lists of backends and of weights have an entry for each rank.

    Parameters
    ----------
    compute : Compute
        The section of a configuration.
    size : int
        Number of ranks.

    Raises
    ------
    InputError
        If one has not.
    """
    lists = {"backend": (compute.backend, "backend"), "balance": (compute.balance, "weight")}
    for key, (given, what) in lists.items():
        if not isinstance(given, str) and len(given) != size:
            found = plural(len(given), what, f"{what}s")
            ranks = plural(size, "rank", "ranks")
            raise InputError(
                f"compute.{key}: {found} for {ranks}; give one {what} per rank"
            ).on_all_ranks()


def is_mixed(placement: Placement) -> bool:
    """Return whether ranks compute on different kinds of devices."""
    return len(set(placement.backends)) > 1


def is_measured(compute: ComputeKeys, placement: Placement) -> bool:
    """Return whether shares follow the speed of the ranks.

    They do where that is asked for, and by default where the devices of the ranks differ.
    """
    if compute.balance == "auto":
        return is_mixed(placement)
    return bool(compute.balance == "measured")


def shares(
    compute: ComputeKeys,
    number: int,
    placement: Placement,
    measure: Callable[[], Sequence[float]],
    least: int = 0,
) -> Partition:
    """Return which rank owns which rows.

    Parameters
    ----------
    compute : Compute
        The section of a configuration.
    number : int
        Rows of all ranks.
    placement : Placement
        Where the ranks compute.
    measure : callable
        ``measure()`` gives the speed of each rank where that is wanted.
    least : int
        Rows that a rank has at least, however slow it is.
    """
    if is_measured(compute, placement):
        return Partition.weighted(number, measure(), least)
    return Partition.weighted(number, _weights(compute.balance, len(placement.backends)))


def planned_counts(balance: str | Sequence[float], number: int, ranks: int) -> tuple[int, ...]:
    """Return how many rows each rank would have; speeds are not measured yet and taken as equal.

    Parameters
    ----------
    balance : str or sequence of float
        ``compute.balance`` of a configuration.
    number : int
        Rows of all ranks.
    ranks : int
        Number of ranks.
    """
    return Partition.weighted(number, _weights(balance, ranks)).counts


def _weights(balance: str | Sequence[float], ranks: int) -> Sequence[float]:
    return [1.0] * ranks if isinstance(balance, str) else balance


def placement_lines(
    compute: ComputeKeys, setup: RunSetup[object], count: Callable[[int], str]
) -> list[str]:
    """Say where the ranks compute, and how many rows each has.

    Parameters
    ----------
    compute : Compute
        The section of a configuration.
    setup : RunSetup
    count : callable
        ``count(number)`` puts a number of rows into words.
    """
    table = setup.placement.table
    counts = setup.exchange.partition.counts
    lines = [f"{setup.placement.reason}{_connection(compute, setup)}"]
    for (rank, host, device), number in zip(table, counts, strict=True):
        lines.append(f"  rank {rank:<4} {host:<20} {device:<28} {count(number)}")
    return lines + [f"warning: {text}" for text in _warnings(setup)]


def _connection(compute: ComputeKeys, setup: RunSetup[object]) -> str:
    """Say how several ranks are connected."""
    exchange = setup.exchange
    if exchange.alone:
        return ""
    by_speed = "; shares by speed" if is_measured(compute, setup.placement) else ""
    return f"; exchange {exchange.name} over {exchange.transport.name}{by_speed}"


def _warnings(setup: RunSetup[object]) -> list[str]:
    exchange = setup.exchange
    found = []
    if setup.placement.shared_gpus:
        found.append("ranks share a GPU; start one rank per GPU for full speed")
    if setup.placement.oversubscribed:
        found.append(setup.placement.oversubscribed)
    if not exchange.alone and exchange.transport.warning:
        found.append(exchange.transport.warning)
    return found


def plural(number: int, one: str, many: str) -> str:
    """Return a number of things in words."""
    return f"{number} {one if number == 1 else many}"
