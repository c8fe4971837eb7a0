"""Figures, movies and the view in space of a run of a fluid; here the data sets of its frames."""

DENSITY = "fluid/density"
VELOCITY = "fluid/velocity"
