"""What multigrid adds to the kernels of the fluid: coarse grids, and values that pass between grids, as twins."""
