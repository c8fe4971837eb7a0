"""What ranks see of each other's data: all rows, blocks that go round a ring, or halo planes."""
