"""Every optimisation of the pair force, one rung at a time."""
