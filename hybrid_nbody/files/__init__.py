"""Reading and writing files without MPI, shared by runs and analysis."""
