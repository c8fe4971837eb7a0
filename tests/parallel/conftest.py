"""Fixtures of the ranks' tests."""

from support.ranks import alone, communicator

__all__ = ["alone", "communicator"]
