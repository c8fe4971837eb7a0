"""The one table of the models that can be run."""

from hybrid_nbody.fluid.kind import FluidKind
from hybrid_nbody.nbody.kind import NBodyKind

TYPE_CHECKING = False  # that of `typing`, whose import would delay every command
if TYPE_CHECKING:
    from hybrid_nbody.running.contract import AnyKind, Config, Initial, Made, ModelKind

MODELS: "dict[str, AnyKind]" = {}
"""The models by name. Nothing else in the program lists them."""


def register(kind: "ModelKind[Config, Initial, Made]") -> None:
    """Add a model, from this package or from outside of it; see `running.contract.ModelKind`.

    Raises
    ------
    ValueError
        There is a model of this name already.
    """
    if kind.name in MODELS:
        raise ValueError(f"there is a model of the name '{kind.name}' already")
    MODELS[kind.name] = kind


register(NBodyKind())
register(FluidKind())
