"""Leaving other processes the cores that they take, while a run goes on."""

from collections.abc import Callable

from hybrid_nbody.backends.crowding import LOOK_SECONDS
from hybrid_nbody.simulation.loop import Event
from hybrid_nbody.simulation.model import Device
from hybrid_nbody.simulation.schedule import EveryWallClock


def cores_events(device: Device, say: Callable[[str], object]) -> list[Event]:
    """Return what looks at the cores during a run; `say` is told in a line of what is done."""
    if not device.makes_way:
        return []

    def look() -> None:
        said = device.make_way()
        if said:
            say(said)

    return [Event("threads", EveryWallClock(LOOK_SECONDS), look)]
