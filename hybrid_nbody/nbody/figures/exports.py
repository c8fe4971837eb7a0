"""The data of bodies that are exported."""

from hybrid_nbody.analysis.presentation import Exports, StoredField

EXPORTS = Exports(
    fields={
        "position": StoredField("bodies/position", ("bodies/position",)),
        "velocity": StoredField("bodies/velocity", ("bodies/velocity",)),
    },
    constants={"mass": "bodies/mass", "id": "bodies/id"},
    maps={"activity_map": "activity/map"},
)
