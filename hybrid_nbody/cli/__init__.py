"""From the command line to calls."""
