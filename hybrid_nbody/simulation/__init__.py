"""The time loop, its schedules, and the contract of a model."""
