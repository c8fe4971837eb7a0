"""Sums in which each pair of bodies is computed once, for the body at either end."""
