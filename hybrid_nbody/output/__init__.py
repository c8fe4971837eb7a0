"""The output of a run: trajectory, checkpoints, log, and what the terminal shows."""
