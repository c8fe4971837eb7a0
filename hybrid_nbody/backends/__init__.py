"""Arrays, transfers and kernels of a device: one contract, one module for each backend."""
