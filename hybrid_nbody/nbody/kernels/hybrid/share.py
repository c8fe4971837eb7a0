"""The share of a rank's work that the helper of a hybrid backend takes, from measurements."""

from dataclasses import dataclass

FORCES_BETWEEN = 64
"""Forces after which a share is reconsidered."""

STEP = 0.2
"""Largest change of a share at once, relative to it."""

WORTHWHILE = 0.05
"""Smallest change, relative to the share, that is made or tried: a new share costs preparation."""

LEAST = 1e-3
"""A smaller share becomes zero."""


@dataclass(frozen=True)
class Rates:
    """Interactions a second of each device by itself."""

    main: float
    helper: float

    @property
    def predicted(self) -> float:
        """Return the share with which both devices would take equally long."""
        return self.helper / (self.helper + self.main)


@dataclass(frozen=True)
class Choice:
    """The measurements at the start, and the share that was chosen.

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

    def __str__(self) -> str:
        seconds = ", ".join(
            f"{share:.3g}: {1e3 * self.tried[share]:.3g} ms" for share in sorted(self.tried)
        )
        rates = self.rates
        return (
            f"cpu_share {self.share:.3g} chosen (a force by share: {seconds}; "
            f"{rates.predicted:.3g} predicted from {rates.main:.3g} and {rates.helper:.3g} "
            "interactions/s)"
        )


MARGIN = 0.99
"""Both devices are used if a force takes at most this fraction of the time on the better one."""


def best_share(tried: dict[float, float]) -> float:
    """Return the best of the shares that were tried, by seconds: one device alone if in doubt."""
    alone = min((share for share in tried if share in (0.0, 1.0)), key=tried.__getitem__)
    best = min(tried, key=tried.__getitem__)
    return best if tried[best] <= MARGIN * tried[alone] else alone


@dataclass
class Readings:
    """Seconds of the forces with one share, added up.

    Attributes
    ----------
    forces : int
        Their number.
    main, helper : float
        Seconds that each device computed.
    total : float
        Seconds from the beginning until both parts were joined.
    """

    forces: int = 0
    main: float = 0.0
    helper: float = 0.0
    total: float = 0.0

    def add(self, main: float, helper: float, total: float) -> None:
        """Add a force."""
        self.forces += 1
        self.main += main
        self.helper += helper
        self.total += total

    def balanced(self, share: float) -> float:
        """Return the share with which both devices would have taken equally long.

        The readings are those of `share`.
        """
        helper = share / self.helper
        main = (1 - share) / self.main
        return helper / (helper + main)

    def adapted(self, share: float) -> float:
        """Return the next share: half-way to the balance, within bounds; less if it costs time."""
        alone = self.main / (1 - share)  # seconds of the main device for all bodies
        if self.total > alone:
            return share / 2 if share / 2 > LEAST else 0.0
        change = 0.5 * (self.balanced(share) - share)
        if abs(change) < WORTHWHILE * share:
            return share
        return share + min(max(change, -STEP * share), STEP * share)
