"""Everything a run writes: trajectory, checkpoints, progress."""
