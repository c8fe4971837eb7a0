"""The fluid on a staggered grid: velocities at the faces of cells, pressure and scalars inside.

The divergence of a face's velocities and the gradient between two cells are one pair, whose product
is the operator that the pressure solves for (Harlow & Welch 1965): what flows into a cell leaves it
again, as far as the solver goes.
"""
