"""The data of bodies that are exported."""

from hybrid_nbody.analysis.presentation import Exports, StoredField

EXPORTS = Exports(
    fields={
        "position": StoredField("bodies/position", ("bodies/position",), "length"),
        "velocity": StoredField("bodies/velocity", ("bodies/velocity",), "length / time"),
    },
    constants={"mass": "bodies/mass", "id": "bodies/id"},
    maps={"activity_map": "activity/map"},
)
