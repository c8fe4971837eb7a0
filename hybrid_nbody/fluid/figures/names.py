"""The data sets of a fluid in the frames of a run."""

DENSITY = "fluid/density"
VELOCITY = "fluid/velocity"
