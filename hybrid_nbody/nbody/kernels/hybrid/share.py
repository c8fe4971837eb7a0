"""How much of a rank's work the helper of a hybrid backend takes: what was measured, and what follows from it."""

from dataclasses import dataclass, field

FORCES_BETWEEN = 64
"""Forces after which a share is looked at again."""

STEP = 0.2
"""Most that a share changes at once, relative to itself."""

WORTHWHILE = 0.05
"""Smallest change, relative to the share, that is made or tried: a new share costs some
preparation."""

LEAST = 1e-3
"""A share that shrinks below this is given up."""


@dataclass(frozen=True)
class Rates:
    """Interactions a second of each device by itself."""

    main: float
    helper: float

    @property
    def predicted(self) -> float:
        """The share with which both devices would take equally long."""
        return self.helper / (self.helper + self.main)


@dataclass(frozen=True)
class Choice:
    """What was measured at the start, and what was taken.

    Attributes
    ----------
    rates : Rates
        Of both devices.
    tried : dict of float to float
        Seconds of a force by share; 0 and 1 are the devices alone.
    share : float
        The fastest of them: one of the devices alone unless both together are faster by a margin.
    """

    rates: Rates
    tried: dict[float, float]
    share: float

    def __str__(self):
        seconds = ", ".join(
            f"{share:.3g}: {1e3 * self.tried[share]:.3g} ms" for share in sorted(self.tried)
        )
        return (
            f"cpu_share {self.share:.3g} chosen (a force by share: {seconds}; {self.rates.predicted:.3g} predicted "
            f"from {self.rates.main:.3g} and {self.rates.helper:.3g} interactions/s)"
        )


MARGIN = 0.99
"""Both devices together are taken if a force takes at most so much of what it takes the better
one."""


def best_share(tried: dict[float, float]) -> float:
    """Return the share to take, of those that were tried with their seconds: that of a device alone in doubt."""
    alone = min((share for share in tried if share in (0.0, 1.0)), key=tried.get)
    best = min(tried, key=tried.get)
    return best if tried[best] <= MARGIN * tried[alone] else alone


@dataclass
class Readings:
    """Seconds of the forces with one share, added up.

    Attributes
    ----------
    forces : int
        How many.
    main, helper : float
        Seconds that each device computed.
    whole : float
        Seconds from the beginning until both parts were joined.
    """

    forces: int = field(default=0)
    main: float = 0.0
    helper: float = 0.0
    whole: float = 0.0

    def add(self, main: float, helper: float, whole: float) -> None:
        """Add a force."""
        self.forces += 1
        self.main += main
        self.helper += helper
        self.whole += whole

    def balanced(self, share: float) -> float:
        """Return the share with which both devices would have taken equally long; these readings are of `share`."""
        helper = share / self.helper
        main = (1 - share) / self.main
        return helper / (helper + main)

    def adapted(self, share: float) -> float:
        """Return the share to go on with: half the way to the balance, within bounds; less where it does not pay."""
        if self.whole > self.main / (1 - share):  # what the main device would take for all of it
            return share / 2 if share / 2 > LEAST else 0.0
        change = 0.5 * (self.balanced(share) - share)
        if abs(change) < WORTHWHILE * share:
            return share
        return share + min(max(change, -STEP * share), STEP * share)
