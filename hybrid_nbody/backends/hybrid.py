"""The hybrid backend: a device whose work CPU threads share."""

from hybrid_nbody.backends.base import Backend


class HybridBackend:
    """Two devices of one rank: arrays live on the main one, and all of the contract is its; see `Backend`.

    Its kernels, the module ``hybrid`` of a package, let the helper compute a share at the same
    time.

    Parameters
    ----------
    main : Backend
        Holds the arrays and computes most, or all: a `GpuBackend`.
    helper : Backend
        Computes a share on arrays of the host: a `CpuBackend`.
    cpu_share : "auto" or float
        The helper's share of a rank's own bodies, 0 to 1; ``auto`` lets the kernels measure which
        is the fastest.

    Attributes
    ----------
    helping : bool
        Whether the helper has a share at present; the kernels say so.
    """

    kind = "hybrid"
    kernels = Backend.kernels

    def __init__(self, main: Backend, helper: Backend, cpu_share="auto"):
        self.main = main
        self.helper = helper
        self.cpu_share = cpu_share
        self.helping = True

    @property
    def description(self) -> str:
        """Both devices in a few words."""
        return f"{self.main.description} + {self.helper.description}"

    @property
    def devices(self) -> tuple[Backend, ...]:
        """The two devices."""
        return self.main, self.helper

    def use(self):
        """Use both devices."""
        self.main.use()
        self.helper.use()

    def apart(self) -> "HybridBackend":
        """See `Backend`; whether the helper has a share is what is remembered."""
        return HybridBackend(self.main, self.helper, self.cpu_share)

    def recorded(self, action):
        """See `Backend`; what the helper does cannot be replayed."""
        replay = self.main.recorded(action)
        return lambda: (action if self.helping else replay)()

    def __getattr__(self, name):
        return getattr(self.main, name)
