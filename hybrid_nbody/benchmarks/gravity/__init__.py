"""What the pair force reaches: sizes, limits, tuning, shares."""
