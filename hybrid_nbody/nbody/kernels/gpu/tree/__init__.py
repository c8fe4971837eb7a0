"""Gravity by a tree on a GPU."""
