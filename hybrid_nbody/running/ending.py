"""How runs end."""

from typing import NamedTuple

from hybrid_nbody.errors import STOPPED_EARLY

FINISHED = "finished"
"""The outcome at the last step."""

CONDITION = "condition"
"""The outcome when something has happened at which the run was to stop."""

SIGNALLED = "signalled"
"""The outcome of a request to stop."""

TIME_LIMIT = "time limit"
"""The outcome of ``time.wall_limit``."""

ENDED = (FINISHED, CONDITION)
"""The outcomes of a run that is not to be continued."""


class Ending(NamedTuple):
    """How a run ended.

    Attributes
    ----------
    outcome : str
        One of the outcomes above.
    line : str
        What a person is told: how and where it ended; after a semicolon, what to do next.
    """

    outcome: str
    line: str

    @property
    def code(self) -> int:
        """Return the exit code of the program."""
        return 0 if self.outcome in ENDED else STOPPED_EARLY
