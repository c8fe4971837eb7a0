"""The expansions that are fastest on CPU threads."""

from hybrid_nbody.nbody.kernels.expansions import Choice, Choices

CHOICES = Choices(
    rows=(
        Choice(3e-3, 3, 48, 1.0),
        Choice(3e-4, 4, 64, 1.0),
        Choice(3e-5, 5, 64, 0.7),
        Choice(3e-6, 7, 96, 0.85),
        Choice(3e-7, 8, 128, 0.8),
        Choice(0.0, 8, 128, 0.6),
    ),
    least_of_float32=2e-6,
    least_of_float32_pairs=3e-7,
    wide=2.0,
)
