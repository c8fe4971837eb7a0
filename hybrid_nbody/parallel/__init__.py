"""Ranks: their shares of the rows, the exchange of data, and the GPU of each."""
