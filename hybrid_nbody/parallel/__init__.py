"""Ranks: who owns what, how they see each other's data, and which GPU each one uses."""
