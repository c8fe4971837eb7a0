"""Exchanges of rows between ranks: all rows, blocks that go round a ring, or halo planes."""
