"""Gravity between bodies."""
