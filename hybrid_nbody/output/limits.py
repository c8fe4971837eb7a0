"""Warnings of diagnostics beyond their limits."""

import math
from collections.abc import Mapping
from typing import Any

from hybrid_nbody.simulation.model import Quantity


class Limits:
    """Says which diagnostics are beyond the limits of their quantities.

    Parameters
    ----------
    quantities : mapping of str to Quantity
        What a model measures.
    """

    def __init__(self, quantities: Mapping[str, Quantity]) -> None:
        self.quantities = {
            name: quantity
            for name, quantity in quantities.items()
            if quantity.components == 1 and quantity.limit < math.inf
        }
        self.said: set[str] = set()

    def new_warnings(self, values: Mapping[str, Any]) -> list[str]:
        """Return a warning for each value that is beyond its limit for the first time."""
        found = self._beyond(values)
        new = [text for name, text in found.items() if name not in self.said]
        self.said |= found.keys()
        return new

    def warnings(self, values: Mapping[str, Any]) -> list[str]:
        """Return a warning for each value that is beyond its limit."""
        return list(self._beyond(values).values())

    def _beyond(self, values: Mapping[str, Any]) -> dict[str, str]:
        return {
            name: f"warning: {name} is {values[name]:.2g}, beyond {quantity.limit:g}: "
            f"{quantity.advise(values[name]) if quantity.advise else quantity.advice}"
            for name, quantity in self.quantities.items()
            if abs(values.get(name, 0.0)) > quantity.limit
        }
