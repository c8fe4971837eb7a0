"""The fast multipole method on CPU threads (Numba)."""
