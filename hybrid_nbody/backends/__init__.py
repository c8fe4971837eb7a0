"""How arrays, transfers and kernels reach a device: one contract, one module a kind of device."""
