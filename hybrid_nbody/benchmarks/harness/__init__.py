"""Common parts of all benchmarks: timing, tables, files, pictures."""
