"""What is computed in every cell: the truth in NumPy, and its twins on CPU threads and on a GPU."""
