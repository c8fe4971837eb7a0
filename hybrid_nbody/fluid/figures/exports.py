"""The data of a fluid that are exported."""

from collections.abc import Mapping

import numpy as np

from hybrid_nbody.analysis.presentation import ComputedField, Exports, StoredField
from hybrid_nbody.files.cells import volume_of
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.fluid.figures import DENSITY, VELOCITY
from hybrid_nbody.fluid.figures.fields import PREFIX
from hybrid_nbody.fluid.figures.solids import Solids


def scalars_in(run: Run) -> Mapping[str, str]:
    """Return the pressure and the further scalars of the frames of a run."""
    return {name.removeprefix(PREFIX): name for name in run.fields if name.startswith(PREFIX)}


def solid_in(run: Run) -> Mapping[str, ComputedField]:
    """Return the solid share of the stored cells, if a run has obstacles."""
    solids = Solids(run)
    if not solids:
        return {}
    x, y, z = volume_of(run, run.fields[0]).stored

    def part(frame: int, rows: slice) -> Array:
        planes = [solids.share(frame, slice(k, k + 1))[0][y][:, x] for k in z[rows].tolist()]
        return np.array(planes, np.float32).reshape(-1, len(y), len(x))

    return {"solid": ComputedField("float32", "1", part)}


EXPORTS = Exports(
    fields={
        "density": StoredField(DENSITY, ("state/density",)),
        "velocity": StoredField(VELOCITY, ("state/u", "state/v", "state/w")),
    },
    on_grid=True,
    stored_in=scalars_in,
    computed=solid_in,
)
