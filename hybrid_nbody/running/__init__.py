"""Carries a run out, whatever the model."""
