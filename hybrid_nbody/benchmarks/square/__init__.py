"""Bodies in the unit square: kernels of one thread a body and one a pair."""
