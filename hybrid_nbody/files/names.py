"""Names and formats of the files of a run, shared by writers and readers."""

import codecs

# Values of the attribute ``format`` of our HDF5 files.
TRAJECTORY = "hybrid_nbody trajectory"
CHECKPOINT = "hybrid_nbody checkpoint"
HEAD = "hybrid_nbody head"
PART = "hybrid_nbody part"
EXPORT = "hybrid_nbody export"

TRAJECTORY_FILE = "trajectory.h5"
"""Name of the trajectory in the directory of a run."""

CHECKPOINT_FILES = "checkpoint-*.h5"
"""Pattern of the names of checkpoints there; the star stands for the number of the step."""

STATE_FILES = "state-*.h5"
"""Pattern of the names of the files in which ranks have written their shares of checkpoints."""

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""Marks at the start of UTF-16 text, in which zero bytes do not mean binary data."""

FORMAT_VERSION = 2
"""Version of the layout that is written, and the newest that can be read."""

ORIGIN = "branched_from"
"""Attribute of the files of a run that has started from a state of another one: which."""

START = "start"
"""Attribute that tells runs of equal configurations apart, by the state that they begin with."""
