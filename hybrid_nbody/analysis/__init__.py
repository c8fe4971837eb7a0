"""Reading finished or running output; needs no MPI and no GPU."""
