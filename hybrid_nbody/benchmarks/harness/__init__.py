"""What all benchmarks share: timing, tables, files, pictures."""
