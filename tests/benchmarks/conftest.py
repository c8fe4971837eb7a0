"""Fixtures of the benchmarks' tests."""

from support.ranks import alone, communicator

__all__ = ["alone", "communicator"]
