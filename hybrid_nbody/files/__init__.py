"""Files that readers and writers share; no MPI."""
