"""The conditions at which a run stops, looked at while it goes on."""

from collections.abc import Callable, Iterable, Sequence

from hybrid_nbody.conditions import Condition, Measured, Watch
from hybrid_nbody.simulation.loop import Event, TimeLoop
from hybrid_nbody.simulation.schedule import AnyOf, EverySteps, Schedule


class Stopping:
    """Looks at conditions, and acts when one begins to hold.

    Parameters
    ----------
    conditions : iterable of Condition
    simulation : TimeLoop
        Has the model.
    measured : callable
        Returns the diagnostics of the present state.

    Attributes
    ----------
    happened : str
        What stopped the run, in words; empty if nothing has.
    """

    def __init__(
        self, conditions: Iterable[Condition], simulation: TimeLoop, measured: Measured
    ) -> None:
        self.watches = [Watch(condition) for condition in conditions]
        self.simulation = simulation
        self.measured = measured
        self.happened = ""

    def begin(self) -> list[str]:
        """Return what holds already, in words: it does not stop the run."""
        found = [self._look(watch) for watch in self.watches]
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

        def event(watch: Watch) -> Event:
            schedule = AnyOf(*measure) if watch.condition.measured else EverySteps(1)
            return Event("conditions", schedule, lambda: self._act(watch, end))

        return [event(watch) for watch in self.watches]

    def _act(self, watch: Watch, end: Callable[[], None]) -> None:
        text = self._look(watch)
        if text:
            self.happened = f"{self.happened}; {text}" if self.happened else text
            end()

    def _look(self, watch: Watch) -> str:
        return watch.look(self.simulation.model, self.measured)
