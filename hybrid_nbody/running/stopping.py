"""The conditions at which a run stops, looked at while it goes on."""

from collections.abc import Callable, Iterable, Sequence

from hybrid_nbody.conditions import Look, Measured, Watch
from hybrid_nbody.simulation.loop import Event, TimeLoop
from hybrid_nbody.simulation.schedule import AnyOf, EverySteps, Schedule


class Stopping:
    """Looks at conditions, and acts when one begins to hold.

    Parameters
    ----------
    looks : iterable of Look
        The conditions.
    simulation : TimeLoop
        Has the model.
    measured : callable
        Returns the diagnostics of the present state.

    Attributes
    ----------
    happened : str
        What stopped the run, in words; empty if nothing has.
    """

    def __init__(self, looks: Iterable[Look], simulation: TimeLoop, measured: Measured) -> None:
        self.watches = {look: Watch(look.condition) for look in looks}
        self.simulation = simulation
        self.measured = measured
        self.happened = ""

    def begin(self) -> list[str]:
        """Return what holds already, in words: it does not stop the run."""
        found = [self._look(watch) for watch in self.watches.values()]
        return [text for text in found if text]

    def events(self, measure: Sequence[Schedule], end: Callable[[], None]) -> list[Event]:
        """Return the looks at the conditions; those of diagnostics where these are computed.

        Parameters
        ----------
        measure : sequence of Schedule
            When diagnostics are computed.
        end : callable
            Called when something has happened.
        """

        def event(look: Look, watch: Watch) -> Event:
            return Event("conditions", schedule_of(look, measure), lambda: self._act(watch, end))

        return [event(look, watch) for look, watch in self.watches.items()]

    def _act(self, watch: Watch, end: Callable[[], None]) -> None:
        text = self._look(watch)
        if text:
            self.happened = f"{self.happened}; {text}" if self.happened else text
            end()

    def _look(self, watch: Watch) -> str:
        return watch.look(self.simulation.model, self.measured)


def schedule_of(look: Look, measure: Sequence[Schedule]) -> Schedule:
    """Return when a condition is looked at; `measure` says when diagnostics are computed."""
    return AnyOf(*measure) if look.condition.measured else EverySteps(look.every_steps)
