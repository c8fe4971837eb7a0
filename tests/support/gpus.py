"""Properties of some GPUs, as a backend gives them."""

H200 = {"compute_capability": "9.0", "shared_memory_per_multiprocessor": 228 << 10}
A100 = {"compute_capability": "8.0", "shared_memory_per_multiprocessor": 164 << 10}
L40S = {"compute_capability": "8.9", "shared_memory_per_multiprocessor": 100 << 10}
V100 = {"compute_capability": "7.0", "shared_memory_per_multiprocessor": 96 << 10}
