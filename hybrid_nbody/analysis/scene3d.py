"""The data of the interactive view of a report, as its script reads them.

A model's view is a mapping, ready for JSON: ``geometry`` ("points" or "surface"), ``caption``,
``box`` (its edges, the longest 1), ``times``, ``frames`` (of points a text each, of surfaces a pair
of texts), ``colours`` and ``size`` of the points. A text holds 16-bit numbers in base64: three
coordinates a point, from 0 to `STEPS` along the longest edge, or three vertices a triangle.

Axes follow from ``origin``, the lowest corner of the box, ``scale``, the length of an edge of 1,
and ``units``; ``time_units`` stand at the clock. ``legend`` is a list of names and colours.
``trail`` is the number of frames that the paths behind points go back, 0 for none, and ``trails``
whether they are shown at first.
"""

import base64

import numpy as np

from hybrid_nbody.files.views import Array

STEPS = 65_534
"""Largest rounded coordinate, at the end of the longest edge; 65535 marks points out of view."""


def packed(numbers: Array) -> str:
    """Return whole numbers up to 65535 as the text that the script reads."""
    return base64.b64encode(np.ascontiguousarray(numbers).astype("<u2").tobytes()).decode()
