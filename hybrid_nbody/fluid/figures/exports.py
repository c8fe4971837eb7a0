"""The data of a fluid that are exported."""

from hybrid_nbody.analysis.presentation import Exports, StoredField
from hybrid_nbody.fluid.figures import DENSITY, VELOCITY

EXPORTS = Exports(
    fields={
        "density": StoredField(DENSITY, ("state/density",)),
        "velocity": StoredField(VELOCITY, ("state/u", "state/v", "state/w")),
    },
    on_grid=True,
)
