"""The expansions that are fastest on a GPU."""

from hybrid_nbody.nbody.kernels.expansions import Choice, Choices

CHOICES = Choices(
    rows=(
        Choice(3e-3, 3, 64, 0.9),
        Choice(3e-4, 4, 64, 0.8),
        Choice(3e-5, 5, 64, 0.5),
        Choice(3e-6, 6, 64, 0.5),
        Choice(3e-7, 7, 96, 0.5),
        Choice(0.0, 7, 96, 0.3),
    ),
    least_of_float32=3e-7,
    least_of_float32_pairs=6e-7,
    wide=2.4,
)
